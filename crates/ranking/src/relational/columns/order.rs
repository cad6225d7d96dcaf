//! First records of an order by a field, from its column.

use std::collections::HashMap;

use fetchwell_core::record::{SortValue, parse_timestamp};
use fetchwell_source::Direction;
use serde_json::Value;

use super::super::interrupt::Interrupt;
use super::super::predicate::Predicate;
use super::filter::{matching, used_texts};
use super::time::{TimeForm, decode};
use super::{Cell, CellBlock, ColumnError, ColumnSegment, each_block};

/// Maximum number of records of which the keys are compared. More records with one value are ordered without columns.
pub(in super::super) const MAX_CANDIDATES: usize = 20_000;

/// Maximum number of different texts that are compared in memory.
const MAX_TEXTS: usize = 100_000;

/// Order by a field of the records that pass a filter.
pub(in super::super) struct ColumnOrder<'a> {
    pub(in super::super) predicate: &'a Predicate,
    /// Place of the field among the opened ones.
    pub(in super::super) field: usize,
    pub(in super::super) direction: Direction,
    /// Value of the record before the first.
    pub(in super::super) after: Option<&'a SortValue>,
    /// Number of records.
    pub(in super::super) wanted: usize,
    /// Returns the value that orders a record.
    pub(in super::super) value_of: &'a dyn Fn(Option<&Value>) -> SortValue,
}

/// Record that may be one of the first.
#[derive(Debug)]
pub(in super::super) struct Candidate {
    pub(in super::super) value: SortValue,
    pub(in super::super) row: i64,
}

/// Records of all segments that may be among the first.
struct Candidates<'a> {
    order: &'a ColumnOrder<'a>,
    /// Records with the value of the one before the first: their keys decide.
    ties: Vec<(SortValue, usize, u32)>,
    /// Records behind it, each with its segment and number.
    kept: Vec<(SortValue, usize, u32)>,
    /// Number of records at which those that are not among the first are dropped.
    full: usize,
    /// Value of the last one of the first records so far.
    last: Option<SortValue>,
    /// Millisecond of `last`, and of `after`, if they are timestamps.
    last_millis: Option<i64>,
    after_millis: Option<i64>,
}

impl ColumnOrder<'_> {
    /// Returns all records that may be among the first ones, in no order; `None` if there are too many of them.
    pub(in super::super) fn candidates(
        &self,
        segments: &[Box<dyn ColumnSegment + '_>],
        interrupt: &Interrupt,
    ) -> Result<Option<Vec<Candidate>>, ColumnError> {
        let mut candidates = Candidates {
            order: self,
            ties: Vec::new(),
            kept: Vec::new(),
            full: 4 * self.wanted.max(64),
            last: None,
            last_millis: None,
            after_millis: self.after.filter(|after| self.is_value(after)).and_then(millis_of),
        };
        for (at, segment) in segments.iter().enumerate() {
            if !candidates.add_segment(at, segment.as_ref(), interrupt)? {
                return Ok(None);
            }
        }
        let mut found = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            let ours =
                candidates.ties.iter().chain(&candidates.kept).filter(|(_, segment, _)| *segment == at);
            let (values, docs): (Vec<&SortValue>, Vec<u32>) =
                ours.map(|(value, _, doc)| (value, *doc)).unzip();
            let mut rows = Vec::new();
            segment.rows(&docs, &mut rows)?;
            let both = values.into_iter().zip(rows);
            found.extend(both.map(|(value, row)| Candidate { value: value.clone(), row }));
        }
        Ok(Some(found))
    }

    /// Returns true if records have such a value in this order. The record before the first may be of a stream where the field
    /// has texts, while this one has numbers and orders no texts.
    fn is_value(&self, value: &SortValue) -> bool {
        let SortValue::Text(text) = value else { return true };
        matches!((self.value_of)(Some(&Value::from(text.as_str()))), SortValue::Text(_))
    }

    /// Compares two values in the direction of the order.
    fn compare(&self, a: &SortValue, b: &SortValue) -> std::cmp::Ordering {
        match self.direction {
            Direction::Ascending => a.cmp(b),
            Direction::Descending => b.cmp(a),
        }
    }
}

