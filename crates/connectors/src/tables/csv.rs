//! The importer of CSV files: a table with a header, one record per row.
//!
//! The delimiter, the header and the types of the columns are detected from the start of the file.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::{ByteRecord, Reader, ReaderBuilder};
use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::super::ImportError;
use super::super::field_names::FieldNames;
use super::super::intake::{Draft, DuplicatePolicy, Intake, Piece, PieceSink, parse_ahead};
use super::super::meter::{Meter, MeteredReader};
use super::super::text_input::{TextInput, field_text};
use super::super::values::Locale;
use super::columns::{Columns, has_row_names};
use super::names::{ColumnNames, unique_names};
use super::note::{NO_ROWS, TableNote, note_text};
use super::sample::{Sample, detect_delimiter};

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

    /// Returns the name of the table in notes: its path in a folder, otherwise its stream.
    fn name(&self) -> &str {
        self.origin.unwrap_or(self.stream)
    }

    /// Returns the names of columns that a record has for itself.
    fn reserved(&self) -> &'static [&'static str] {
        if self.origin.is_some() { &["path"] } else { &[] }
    }
}

fn import_rows(
    reader: impl Read,
    path: &Path,
    target: &RowTarget<'_>,
    names: &FieldNames,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let mut text = TextInput::read(reader, path).map_err(|problem| unreadable(path, &problem))?;
    let (delimiter, skipped) = detect_delimiter(text.head());
    text.skip(skipped).map_err(|problem| unreadable(path, &problem))?;
    let sample = Sample::read(&text, delimiter);
    let is_ascii = text.head().is_ascii();
    let meter = Meter::counting_lines();
    meter.record_starts();
    let reader = meter.watch(text.into_reader());
    let table =
        ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(reader);
    let mut rows = RawRows { table, meter, path, number: 0 };
    let top = Top::read(&mut rows, &sample, is_ascii)?;
    let header = unique_names(top.names.clone(), target.reserved());
    let locale = Locale::for_table(delimiter == b';');
    let columns = Columns::new(path, header.names.clone(), names, &sample.rows, locale)?;
    top.report(&header, target, path, intake)?;
    let short_rows = AtomicU64::new(0);
    let parse = |RawRow { number, mut row }: RawRow| -> Result<Row, String> {
        let bytes = row.as_slice().len();
        if columns.align(&mut row)? {
            short_rows.fetch_add(1, Ordering::Relaxed);
        }
        let fields = columns.fields(&row, is_ascii)?;
        let key = target.key(columns.key_of(&fields, number));
        let mut data = columns.data(fields);
        let emitted_at = names.apply(&mut data);
        if let Some(origin) = target.origin {
            data.insert("path".to_owned(), Value::from(origin));
        }
        Ok(Row { key, data, emitted_at, bytes })
    };
    let stop = intake.stop_flag();
    let write = &mut |line, row: Result<Row, String>| match row {
        Ok(Row { key, data, emitted_at, bytes }) => {
            let (key, data, repeated) = (Some(key), Some(data), DuplicatePolicy::Refused);
            let draft = Draft { stream: target.stream, key, data, emitted_at, bytes, repeated };
            intake.take_ahead(&target.place(line), draft)
        }
        Err(reason) => {
            intake.reject(&target.place(line), &reason);
            Ok(())
        }
    };
    let ended = parse_ahead(stop, &parse, |send| rows.send_all(send), write);
    report_short_rows(short_rows.into_inner(), target.name(), intake);
    ended
}

/// Reports the number of rows whose last fields are missing.
fn report_short_rows(rows: u64, table: &str, intake: &mut Intake<'_>) {
    let subject = match rows {
        0 => return,
        1 => "1 row has".to_owned(),
        rows => format!("{rows} rows have"),
    };
    intake.note(table, &format!("{subject} fewer fields than the header; the missing ones are null"));
}

/// The rows of a file that are not read yet.
struct RawRows<'p, R> {
    table: Reader<MeteredReader<R>>,
    meter: Meter,
    path: &'p Path,
    /// Number of rows that were read. The first row of a table, usually the header, has the number 0.
    number: u64,
}

