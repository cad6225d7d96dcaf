//! The rows of a sheet or table as records. The first row that is not empty names the fields.

use std::collections::HashSet;

use serde_json::Value;

use super::super::ImportError;
use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::super::values::time_of_value;
use crate::record::{RecordData, authored_values};

/// Stream of rows.
const STREAM: &str = "rows";

/// Maximum number of columns.
pub(super) const MAX_COLUMNS: usize = 900;

/// Maximum number of cells of a file that are not empty.
const MAX_CELLS: usize = 5_000_000;

/// Fields of every row. A column with such a name is stored as `column_NAME`.
const OWN_FIELDS: [&str; 4] = ["path", "sheet", "row", "format"];

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
    cells: usize,
    intake: &'r mut Intake<'i>,
}

impl<'r, 'i> Rows<'r, 'i> {
    pub(super) fn new(item: &Item<'_>, intake: &'r mut Intake<'i>) -> Self {
        let (path, changed_at) = (item.path.clone(), item.changed_at.clone());
        Self { path, changed_at, sheet: String::new(), names: Vec::new(), cells: 0, intake }
    }

    /// Starts the next sheet.
    pub(super) fn start_sheet(&mut self, name: &str) {
        name.clone_into(&mut self.sheet);
        self.names.clear();
    }

    /// Adds a row with its number from 1 and its cells. `None` is an empty cell.
    pub(super) fn add(&mut self, number: usize, cells: &[Option<Value>]) -> Result<(), ReadError> {
        self.cells += cells.iter().flatten().count();
        if self.cells > MAX_CELLS {
            return Err(format!("it has more than {MAX_CELLS} cells").into());
        }
        if cells.iter().all(Option::is_none) {
            return Ok(());
        }
        if self.names.is_empty() {
            self.names = column_names(cells);
            return Ok(());
        }
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
