//! The columns of a CSV file: their names, their types and the key, and rows with too few or too many fields.

use std::collections::HashSet;
use std::path::Path;

use csv::ByteRecord;
use fetchwell_core::record::{RecordData, is_same_name};
use serde_json::Value;

use super::super::ImportError;
use super::super::field_names::{FieldNames, KEY_FIELDS, list_names};
use super::super::text_input::field_text;
use super::super::values::{Column, Locale};

/// The columns of a table.
#[derive(Debug)]
pub(super) struct Columns {
    names: Vec<String>,
    types: Vec<Column>,
    /// Indices of the key columns. Empty if the row number is the key.
    key: Vec<usize>,
}

impl Columns {
    /// Detects the types of columns from a sample of rows, and finds the key columns.
    ///
    /// # Errors
    ///
    /// No column has one of the names that are `wanted`.
    pub(super) fn new(
        path: &Path,
        names: Vec<String>,
        wanted: &FieldNames,
        sample: &[ByteRecord],
        locale: Locale,
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
        let has_all = |row: &&ByteRecord| row.len() >= names.len() && is_blank_after(row, names.len());
        let rows: Vec<&ByteRecord> = sample.iter().filter(has_all).collect();
        let type_of = |at| {
            let fields = rows.iter().filter_map(move |row| row.get(at));
            Column::from_sample(fields.filter_map(|field| std::str::from_utf8(field).ok()), locale)
        };
        let types = (0..names.len()).map(type_of).collect();
        Ok(Self { names, types, key })
    }

    /// Gives a row as many fields as there are columns, if its fields are clearly those of the first columns. Returns true if
    /// fields were missing.
    pub(super) fn align(&self, row: &mut ByteRecord) -> Result<bool, String> {
        let (fields, columns) = (row.len(), self.names.len());
        if fields == columns {
            return Ok(false);
        }
        if fields > columns && is_blank_after(row, columns) {
            row.truncate(columns);
            return Ok(false);
        }
        if fields < columns && self.are_first_fields(row) {
            (fields..columns).for_each(|_| row.push_field(b""));
            return Ok(true);
        }
        let remedy = if fields > columns { "fields with the delimiter" } else { "fields with a line break" };
        Err(format!("it has {fields} fields and the header has {columns}; {remedy} need quotes"))
    }

    /// Returns true if the fields of a short row are those of the first columns: they have the types of these, and they
    /// have a column with a type or are half of the columns. The rest of a row after a line break has neither.
    fn are_first_fields(&self, row: &ByteRecord) -> bool {
        let has_key = self.key.iter().all(|at| *at < row.len());
        let typed = || self.types.iter().zip(row).filter(|(column, _)| **column != Column::Text);
        let accepts = |(column, field): (&Column, &[u8])| {
            std::str::from_utf8(field).is_ok_and(|field| column.accepts(field))
        };
        let has_evidence = typed().next().is_some() || row.len() * 2 >= self.names.len();
        has_key && has_evidence && typed().all(accepts)
    }

    /// Returns the fields of a row as text.
    pub(super) fn fields(&self, row: &ByteRecord, is_ascii: bool) -> Result<Vec<String>, String> {
        let field = |(column, field): (&String, &[u8])| {
            field_text(field, is_ascii)
                .ok_or_else(|| format!("column `{column}` is not UTF-8; save the file as UTF-8"))
        };
        self.names.iter().zip(row).map(field).collect()
    }

    /// Returns the key of a row: its fields as text, so that `01` and `1` are different keys.
    pub(super) fn key_of(&self, fields: &[String], number: u64) -> Value {
        if self.key.is_empty() {
            return Value::from(number);
        }
        self.key.iter().map(|at| fields.get(*at).cloned().unwrap_or_default()).collect()
    }

