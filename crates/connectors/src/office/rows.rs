//! The rows of a sheet or table as records. The first row that is not empty names the fields.

use std::collections::HashSet;

use fetchwell_core::record::{RecordData, authored_values};
use serde_json::Value;

use super::super::ImportError;
use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::super::values::{SizeLimits, check_row, time_of_value};

/// Stream of rows.
const STREAM: &str = "rows";

/// Maximum number of columns.
pub(super) const MAX_COLUMNS: usize = 900;

/// Maximum number of cells of a file that are not empty, and of texts that cells share.
pub(super) const MAX_CELLS: usize = 5_000_000;

/// Fields of every row. A column with such a name is stored as `column_NAME`.
const OWN_FIELDS: [&str; 4] = ["path", "sheet", "row", "format"];

/// The cells of a row, with the bytes of their values.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// `None` is an empty cell.
    cells: Vec<Option<Value>>,
    bytes: usize,
}

impl Row {
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.bytes = 0;
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
        let count = count.min(MAX_COLUMNS.saturating_sub(self.len()));
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

/// The rows of all sheets of a file.
#[derive(Debug)]
pub(super) struct Rows<'r, 'i> {
    /// Path of the file.
    path: String,
    /// Modification time of the file.
    changed_at: Option<String>,
    sheet: String,
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
    }

    /// Adds a row with its number from 1.
    pub(super) fn add(&mut self, number: usize, row: &Row) -> Result<(), ReadError> {
        let cells = row.cells.as_slice();
        self.cells += cells.iter().flatten().count();
        if self.cells > MAX_CELLS {
            return Err(format!("it has more than {MAX_CELLS} cells").into());
        }
        if cells.iter().all(Option::is_none) {
            return Ok(());
        }
        if self.names.is_empty() {
            self.limits.take_row(row.bytes)?;
            self.names = column_names(cells);
            self.name_bytes = self.names.iter().map(String::len).sum();
            return Ok(());
        }
        // The path and the sheet are fields and parts of the key.
        let own_bytes = self.path.len().saturating_add(self.sheet.len()).saturating_mul(2);
        self.limits.take_row(row.bytes.saturating_add(self.name_bytes).saturating_add(own_bytes))?;
        Ok(self.take(number, cells)?)
    }

    fn take(&mut self, number: usize, cells: &[Option<Value>]) -> Result<(), ImportError> {
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

/// Returns the names of the columns of a header. An empty or repeated name gets the number of its column.
fn column_names(header: &[Option<Value>]) -> Vec<String> {
    let mut seen: HashSet<String> = HashSet::new();
    let names = header.iter().enumerate().map(|(at, name)| {
        let name = match name {
            Some(Value::String(name)) => name.split_whitespace().collect::<Vec<_>>().join(" "),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let own = OWN_FIELDS.contains(&name.as_str());
        let name = if own { format!("column_{name}") } else { name };
        let is_free = !name.is_empty() && !seen.contains(&name);
        let name = if is_free { name } else { format!("{name}_{}", at + 1).replace("__", "_") };
        let name = if name.starts_with('_') { format!("column{name}") } else { name };
        seen.insert(name.clone());
        name
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_name_of_its_own() {
        let header = [Some("Name"), None, Some("Name"), Some("path"), Some("a\n b")];
        let header = header.map(|name| name.map(Value::from));
        assert_eq!(column_names(&header), ["Name", "column_2", "Name_3", "column_path", "a b"]);
    }
}
