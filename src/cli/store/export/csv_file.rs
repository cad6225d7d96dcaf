//! Tables. Lists and objects are JSON in a cell.
//!
//! Spreadsheets run a cell that begins with `=`, `+`, `-` or `@` as a formula, and the texts of records are untrusted. Such a
//! text begins with an apostrophe here, unless it is a number.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Write};

use csv::{Writer, WriterBuilder};
use fetchwell_core::record::RecordData;
use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::output::note;
use fetchwell_source::RecordExport;
use fetchwell_source::contract::{ExportError, ExportedStream, MAX_EXPORTED_FIELDS};
use serde_json::Value;

use super::distinct_name::{OWN_FIELDS, distinct_name};
use crate::cli::print::grouped;

/// Writes the records of a stream and returns their number. The first row has the names of the fields.
pub(super) fn write(
    export: &dyn RecordExport,
    stream: &ExportedStream,
    output: &mut impl Write,
) -> Result<u64, ExportError<io::Error>> {
    let fields = export.fields(stream)?.in_order();
    if fields.len() >= MAX_EXPORTED_FIELDS {
        note(&format_args!(
            "the table of `{}` has columns for {} fields, the limit; `--format ndjson` writes all fields",
            stream.name,
            grouped(saturated::<u64>(fields.len()))
        ));
    }
    let mut row = Vec::new();
    write_row(&mut row, &heading(&fields))
        .and_then(|()| output.write_all(&row))
        .map_err(ExportError::Sink)?;
    let mut records = 0;
    export.each_record(stream, |record| {
        let data: RecordData = serde_json::from_str(record.data)?;
        let own = [record.key, record.emitted_at.unwrap_or_default()].map(guarded);
        let cells = fields.iter().map(|field| data.get(field).map_or(Cow::Borrowed(""), cell));
        let cells: Vec<Cow<'_, str>> = own.into_iter().chain(cells).collect();
        row.clear();
        write_row(&mut row, &cells)?;
        records += 1;
        output.write_all(&row)
    })?;
    Ok(records)
}

/// Returns the names of the columns. Each is there once: a field with the name of another column gets a `_` at its end.
fn heading(fields: &[String]) -> Vec<Cow<'_, str>> {
    let mut known = HashSet::new();
    let names = OWN_FIELDS.iter().copied().chain(fields.iter().map(String::as_str));
    names.map(|name| distinct_name(guarded(name), &mut known)).collect()
}

fn write_row(row: &mut Vec<u8>, cells: &[Cow<'_, str>]) -> io::Result<()> {
    let mut writer: Writer<&mut Vec<u8>> = WriterBuilder::new().from_writer(row);
    writer.write_record(cells.iter().map(|cell| cell.as_bytes()))?;
    writer.flush()
}

fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => guarded(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Puts an apostrophe before a text that a spreadsheet would run as a formula.
fn guarded(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if is_formula { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formulas_become_texts_and_numbers_stay() {
        for (value, expect) in [
            (json!("=1+2"), "'=1+2"),
            (json!("+49 30 1234"), "'+49 30 1234"),
            (json!("-cmd|' /C calc'!A0"), "'-cmd|' /C calc'!A0"),
            (json!("@SUM(A1)"), "'@SUM(A1)"),
            (json!("\t=1"), "'\t=1"),
            (json!("-12.50"), "-12.50"),
            (json!(-12.5), "-12.5"),
            (json!("a=b"), "a=b"),
            (json!(null), ""),
            (json!(true), "true"),
            (json!(["-x", 1]), "[\"-x\",1]"),
        ] {
            assert_eq!(cell(&value), expect, "{value}");
        }
    }

    #[test]
    fn column_names_are_distinct() {
        let fields = ["title", "_key", "_key_", "=a", "'=a", "_emitted_at"].map(str::to_owned);
        let expect = ["_key", "_emitted_at", "title", "_key_", "_key__", "'=a", "'=a_", "_emitted_at_"];
        assert_eq!(heading(&fields), expect);
    }
}
