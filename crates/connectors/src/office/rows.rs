//! The rows of a sheet as records. The first rows are held until the header among them is known.

use fetchwell_core::record::{RecordData, authored_values};
use serde_json::Value;

use super::super::ImportError;
use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::super::skips::Problem;
use super::super::tables::{
    MAX_COMPARED_ROWS, NO_ROWS, RowShape, TableNote, find_header, note_text, unique_names,
};
use super::super::values::{SizeLimits, check_row, time_of_value};

/// Stream of rows.
const STREAM: &str = "rows";

/// Maximum number of columns.
pub(super) const MAX_COLUMNS: usize = 900;

/// Maximum number of cells of a file that are not empty, and of texts that cells share.
pub(super) const MAX_CELLS: usize = 5_000_000;

/// Maximum number of bytes of the rows that are held until the header is known. A larger row is the last of them.
const MAX_HELD_BYTES: usize = 1024 * 1024;

/// Fields of every row. A column with such a name is stored as `column_NAME`.
const OWN_FIELDS: [&str; 4] = ["path", "sheet", "row", "format"];

/// The cells of a row, with the bytes of their values.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// `None` is an empty cell.
    cells: Vec<Option<Value>>,
    bytes: usize,
    /// True if cells that are not empty were left out.
    is_cut: bool,
}

impl Row {
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.bytes = 0;
        self.is_cut = false;
    }

    /// Returns the number of cells.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Adds a value this many times. Cells beyond the last column are left out.
    ///
    /// # Errors
    ///
    /// The row has too many bytes.
    pub(super) fn push(&mut self, value: Option<Value>, count: usize) -> Result<(), String> {
        let room = MAX_COLUMNS.saturating_sub(self.len());
        self.is_cut |= count > room && value.is_some();
        let count = count.min(room);
        self.count_bytes(value.as_ref(), count)?;
        self.cells.extend(std::iter::repeat_n(value, count));
        Ok(())
    }

    /// Sets the value of a column, unless it is beyond the last one.
    ///
    /// # Errors
    ///
    /// The row has too many bytes.
    pub(super) fn set(&mut self, column: usize, value: Option<Value>) -> Result<(), String> {
        if column >= MAX_COLUMNS {
            self.is_cut |= value.is_some();
            return Ok(());
        }
        self.count_bytes(value.as_ref(), 1)?;
        if self.cells.len() <= column {
            self.cells.resize(column + 1, None);
        }
        if let Some(place) = self.cells.get_mut(column) {
            *place = value;
        }
        Ok(())
    }

    /// Removes the empty cells at the end, and returns true if there are no others.
    pub(super) fn trim(&mut self) -> bool {
        let filled = self.cells.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        self.cells.truncate(filled);
        filled == 0
    }

    fn count_bytes(&mut self, value: Option<&Value>, count: usize) -> Result<(), String> {
        let bytes = match value {
            Some(Value::String(text)) => text.len(),
            Some(_) => size_of::<Value>(),
            None => 0,
        };
        self.bytes = self.bytes.saturating_add(bytes.saturating_mul(count));
        check_row(self.bytes)
    }
}

/// A row that is held until the header of its sheet is known.
#[derive(Debug)]
struct HeldRow {
    /// Number from 1.
    number: usize,
    cells: Vec<Option<Value>>,
    bytes: usize,
}

/// The rows of all sheets of a file.
#[derive(Debug)]
pub(super) struct Rows<'r, 'i> {
    /// Path of the file.
    path: String,
    /// Modification time of the file.
    changed_at: Option<String>,
    sheet: String,
    /// First rows of the sheet, until its header is known.
    held: Vec<HeldRow>,
    held_bytes: usize,
    /// True if columns of the sheet were left out.
    is_cut: bool,
    /// Names of the columns, once they are known.
    names: Vec<String>,
    /// Size of the names in bytes.
    name_bytes: usize,
    cells: usize,
    limits: SizeLimits,
    intake: &'r mut Intake<'i>,
}

impl<'r, 'i> Rows<'r, 'i> {
    /// Creates the rows of a file of this size.
    pub(super) fn new(item: &Item<'_>, file_bytes: usize, intake: &'r mut Intake<'i>) -> Self {
        Self {
            path: item.path.clone(),
            changed_at: item.changed_at.clone(),
            sheet: String::new(),
            held: Vec::new(),
            held_bytes: 0,
            is_cut: false,
            names: Vec::new(),
            name_bytes: 0,
            cells: 0,
            limits: SizeLimits::new(file_bytes as u64),
            intake,
        }
    }

    /// Starts the next sheet.
    pub(super) fn start_sheet(&mut self, name: &str) {
        name.clone_into(&mut self.sheet);
        self.names.clear();
        self.is_cut = false;
    }

