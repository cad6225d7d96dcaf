//! The row that names the columns of a table: the first one that the rows below fit.
//!
//! The first row is the header of most tables. A row further down is the header only if the first one is much narrower
//! than the table, as titles and notes are, and that row has names.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::super::values::time_of_value;

/// Maximum number of rows above a header.
const MAX_ROWS_ABOVE: usize = 30;

/// Maximum number of rows below a header that are compared with it.
const MAX_ROWS_BELOW: usize = 50;

/// Maximum number of rows that are needed to find a header.
pub(crate) const MAX_COMPARED_ROWS: usize = MAX_ROWS_ABOVE + MAX_ROWS_BELOW;

/// Maximum length of a column's name in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The shape of a row, as far as headers differ from other rows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowShape {
    /// Number of fields, with empty ones. `None` in a spreadsheet, which does not store empty cells at the end of a row.
    fields: Option<usize>,
    /// Number of fields up to the last one that is not empty.
    extent: usize,
    /// Number of fields that are not empty.
    filled: usize,
    /// Number of distinct fields that are not empty.
    distinct: usize,
    /// Number of distinct fields that can be names of columns.
    names: usize,
}

impl RowShape {
    /// Returns the shape of a row of a text file.
    pub(crate) fn from_fields<'a>(fields: impl ExactSizeIterator<Item = &'a str>) -> Self {
        let count = fields.len();
        let fields = fields.map(|field| Some(field.trim()).filter(|field| !field.is_empty()));
        let fields = fields.map(|field| field.map(|field| (Cow::Borrowed(field), can_be_name(field))));
        Self { fields: Some(count), ..Self::new(fields) }
    }

    /// Returns the shape of a row of a spreadsheet.
    pub(crate) fn from_cells(cells: &[Option<Value>]) -> Self {
        Self::new(cells.iter().map(|cell| match cell {
            Some(Value::String(text)) => Some((Cow::Borrowed(text.as_str()), can_be_name(text))),
            other => other.as_ref().map(|value| (Cow::Owned(value.to_string()), false)),
        }))
    }

    /// Counts the fields, each with its text and true if that can be a name. `None` is an empty field.
    fn new<'a>(fields: impl Iterator<Item = Option<(Cow<'a, str>, bool)>>) -> Self {
        let (mut shape, mut seen) = (Self::default(), HashSet::new());
        for (at, field) in fields.enumerate() {
            let Some((text, can_be_name)) = field else { continue };
            shape.extent = at + 1;
            shape.filled += 1;
            if seen.insert(text) {
                shape.distinct += 1;
                shape.names += usize::from(can_be_name);
            }
        }
        shape
    }

    /// Returns true if most of the rows below have no field beyond the last one of this row, and few have twice as many.
    fn fits(&self, below: &[Self]) -> bool {
        let compared = below.iter().take(MAX_ROWS_BELOW);
        let fitting = compared.clone().filter(|row| row.extent <= self.extent).count();
        let mut filled: Vec<usize> = compared.map(|row| row.filled).collect();
        filled.sort_unstable();
        let typical = filled.get(filled.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        fitting * 2 >= filled.len() && self.filled * 2 > typical
    }

    /// Returns true if most fields are distinct names.
    fn has_names(&self) -> bool {
        self.filled > 1 && self.names * 2 > self.filled
    }

    /// Returns true if all fields differ, such as a name and years.
    fn has_labels(&self) -> bool {
        self.filled > 1 && self.names > 0 && self.distinct == self.filled
    }

    /// Returns true for a row that can be a title or note above a header.
    fn is_above(&self, header: &Self) -> bool {
        if self.filled * 2 < header.filled {
            return true;
        }
        match self.fields.zip(header.fields) {
            None => self.filled < 2,
            // All rows of a text file have the same number of fields, and some programs write one more than names.
            Some((fields, wanted)) => {
                let is_narrower = fields + 1 < wanted || self.names < self.filled;
                fields < wanted && (is_narrower || self.filled * 2 <= header.filled)
            }
        }
    }
}

/// Returns the index of the header among the first rows of a table: 0, unless the rows below do not fit the first one.
pub(crate) fn find_header(rows: &[RowShape]) -> usize {
    let (first, below) = match rows.split_first() {
        Some((first, below)) if !below.is_empty() => (first, below),
        _ => return 0,
    };
    if first.fits(below) {
        return 0;
    }
    let find = |is_candidate: fn(&RowShape) -> bool| {
        let candidates = rows.iter().enumerate().take(MAX_ROWS_ABOVE + 1).skip(1);
        candidates
            .map(|(at, row)| (at, row, rows.get(at + 1..).unwrap_or_default()))
            .find(|(_, row, below)| is_candidate(row) && !below.is_empty() && row.fits(below))
    };
    let found = find(RowShape::has_names).or_else(|| find(RowShape::has_labels));
    match found {
        Some((at, header, _)) if rows.iter().take(at).all(|row| row.is_above(header)) => at,
        _ => 0,
    }
}

