//! `import csv`: a table with a header, a record per row.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};
use serde_json::Value;

use super::ImportError;
use super::intake::{Draft, Intake, Repeated};
use super::meter::Meter;
use crate::record::RecordData;

const EXPECTED: &str = "a CSV file with a header";

/// Imports every row into `stream`. The key is the value of the `key` columns; every field is text, as
/// CSV has no other type.
///
/// # Errors
///
/// The file or its header cannot be read, a key column is missing, the store cannot be written, or the
/// user stopped the import.
pub fn import_csv(
    reader: impl Read,
    path: &Path,
    stream: &str,
    key: &[String],
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let wrong = |problem| ImportError::WrongKind { path: path.to_owned(), expected: EXPECTED, problem };
    let meter = Meter::default();
    meter.record_starts();
    let mut table = ReaderBuilder::new().from_reader(meter.watch(reader));
    let header = table.headers().map_err(|error| wrong(error.to_string()))?;
    let columns = column_names(header).map_err(wrong)?;
    if let Some(missing) = key.iter().find(|column| !columns.contains(column)) {
        return Err(wrong(format!("it has no column `{missing}`; its columns are {}", columns.join(", "))));
    }
    let mut row = ByteRecord::new();
    loop {
        // The table's own count of lines is one behind where lines end with a carriage return.
        let line = meter.line_of_record(table.position().byte());
        match table.read_byte_record(&mut row) {
            Ok(false) => return Ok(()),
            Ok(true) => match fields(&columns, &row) {
                Ok(data) => {
                    let parts =
                        key.iter().map(|column| data.get(column).cloned().unwrap_or_default()).collect();
                    let draft = Draft {
                        stream,
                        key: Some(Value::Array(parts)),
                        data: Some(data),
                        emitted_at: None,
                        bytes: row.as_slice().len(),
                        repeated: Repeated::Refused,
                    };
                    intake.take(&line, draft)?;
                }
                Err(reason) => intake.reject(&line, &reason),
            },
            Err(error) => match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    intake.reject(&line, &format!("it has {len} fields and the header has {expected_len}"));
                }
                csv::ErrorKind::Io(problem) if problem.kind() == io::ErrorKind::InvalidData => {
                    return Err(wrong(format!("line {line}: {problem}")));
                }
                _ => {
                    return Err(ImportError::Unreadable {
                        path: path.to_owned(),
                        problem: error.to_string(),
                    });
                }
            },
        }
    }
}

fn column_names(header: &csv::StringRecord) -> Result<Vec<String>, String> {
    let name = |(at, name): (usize, &str)| match name.trim() {
        "" => format!("column_{}", at + 1),
        name => name.to_owned(),
    };
    let names: Vec<String> = header.iter().enumerate().map(name).collect();
    if names.is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(twice) => Err(format!("it has two columns named `{twice}`")),
        None => Ok(names),
    }
}

fn fields(columns: &[String], row: &ByteRecord) -> Result<RecordData, String> {
    let field = |(column, value): (&String, &[u8])| match std::str::from_utf8(value) {
        Ok(text) => Ok((column.clone(), Value::from(text))),
        Err(_not_utf8) => Err(format!("column `{column}` is not UTF-8; save the file as UTF-8")),
    };
    columns.iter().zip(row).map(field).collect()
}