    /// Returns the fields of a row as values of the types of their columns.
    pub(super) fn data(&self, fields: Vec<String>) -> RecordData {
        let columns = self.names.iter().zip(&self.types).zip(fields);
        columns.map(|((name, column), field)| (name.clone(), column.value(&field))).collect()
    }
}

/// Returns true if the rows have a first column that the header does not name: each has one field more, and the first fields
/// are distinct. R and pandas write the names of rows like this.
pub(super) fn has_row_names(header: &ByteRecord, sample: &[ByteRecord]) -> bool {
    let columns = header.len();
    let mut seen = HashSet::new();
    let is_longer = |row: &ByteRecord| row.len() == columns + 1;
    let has_own_name = |row: &ByteRecord| {
        row.get(0).is_some_and(|name| !name.trim_ascii().is_empty() && seen.insert(name.to_vec()))
    };
    columns > 1
        && !sample.is_empty()
        && header.iter().all(|name| !name.trim_ascii().is_empty())
        && sample.iter().all(is_longer)
        && !sample.iter().all(|row| is_blank_after(row, columns))
        && sample.iter().all(has_own_name)
}

/// Returns true if a row has no content after its first fields.
fn is_blank_after(row: &ByteRecord, fields: usize) -> bool {
    row.iter().skip(fields).all(|field| field.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], sample: &[&[&str]], row: &[&str], expect: Result<bool, &str>) {
        let sample: Vec<ByteRecord> = sample.iter().map(|row| ByteRecord::from(row.to_vec())).collect();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let wanted = FieldNames::default();
        let columns = Columns::new(Path::new("t.csv"), names, &wanted, &sample, Locale::for_table(false));
        let columns = columns.unwrap();
        let mut aligned = ByteRecord::from(row.to_vec());
        let result = columns.align(&mut aligned);
        assert_eq!(
            result.as_ref().map_err(|error| error.split(';').next().unwrap()),
            expect.as_ref().map_err(|error| *error)
        );
        if result.is_ok() {
            assert_eq!(aligned.len(), columns.names.len());
        }
    }

    #[test]
    fn rows_of_another_length_are_kept_if_they_fit() {
        let people: &[&[&str]] = &[&["1", "Ann", "x"], &["2", "Bob", "y"]];
        let names = &["id", "name", "note"];
        check(names, people, &["3", "Cleo"], Ok(true));
        check(names, people, &["3"], Ok(true));
        check(names, people, &["3", "Cleo", "z", "", " "], Ok(false));
        check(names, people, &["3", "Cleo", "z", "more"], Err("it has 4 fields and the header has 3"));
        // The rest of a text with a line break that is not quoted.
        check(names, people, &["second line", "z"], Err("it has 2 fields and the header has 3"));
        let texts: &[&[&str]] = &[&["Ann", "Oslo", "x"]];
        let names = &["name", "city", "note"];
        check(names, texts, &["Bob", "Rome"], Ok(true));
        check(names, texts, &["second line"], Err("it has 1 fields and the header has 3"));
        // Without its key, a row is none.
        check(
            &["n", "name", "id"],
            &[&["1", "a", "k"]],
            &["2", "b"],
            Err("it has 2 fields and the header has 3"),
        );
    }

    #[test]
    fn row_names_of_r_are_a_column() {
        let rows =
            |rows: &[&[&str]]| rows.iter().map(|row| ByteRecord::from(row.to_vec())).collect::<Vec<_>>();
        let header = ByteRecord::from(vec!["mpg", "cyl"]);
        for (sample, expect) in [
            (&[&["Mazda", "21", "6"][..], &["Fiat", "32", "4"]][..], true),
            (&[&["Mazda", "21", "6"], &["Mazda", "32", "4"]], false),
            (&[&["Mazda", "21", "6"], &["Fiat", "32"]], false),
            (&[&["21", "6", ""], &["32", "4", ""]], false),
            (&[], false),
        ] {
            assert_eq!(has_row_names(&header, &rows(sample)), expect, "{sample:?}");
        }
    }
}