/// Returns true if a text can be the name of a column: it has a letter, and is no day, time, address or long text.
fn can_be_name(text: &str) -> bool {
    let is_time =
        || text.bytes().any(|byte| byte.is_ascii_digit()) && time_of_value(&Value::from(text)).is_some();
    text.len() <= MAX_NAME_BYTES
        && text.chars().any(char::is_alphabetic)
        && !text.contains(['@', '\n'])
        && !text.contains("://")
        && !text.eq_ignore_ascii_case("true")
        && !text.eq_ignore_ascii_case("false")
        && !is_time()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the header of a table as a text file and as a sheet. `|` separates fields.
    #[track_caller]
    fn check(table: &[&str], in_file: usize, in_sheet: usize) {
        let fields: Vec<Vec<&str>> = table.iter().map(|row| row.split('|').collect()).collect();
        let shapes: Vec<RowShape> =
            fields.iter().map(|row| RowShape::from_fields(row.iter().copied())).collect();
        assert_eq!(find_header(&shapes), in_file, "file {table:?}");
        let cell = |field: &&str| match field.parse::<i64>() {
            Ok(number) => Some(Value::from(number)),
            Err(_) => (!field.is_empty()).then(|| Value::from(*field)),
        };
        let cells = fields.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>());
        let shapes: Vec<RowShape> = cells.map(|cells| RowShape::from_cells(&cells)).collect();
        assert_eq!(find_header(&shapes), in_sheet, "sheet {table:?}");
    }

    #[test]
    fn first_row_is_the_header_of_a_plain_table() {
        for table in [
            &[][..],
            &["name"],
            &["a|b"],
            &["name", "Ann", "Bob"],
            &["id|name|note", "1|Ann|x", "2|Bob|"],
            &["name|city", "Ann|Oslo", "Bob|Rome"],
            // Names that are numbers, and missing names.
            &["|2020|2021", "France|1|2", "Spain|3|4"],
            &["1|2|3", "Ann|Oslo|x", "Bob|Rome|y"],
            &["name|city|", "Ann|Oslo|x", "Bob|Rome|y"],
            &["name||", "Ann||", "Bob||"],
            &["name|name|name", "a|b|c", "d|e|f"],
            // Rows that are wider than the header.
            &["name", "Ann", "Bob", "Smith|John", "Doe|Jane"],
            &["a|b|c", "Ann|x|y|z", "Bob|x|y|z"],
            &["a|b|c", "1|2|3|", "4|5|6|"],
        ] {
            check(table, 0, 0);
        }
    }

    #[test]
    fn titles_and_notes_stand_above_a_header() {
        check(&["Annual export", "Item|Count", "Hammer|3", "Saw|5"], 1, 1);
        check(
            &["Notes:", "Some are missing.", "First|Last|URL|On", "Ada|M|https://x.test|05 Mar 2024"],
            2,
            2,
        );
        // A title with as many fields as the table.
        check(&["Annual export|||", "|||", "Item|Count|Price|Place", "Saw|5|2|x", "Nail|9|1|y"], 2, 2);
        check(
            &["Report|2024", "By|Ann", "id|name|n|date|note", "1|x|2|2024-01-01|", "2|y|3|2024-01-02|z"],
            2,
            2,
        );
        check(&["|Q1||Q2|", "Region|Rev|Cost|Rev|Cost", "North|1|2|3|4", "South|1|2|3|4"], 1, 1);
        check(&["GDP by country", "Country|2019|2020", "France|1|2", "Spain|3|4"], 1, 1);
        // A text file has as many names as fields; a sheet can have columns without a name.
        check(&["Report|2024", "id|name|amount", "1|x|2", "2|y|3"], 1, 0);
        check(&["Phone list|", "Name|Phone", "Ann|1", "Bob|2"], 0, 1);
    }

    #[test]
    fn names_have_letters_and_are_no_times() {
        for (text, expect) in [
            ("Name", true),
            ("1st name", true),
            ("Größe (cm)", true),
            ("12", false),
            ("05 Mar 2024", false),
            ("2024-03-05T10:00:00Z", false),
            ("ann@x.test", false),
            ("https://x.test", false),
            ("TRUE", false),
            ("-", false),
        ] {
            assert_eq!(can_be_name(text), expect, "{text}");
        }
        assert!(!can_be_name(&"x".repeat(MAX_NAME_BYTES + 1)));
    }
}
