//! The importer of CSV files: a table with a header, one record per row.
//!
//! The delimiter and the types of the columns are detected from the start of the file.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};
use fetchwell_core::record::{RecordData, is_same_name};
use serde_json::Value;

use super::ImportError;
use super::field_names::{FieldNames, KEY_FIELDS, list_names};
use super::intake::{Draft, DuplicatePolicy, Intake, Piece, PieceSink, parse_ahead};
use super::meter::Meter;
use super::text_input::{TextInput, field_text};
use super::values::{Column, Locale};

const EXPECTED: &str = "a CSV file with a header";

/// Maximum number of rows from which the column types are detected.
const SAMPLE_ROWS: usize = 1_000;

/// Maximum number of rows from which the delimiter is detected.
const DELIMITER_ROWS: usize = 50;

/// Supported delimiters, the most common first.
const DELIMITERS: [u8; 4] = *b",;\t|";

/// Imports every row into `stream`. The key is the text of the key columns: those in `names`, else a column such as
/// `id`, else the row number.
///
/// # Errors
///
/// The file or its header cannot be read, a named column is missing, the store cannot be written, or the
/// user stopped the import.
pub fn import_csv(
    reader: impl Read,
    path: &Path,
    stream: &str,
    names: &FieldNames,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    import_rows(reader, path, &RowTarget { stream, origin: None }, names, intake)
}

/// Imports the rows of a table in a folder or archive. `path` is its path there.
pub(crate) fn read_table(reader: impl Read, path: &str, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let target = RowTarget { stream: "rows", origin: Some(path) };
    import_rows(reader, Path::new(path), &target, &FieldNames::default(), intake)
}

/// The place of a table's rows in the store.
struct RowTarget<'a> {
    stream: &'a str,
    /// Path of the table in a folder. It precedes the keys of the rows, which are unique only in their table.
    origin: Option<&'a str>,
}

impl RowTarget<'_> {
    fn key(&self, key: Value) -> Value {
        let Some(path) = self.origin else { return key };
        let text = match &key {
            Value::Array(columns) => columns.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            number => number.to_string(),
        };
        Value::from(format!("{path}/{text}"))
    }

    fn place(&self, line: u64) -> String {
        self.origin.map_or_else(|| line.to_string(), |path| format!("{path}:{line}"))
    }
}

fn import_rows(
    reader: impl Read,
    path: &Path,
    target: &RowTarget<'_>,
    names: &FieldNames,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let wrong = |problem| ImportError::WrongKind { path: path.to_owned(), expected: EXPECTED, problem };
    let unreadable = |problem: &dyn std::fmt::Display| ImportError::Unreadable {
        path: path.to_owned(),
        problem: problem.to_string(),
    };
    let mut text = TextInput::read(reader, path).map_err(|problem| unreadable(&problem))?;
    let (delimiter, skipped) = detect_delimiter(text.head());
    text.skip(skipped).map_err(|problem| unreadable(&problem))?;
    let sample = sample_of(&text, delimiter);
    let is_ascii = text.head().is_ascii();
    let meter = Meter::default();
    meter.record_starts();
    let mut table = ReaderBuilder::new().delimiter(delimiter).from_reader(meter.watch(text.into_reader()));
    let header = table.headers().map_err(|error| wrong(error.to_string()))?;
    let columns = Columns::new(path, column_names(header).map_err(wrong)?, names, &sample, delimiter)?;
    let parse = |RawRow { number, row }: RawRow| -> Result<Row, String> {
        let fields = columns.fields(&row, is_ascii)?;
        let key = target.key(columns.key_of(&fields, number));
        let mut data = columns.data(fields);
        let emitted_at = names.apply(&mut data);
        if let Some(origin) = target.origin {
            data.insert("path".to_owned(), Value::from(origin));
        }
        Ok(Row { key, data, emitted_at, bytes: row.as_slice().len() })
    };
    let mut read = |send: &mut PieceSink<'_, u64, RawRow>| {
        let mut row = ByteRecord::new();
        for number in 1_u64.. {
            // The parser's own line count is one behind in files with carriage returns as line ends.
            let line = meter.line_of_record(table.position().byte());
            let content = match table.read_byte_record(&mut row) {
                Ok(false) => break,
                Ok(true) => Ok(RawRow { number, row: std::mem::take(&mut row) }),
                Err(error) => match error.kind() {
                    csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                        Err(format!("it has {len} fields and the header has {expected_len}"))
                    }
                    csv::ErrorKind::Io(problem) if problem.kind() == io::ErrorKind::InvalidData => {
                        return Err(wrong(format!("line {line}: {problem}")));
                    }
                    _ => return Err(unreadable(&error)),
                },
            };
            let bytes = content.as_ref().map_or(0, |raw| raw.row.as_slice().len());
            send(Piece { place: line, content, bytes })?;
        }
        Ok(())
    };
    let stop = intake.stop_flag();
    parse_ahead(stop, &parse, &mut read, &mut |line, row| match row {
        Ok(Row { key, data, emitted_at, bytes }) => {
            let (key, data, repeated) = (Some(key), Some(data), DuplicatePolicy::Refused);
            let draft = Draft { stream: target.stream, key, data, emitted_at, bytes, repeated };
            intake.take_ahead(&target.place(line), draft)
        }
        Err(reason) => {
            intake.reject(&target.place(line), &reason);
            Ok(())
        }
    })
}