impl Candidates<'_> {
    /// Adds the records of a segment. Returns false if there are too many.
    fn add_segment(
        &mut self,
        at: usize,
        segment: &dyn ColumnSegment,
        interrupt: &Interrupt,
    ) -> Result<bool, ColumnError> {
        let ColumnOrder { field, value_of, predicate, .. } = *self.order;
        let docs = matching(segment, predicate, interrupt)?;
        let mut texts: HashMap<u32, SortValue> = HashMap::new();
        if segment.text_count(field)? > 0 {
            let ordinals = used_texts(segment, field, &docs, interrupt)?;
            if ordinals.len() > MAX_TEXTS {
                return Ok(false);
            }
            segment.texts(field, &ordinals, &mut |ordinal, text| {
                texts.insert(ordinal, value_of(Some(&Value::from(text))));
            })?;
        }
        let mut has_room = true;
        each_block(segment, field, &docs, interrupt, |docs, block| {
            for (doc, cell) in docs.iter().zip(&block.cells) {
                has_room = has_room && self.add(at, *doc, *cell, block, &texts);
            }
            Ok(())
        })?;
        Ok(has_room)
    }

    /// Adds a record. Returns false if there are too many.
    fn add(
        &mut self,
        segment: usize,
        doc: u32,
        cell: Cell,
        block: &CellBlock,
        texts: &HashMap<u32, SortValue>,
    ) -> bool {
        if self.is_outside(cell) {
            return true;
        }
        #[expect(clippy::cast_precision_loss, reason = "all sort values are floating point numbers")]
        let made = match cell {
            Cell::Text(_) => None,
            Cell::Whole(number) => Some(SortValue::number(number as f64)),
            Cell::Part(number) => Some(SortValue::number(number)),
            // A list has no sort value.
            Cell::List(list) => Some((self.order.value_of)(Some(&Value::Array(
                block.list(list).iter().map(|_| Value::Null).collect(),
            )))),
            cell => Some((self.order.value_of)(cell.value(|_| None).as_ref())),
        };
        let known = if let Cell::Text(ordinal) = cell { texts.get(&ordinal) } else { None };
        let Some(value) = made.as_ref().or(known) else { return false };
        match self.order.after.map(|after| self.order.compare(value, after)) {
            Some(std::cmp::Ordering::Less) => return true,
            Some(std::cmp::Ordering::Equal) => {
                self.ties.push((value.clone(), segment, doc));
                return self.ties.len() <= MAX_CANDIDATES;
            }
            Some(std::cmp::Ordering::Greater) | None => {}
        }
        if self.last.as_ref().is_some_and(|last| self.order.compare(value, last).is_gt()) {
            return true;
        }
        self.kept.push((value.clone(), segment, doc));
        self.kept.len() < self.full || self.drop_others()
    }

    /// Returns true for a timestamp that is before the first or behind the last record.
    fn is_outside(&self, cell: Cell) -> bool {
        let Cell::Time(number) = cell else { return false };
        let (millis, form) = decode(number);
        if form == TimeForm::Date {
            return false;
        }
        let is_beyond = |a: i64, b: i64| match self.order.direction {
            Direction::Ascending => a > b,
            Direction::Descending => a < b,
        };
        self.last_millis.is_some_and(|last| is_beyond(millis, last))
            || self.after_millis.is_some_and(|after| is_beyond(after, millis))
    }

    /// Drops the records that are not among the first ones. Returns false if too many have the value of the last one.
    fn drop_others(&mut self) -> bool {
        let order = self.order;
        let compare =
            |(a, ..): &(SortValue, usize, u32), (b, ..): &(SortValue, usize, u32)| order.compare(a, b);
        let (_, last, _) = self.kept.select_nth_unstable_by(order.wanted.saturating_sub(1), compare);
        let last = last.0.clone();
        self.kept.retain(|(value, ..)| order.compare(value, &last).is_le());
        self.full = 2 * self.kept.len().max(2 * order.wanted.max(64));
        self.last_millis = millis_of(&last);
        self.last = Some(last);
        self.kept.len() <= MAX_CANDIDATES
    }
}

/// Returns the millisecond of a sort value that is a timestamp of whole milliseconds.
fn millis_of(value: &SortValue) -> Option<i64> {
    let SortValue::Text(text) = value else { return None };
    let timestamp = parse_timestamp(text)?;
    (timestamp.as_nanosecond() % 1_000_000 == 0).then(|| timestamp.as_millisecond())
}