    /// Adds a row with its number from 1.
    pub(super) fn add(&mut self, number: usize, row: &Row) -> Result<(), ReadError> {
        let cells = row.cells.as_slice();
        self.cells += cells.iter().flatten().count();
        if self.cells > MAX_CELLS {
            return Err(Problem::too_large(format!("it has more than {MAX_CELLS} cells")).into());
        }
        if row.is_cut && !self.is_cut {
            self.is_cut = true;
            let note = format!("it has more than {MAX_COLUMNS} columns; the others are left out");
            self.intake.note(&self.table(), &note);
        }
        if cells.iter().all(Option::is_none) {
            return Ok(());
        }
        if !self.names.is_empty() {
            return self.take(number, cells, row.bytes);
        }
        self.held.push(HeldRow { number, cells: cells.to_vec(), bytes: row.bytes });
        self.held_bytes = self.held_bytes.saturating_add(row.bytes);
        if self.held.len() >= MAX_COMPARED_ROWS || self.held_bytes > MAX_HELD_BYTES {
            self.take_held()?;
        }
        Ok(())
    }

    /// Takes the rows that are held. A sheet has to be ended also after an error, so that its rows before the error are kept.
    pub(super) fn end_sheet(&mut self) -> Result<(), ReadError> {
        if self.held.len() > 1 {
            return self.take_held();
        }
        self.held_bytes = 0;
        let alone = std::mem::take(&mut self.held);
        if alone.is_empty() { Ok(()) } else { self.take_note(&alone, NO_ROWS) }
    }

    /// Finds the header among the rows that are held, and takes the rows below it.
    fn take_held(&mut self) -> Result<(), ReadError> {
        let mut held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let shapes: Vec<RowShape> = held.iter().map(|row| RowShape::from_cells(&row.cells)).collect();
        let below = held.split_off((find_header(&shapes) + 1).min(held.len()));
        let Some(header) = held.pop() else { return Ok(()) };
        self.limits.take_row(header.bytes)?;
        let header_row = header.number;
        let names = unique_names(header.cells.into_iter().map(name_of).collect(), &OWN_FIELDS);
        if let Some(note) = names.note() {
            self.intake.note(&self.table(), &note);
        }
        self.names = names.names;
        self.name_bytes = self.names.iter().map(String::len).sum();
        if !held.is_empty() {
            self.take_note(&held, &TableNote::above(&format!("row {header_row}")))?;
        }
        below.into_iter().try_for_each(|row| self.take(row.number, &row.cells, row.bytes))
    }

    /// Returns the path of the sheet, which is unique in an import.
    fn table(&self) -> String {
        format!("{}/{}", self.path, self.sheet)
    }

    /// Stores rows that are no records of their own, such as those above the header.
    fn take_note(&mut self, above: &[HeldRow], reason: &str) -> Result<(), ReadError> {
        above.iter().try_for_each(|row| self.limits.take_row(row.bytes))?;
        let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
        let rows: Vec<Vec<String>> =
            above.iter().map(|row| row.cells.iter().flatten().map(text).collect()).collect();
        let note = TableNote {
            key: self.table(),
            title: &self.sheet,
            path: &self.path,
            sheet: &self.sheet,
            text: note_text(rows.iter().map(|row| row.iter().map(String::as_str))),
            changed_at: self.changed_at.clone(),
        };
        Ok(note.take_into(reason, self.intake)?)
    }

    fn take(&mut self, number: usize, cells: &[Option<Value>], bytes: usize) -> Result<(), ReadError> {
        // The path and the sheet are fields and parts of the key.
        let own_bytes = self.path.len().saturating_add(self.sheet.len()).saturating_mul(2);
        self.limits.take_row(bytes.saturating_add(self.name_bytes).saturating_add(own_bytes))?;
        Ok(self.take_record(number, cells)?)
    }

    fn take_record(&mut self, number: usize, cells: &[Option<Value>]) -> Result<(), ImportError> {
        let mut data = RecordData::new();
        for (at, value) in cells.iter().enumerate() {
            if let Some(value) = value {
                let name = self.names.get(at).cloned().unwrap_or_else(|| format!("column_{}", at + 1));
                data.insert(name, value.clone());
            }
        }
        let time = authored_values(&data).find_map(time_of_value);
        data.insert("path".to_owned(), Value::from(self.path.as_str()));
        data.insert("sheet".to_owned(), Value::from(self.sheet.as_str()));
        data.insert("row".to_owned(), Value::from(number));
        let record = FileRecord {
            stream: STREAM.to_owned(),
            key: format!("{}/{}/{number}", self.path, self.sheet),
            data,
            emitted_at: time.or_else(|| self.changed_at.clone()),
            identity: None,
        };
        let place = format!("{}: row {number} of {}", self.path, self.sheet);
        record.take_into(&place, self.intake)
    }
}

/// Returns the text of a cell as the name of a column.
fn name_of(cell: Option<Value>) -> String {
    match cell {
        Some(Value::String(name)) => name.split_whitespace().collect::<Vec<_>>().join(" "),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_are_one_line() {
        assert_eq!(name_of(Some(Value::from("a\n b "))), "a b");
        assert_eq!(name_of(Some(Value::from(2024))), "2024");
        assert_eq!(name_of(None), "");
    }
}