/// A row before its fields are parsed, with its number.
struct RawRow {
    number: u64,
    row: ByteRecord,
}

/// A row as a record.
struct Row {
    key: Value,
    data: RecordData,
    emitted_at: Option<String>,
    /// Size in the file, in bytes.
    bytes: usize,
}

/// The columns of a table.
struct Columns {
    names: Vec<String>,
    types: Vec<Column>,
    /// Indices of the key columns. Empty if the row number is the key.
    key: Vec<usize>,
}

impl Columns {
    fn new(
        path: &Path,
        names: Vec<String>,
        wanted: &FieldNames,
        sample: &[ByteRecord],
        delimiter: u8,
    ) -> Result<Self, ImportError> {
        let place = |wanted: &str| {
            let exact = names.iter().position(|name| name == wanted);
            exact.or_else(|| names.iter().position(|name| is_same_name(name, wanted)))
        };
        if let Some(missing) = wanted.all().find(|wanted| place(wanted).is_none()) {
            return Err(ImportError::NoColumn {
                path: path.to_owned(),
                column: missing.to_owned(),
                columns: list_names(names.iter()),
            });
        }
        let key = if wanted.key.is_empty() {
            KEY_FIELDS.into_iter().find_map(place).into_iter().collect()
        } else {
            wanted.key.iter().filter_map(|wanted| place(wanted)).collect()
        };
        let locale = Locale::for_table(delimiter == b';');
        let rows = || sample.iter().filter(|row| row.len() == names.len());
        let type_of = |at| {
            let fields = rows().filter_map(move |row| row.get(at));
            Column::from_sample(fields.filter_map(|field| std::str::from_utf8(field).ok()), locale)
        };
        let types = (0..names.len()).map(type_of).collect();
        Ok(Self { names, types, key })
    }

    fn fields(&self, row: &ByteRecord, is_ascii: bool) -> Result<Vec<String>, String> {
        let field = |(column, field): (&String, &[u8])| {
            field_text(field, is_ascii)
                .ok_or_else(|| format!("column `{column}` is not UTF-8; save the file as UTF-8"))
        };
        self.names.iter().zip(row).map(field).collect()
    }

    /// Returns the key of a row: its fields as text, so that `01` and `1` are different keys.
    fn key_of(&self, fields: &[String], number: u64) -> Value {
        if self.key.is_empty() {
            return Value::from(number);
        }
        self.key.iter().map(|at| fields.get(*at).cloned().unwrap_or_default()).collect()
    }

    fn data(&self, fields: Vec<String>) -> RecordData {
        let columns = self.names.iter().zip(&self.types).zip(fields);
        columns.map(|((name, column), field)| (name.clone(), column.value(&field))).collect()
    }
}

/// Detects the delimiter. Also returns the number of bytes before the header that declare it: Excel reads `sep=;`
/// there.
fn detect_delimiter(head: &[u8]) -> (u8, usize) {
    let first = head.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    if let [b's', b'e', b'p', b'=', delimiter] = first.trim_ascii_end()
        && DELIMITERS.contains(delimiter)
    {
        return (*delimiter, first.len());
    }
    if let b"sep=" = first.trim_ascii_end() {
        return (b'\t', first.len());
    }
    // Score: the rows with as many fields as the header, then the number of fields. On a tie the most
    // common delimiter wins.
    let score = |delimiter: u8| {
        let lengths: Vec<usize> =
            rows_of(head, delimiter).take(DELIMITER_ROWS).map(|row| row.len()).collect();
        let columns = lengths.first().copied().unwrap_or_default();
        let agreeing = lengths.iter().filter(|length| **length == columns).count();
        if columns < 2 { (0, 0) } else { (agreeing, columns) }
    };
    let best = DELIMITERS.into_iter().rev().max_by_key(|delimiter| score(*delimiter));
    (best.unwrap_or(b','), 0)
}

/// Parses the rows at the start of a table, the header first.
fn rows_of(head: &[u8], delimiter: u8) -> impl Iterator<Item = ByteRecord> {
    let table = ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(head);
    table.into_byte_records().map_while(Result::ok)
}

/// Returns the rows below the header that are complete in the start of a table.
fn sample_of(text: &TextInput<'_>, delimiter: u8) -> Vec<ByteRecord> {
    let mut rows: Vec<ByteRecord> = rows_of(text.head(), delimiter).skip(1).take(SAMPLE_ROWS).collect();
    if text.is_longer && rows.len() < SAMPLE_ROWS && !text.head().ends_with(b"\n") {
        rows.pop();
    }
    rows
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_gives_rows_of_equal_length() {
        for (head, expect) in [
            ("id,name\n1,Ann\n", b','),
            ("id;name\n1;Ann, B\n2;Bob\n", b';'),
            ("id;price\n1;2,50\n2;3,75\n", b';'),
            ("id\tname\n1\tAnn, B; C\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            ("name\nAnn\n", b','),
            ("id,note\n1,\"a;b\n;c;d\"\n2,x\n", b','),
            ("", b','),
        ] {
            assert_eq!(char::from(detect_delimiter(head.as_bytes()).0), char::from(expect), "{head}");
        }
        assert_eq!(detect_delimiter(b"sep=;\r\nid;name\r\n"), (b';', 7));
    }
}
