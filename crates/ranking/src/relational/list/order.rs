//! Order of the records of a list, and the first ones of it.

use fetchwell_core::fit::characters;
use fetchwell_core::record::{Capability, FieldDetail, Numeric, SortValue};
use fetchwell_source::{Direction, RecordsQuery};
use serde_json::Value;

use super::super::sort_position::SortPosition;
use super::super::stream_row::StreamRow;

/// Maximum number of characters of a text that orders records. Texts that begin with the same ones are ordered by key.
const MAX_SORT_TEXT: usize = 200;

/// Compares the positions of two records in the order of a list.
pub(super) fn compare_positions(
    direction: Direction,
    a: &SortPosition,
    b: &SortPosition,
) -> std::cmp::Ordering {
    let ascending = (&a.value, &a.key, a.stream).cmp(&(&b.value, &b.key, b.stream));
    match direction {
        Direction::Ascending => ascending,
        Direction::Descending => ascending.reverse(),
    }
}

/// Order of a list by a field, the same for all streams of the list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListOrder<'a> {
    /// Field that the query names.
    field: Option<&'a str>,
    /// True if some values are numbers, or texts that are. Other texts are then before the numbers.
    has_numbers: bool,
}

impl<'a> ListOrder<'a> {
    /// Creates the order of a list of some streams.
    pub(super) fn new(query: &'a RecordsQuery, streams: &[StreamRow]) -> Self {
        let field = query.sort.as_deref();
        // A value inside of an object has no capabilities.
        let is_number = |field: &FieldDetail| field.capabilities.contains(&Capability::Sum);
        let details = |field| streams.iter().filter_map(move |stream| stream.detail.field(field));
        let has_numbers =
            field.is_some_and(|field| details(field).next().is_none() || details(field).any(is_number));
        Self { field, has_numbers }
    }

    /// Returns true if other texts are before numbers. An import can change this, and with it the order.
    pub(super) fn has_numbers(&self) -> bool {
        self.has_numbers
    }

    /// Returns the field of an order that the table of records does not have: the field that the query names, unless it is the cursor
    /// field and its values are in this order in the table.
    pub(super) fn field(&self, stream: &StreamRow) -> Option<&'a str> {
        let cursor_field = stream.detail.cursor_field.as_deref().unwrap_or("emitted_at");
        let is_text = |kind: &String| !matches!(kind.as_str(), "number" | "integer");
        let has_texts =
            |field| stream.detail.field(field).is_some_and(|field| field.types.iter().any(is_text));
        self.field.filter(|field| *field != cursor_field || self.has_numbers && has_texts(field))
    }

    /// Returns the value that orders a record by a field of any type.
    pub(super) fn value(&self, value: Option<&Value>) -> SortValue {
        let begin = |text| characters(text, 0, MAX_SORT_TEXT);
        match value {
            Some(value) if self.has_numbers => match (Numeric::from_value(value), value) {
                (Some(number), _) => SortValue::number(number.as_f64()),
                (None, Value::String(text)) if !text.is_empty() => SortValue::non_number(begin(text)),
                (None, Value::Bool(_)) => SortValue::from_value(Some(value)),
                (None, _) => SortValue::Missing,
            },
            Some(Value::String(text)) => SortValue::text(begin(text)),
            value => SortValue::from_value(value),
        }
    }
}

/// Page that is read: the stream, the position before it, and the digest of the query.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageStart<'a> {
    pub(super) stream: &'a StreamRow,
    pub(super) after: Option<&'a SortPosition>,
    pub(super) question: u64,
}

impl PageStart<'_> {
    /// Returns the position of a record with a value.
    pub(super) fn place(&self, value: SortValue, key: &str) -> SortPosition {
        SortPosition { question: self.question, value, key: key.to_owned(), stream: self.stream.row }
    }
}

/// First records of an order, of those that were added in any order.
pub(super) struct FirstPlaces<'a> {
    direction: Direction,
    after: Option<&'a SortPosition>,
    pub(super) wanted: usize,
    places: Vec<SortPosition>,
}

impl<'a> FirstPlaces<'a> {
    /// Creates the first records of a page, with one more than it takes.
    pub(super) fn new(query: &RecordsQuery, after: Option<&'a SortPosition>) -> Self {
        Self { direction: query.direction, after, wanted: query.limit + 1, places: Vec::new() }
    }

    /// Adds a record. Returns false for one that is not behind the position before the page.
    pub(super) fn add(&mut self, place: SortPosition) -> bool {
        let Self { direction, after, wanted, places } = self;
        if after.is_some_and(|after| compare_positions(*direction, &place, after).is_le()) {
            return false;
        }
        places.push(place);
        if places.len() >= 4 * (*wanted).max(64) {
            places.select_nth_unstable_by(*wanted, |a, b| compare_positions(*direction, a, b));
            places.truncate(*wanted);
        }
        true
    }

    pub(super) fn finish(mut self) -> Vec<SortPosition> {
        self.places.sort_unstable_by(|a, b| compare_positions(self.direction, a, b));
        self.places.truncate(self.wanted);
        self.places
    }
}
