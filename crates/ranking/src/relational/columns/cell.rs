//! Values of columns as they are read.

use serde_json::{Map, Value};

use super::time;

/// Value of one field of one record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// No value, or `null`.
    Missing,
    /// A boolean value.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// A number that was written as a floating point number.
    Part(f64),
    /// A timestamp or date, as its number.
    Time(i64),
    /// The ordinal of a text in its segment.
    Text(u32),
    /// The empty text.
    Empty,
    /// A list of scalars, by its place among the lists of the block.
    List(u32),
    /// An object, whatever it has.
    Object,
}

/// Values of a field for a block of records.
#[derive(Debug, Default)]
pub struct CellBlock {
    /// A value for each record.
    pub cells: Vec<Cell>,
    /// Items of the lists.
    pub lists: Vec<Vec<Cell>>,
}

impl CellBlock {
    /// Replaces all values by those of `records` records without a value.
    pub fn clear(&mut self, records: usize) {
        self.cells.clear();
        self.cells.resize(records, Cell::Missing);
        self.lists.clear();
    }

    /// Returns the items of a list.
    pub(in super::super) fn list(&self, list: u32) -> &[Cell] {
        usize::try_from(list).ok().and_then(|at| self.lists.get(at)).map_or(&[], Vec::as_slice)
    }
}

impl Cell {
    /// Returns the identity of a value other than a list, by which equal values of a segment are found: its kind and its bits.
    pub(in super::super) fn identity(self) -> (u8, u64) {
        match self {
            Self::Missing => (0, 0),
            Self::Bool(value) => (1, value.into()),
            Self::Whole(number) => (2, number.cast_unsigned()),
            Self::Part(number) => (3, number.to_bits()),
            Self::Time(number) => (4, number.cast_unsigned()),
            Self::Text(ordinal) => (5, ordinal.into()),
            Self::Empty => (6, 0),
            Self::List(at) => (7, at.into()),
            Self::Object => (8, 0),
        }
    }

    /// Returns the value as JSON. `text_of` returns the text of an ordinal. A list has no value of its own here, and an object
    /// is empty.
    pub(in super::super) fn value<'a>(self, text_of: impl FnOnce(u32) -> Option<&'a str>) -> Option<Value> {
        match self {
            Self::Missing | Self::List(_) => None,
            Self::Bool(value) => Some(Value::Bool(value)),
            Self::Whole(number) => Some(number.into()),
            Self::Part(number) => Some(number.into()),
            Self::Time(number) => Some(time::value(number)),
            Self::Text(ordinal) => text_of(ordinal).map(Value::from),
            Self::Empty => Some(Value::String(String::new())),
            Self::Object => Some(Value::Object(Map::new())),
        }
    }
}