impl<R: Read> RawRows<'_, R> {
    /// Returns the next row with its line, or `None` at the end.
    fn next(&mut self) -> Result<Option<(u64, RawRow)>, ImportError> {
        // The parser's own line count is one behind in files with carriage returns as line ends.
        let line = self.meter.line_of_record(self.table.position().byte());
        let mut row = ByteRecord::new();
        match self.table.read_byte_record(&mut row) {
            Ok(false) => Ok(None),
            Ok(true) => {
                let number = self.number;
                self.number += 1;
                Ok(Some((line, RawRow { number, row })))
            }
            Err(error) => Err(match error.kind() {
                csv::ErrorKind::Io(problem) if problem.kind() == io::ErrorKind::InvalidData => {
                    wrong_kind(self.path, format!("line {line}: {problem}"))
                }
                _ => unreadable(self.path, &error),
            }),
        }
    }

    fn send_all(mut self, send: &mut PieceSink<'_, u64, RawRow>) -> Result<(), ImportError> {
        while let Some((place, row)) = self.next()? {
            let bytes = row.row.as_slice().len();
            send(Piece { place, content: Ok(row), bytes })?;
        }
        Ok(())
    }
}

/// The start of a table: its header and what stands above it.
struct Top {
    /// Names of the columns as the header has them.
    names: Vec<String>,
    /// Line of the header, from 1.
    line: u64,
    /// Text above the header, or that of a header without rows; otherwise `None`.
    note: Option<String>,
    /// True if the table has only a header.
    is_alone: bool,
}

impl Top {
    fn read<R: Read>(
        rows: &mut RawRows<'_, R>,
        sample: &Sample,
        is_ascii: bool,
    ) -> Result<Self, ImportError> {
        let path = rows.path;
        let text = |row: &ByteRecord| -> Result<Vec<String>, ImportError> {
            let field = |field| field_text(field, is_ascii).map(|field| field.trim().to_owned());
            let fields: Option<_> = row.iter().map(field).collect();
            fields
                .ok_or_else(|| wrong_kind(path, "its header is not UTF-8; save the file as UTF-8".to_owned()))
        };
        let mut above = Vec::new();
        while above.len() < sample.rows_above
            && let Some((_, RawRow { row, .. })) = rows.next()?
        {
            above.push(text(&row)?);
        }
        let Some((line, RawRow { row: header, .. })) = rows.next()? else {
            return Err(wrong_kind(path, "it is empty".to_owned()));
        };
        let mut names = text(&header)?;
        if sample.rows.is_empty()
            && above.is_empty()
            && !sample.is_longer
            && names.iter().any(|name| !name.is_empty())
        {
            let note = note_text(std::iter::once(names.iter().map(String::as_str)));
            return Ok(Self { names, line, note: Some(note), is_alone: true });
        }
        if has_row_names(&header, &sample.rows) {
            names.insert(0, String::new());
        }
        let above = above.iter().map(|row| row.iter().map(String::as_str));
        let note = (sample.rows_above > 0).then(|| note_text(above));
        Ok(Self { names, line, note, is_alone: false })
    }

    /// Stores the note, and reports the header that is not the first row and the columns with a number.
    fn report(
        self,
        header: &ColumnNames,
        target: &RowTarget<'_>,
        path: &Path,
        intake: &mut Intake<'_>,
    ) -> Result<(), ImportError> {
        if let Some(note) = header.note() {
            intake.note(target.name(), &note);
        }
        // A table that a command names may have no rows yet.
        let Some(text) = self.note.filter(|_| !self.is_alone || target.origin.is_some()) else {
            return Ok(());
        };
        let title = path.file_stem().and_then(OsStr::to_str).unwrap_or(target.name());
        let (key, path) = (target.name().to_owned(), target.origin.unwrap_or_default());
        let note = TableNote { key, title, path, sheet: "", text, changed_at: None };
        let above = TableNote::above(&format!("line {}", self.line));
        note.take_into(if self.is_alone { NO_ROWS } else { &above }, intake)
    }
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

fn wrong_kind(path: &Path, problem: String) -> ImportError {
    ImportError::WrongKind { path: path.to_owned(), expected: "a CSV file with a header", problem }
}

fn unreadable(path: &Path, problem: &dyn Display) -> ImportError {
    ImportError::Unreadable { path: path.to_owned(), problem: problem.to_string() }
}
