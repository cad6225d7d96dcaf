//! First records of an order by a field, from its column.

use std::cmp::Ordering;
use std::collections::HashMap;

use fetchwell_core::record::SortValue;
use fetchwell_source::Direction;
use serde_json::Value;

use super::super::interrupt::Interrupt;
use super::super::predicate::Predicate;
use super::filter::{matching, used_texts};
use super::time::{self, TimeOrder};
use super::{Cell, CellBlock, ColumnError, ColumnSegment, each_block, each_text};

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

/// Records that may be among the first, by the values that order them.
#[derive(Debug)]
pub(in super::super) struct Candidates {
    /// Row ids of the records with the value of the one before the first: their keys decide.
    pub(in super::super) ties: Vec<i64>,
    /// Records behind it, fewer than wanted.
    pub(in super::super) leading: Vec<Candidate>,
    /// Value behind those of `leading`, with the row ids of the records that have it: their keys decide.
    pub(in super::super) last: Option<(SortValue, Vec<i64>)>,
}

/// Record with the value that orders it.
#[derive(Debug)]
pub(in super::super) struct Candidate {
    pub(in super::super) value: SortValue,
    pub(in super::super) row: i64,
}

/// Order of a record relative to the value of the one before the first, and to the last value so far.
#[derive(Debug, Clone, Copy)]
struct Comparison {
    to_after: Option<Ordering>,
    to_last: Option<Ordering>,
}

/// Numbers of records by their segments.
type SegmentDocs = Vec<Vec<u32>>;

/// Candidates that are being chosen from all records.
struct Choice<'a> {
    order: &'a ColumnOrder<'a>,
    /// Records with the value of the one before the first.
    ties: SegmentDocs,
    /// Records behind it and before `last`, each with its segment and number.
    leading: Vec<(SortValue, usize, u32)>,
    /// Value of the last one of the first records so far, with the records that have it.
    last: Option<SortValue>,
    last_ties: SegmentDocs,
    /// Places of `last`, and of the value before the first, if they are times.
    last_time: Option<TimeOrder>,
    after_time: Option<TimeOrder>,
}

impl ColumnOrder<'_> {
    /// Returns the records that may be among the first ones; `None` if too many texts are to be compared.
    pub(in super::super) fn candidates(
        &self,
        segments: &[Box<dyn ColumnSegment + '_>],
        interrupt: &Interrupt,
    ) -> Result<Option<Candidates>, ColumnError> {
        let mut choice = Choice {
            order: self,
            ties: vec![Vec::new(); segments.len()],
            leading: Vec::new(),
            last: None,
            last_ties: vec![Vec::new(); segments.len()],
            last_time: None,
            after_time: self.after.filter(|after| self.is_value(after)).and_then(time_of),
        };
        for (at, segment) in segments.iter().enumerate() {
            if !choice.add_segment(at, segment.as_ref(), interrupt)? {
                return Ok(None);
            }
        }
        choice.drop_others();
        let mut leading = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            let ours = choice.leading.iter().filter(|(_, segment, _)| *segment == at);
            let (values, docs): (Vec<&SortValue>, Vec<u32>) =
                ours.map(|(value, _, doc)| (value, *doc)).unzip();
            let mut rows = Vec::new();
            segment.rows(&docs, &mut rows)?;
            let both = values.into_iter().zip(rows);
            leading.extend(both.map(|(value, row)| Candidate { value: value.clone(), row }));
        }
        let ties = rows_of(segments, choice.ties)?;
        let last = rows_of(segments, choice.last_ties)?;
        Ok(Some(Candidates { ties, leading, last: choice.last.map(|value| (value, last)) }))
    }

    /// Returns true if a value is as records have it in this order. An earlier release stored times without a zone as they were
    /// written, and the record before the first may be of a stream that is read in that order.
    fn is_value(&self, value: &SortValue) -> bool {
        match value {
            SortValue::Text(text) | SortValue::NonNumber(text) => {
                (self.value_of)(Some(&Value::from(text.as_str()))) == *value
            }
            SortValue::Missing | SortValue::Number(_) => true,
        }
    }

    /// Compares two values in the direction of the order.
    fn compare(&self, a: &SortValue, b: &SortValue) -> Ordering {
        match self.direction {
            Direction::Ascending => a.cmp(b),
            Direction::Descending => b.cmp(a),
        }
    }
}

impl Choice<'_> {
    /// Adds the records of a segment. Returns false if there are too many texts.
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
            each_text(segment, field, &ordinals, interrupt, |ordinal, text| {
                texts.insert(ordinal, value_of(Some(&Value::from(text))));
            })?;
        }
        let mut is_known = true;
        each_block(segment, field, &docs, interrupt, |docs, block| {
            for (doc, cell) in docs.iter().zip(&block.cells) {
                is_known = is_known && self.add(at, *doc, *cell, block, &texts);
            }
            Ok(())
        })?;
        Ok(is_known)
    }

    /// Adds a record. Returns false if its text is not known.
    fn add(
        &mut self,
        segment: usize,
        doc: u32,
        cell: Cell,
        block: &CellBlock,
        texts: &HashMap<u32, SortValue>,
    ) -> bool {
        let known = if let Cell::Time(number) = cell { self.compare_time(number) } else { None };
        if known.is_some_and(|known| self.add_tied(known, segment, doc)) {
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
        let text = if let Cell::Text(ordinal) = cell { texts.get(&ordinal) } else { None };
        let Some(value) = made.as_ref().or(text) else { return false };
        if known.is_none() {
            let compare = |other: &SortValue| self.order.compare(value, other);
            let (to_after, to_last) = (self.order.after.map(compare), self.last.as_ref().map(compare));
            if self.add_tied(Comparison { to_after, to_last }, segment, doc) {
                return true;
            }
        }
        self.leading.push((value.clone(), segment, doc));
        if self.leading.len() >= 4 * self.order.wanted.max(64) {
            self.drop_others();
        }
        true
    }

    /// Adds a record that has the value before the first or the last one. Returns true for such a record, and for one that is not
    /// between them.
    fn add_tied(&mut self, comparison: Comparison, segment: usize, doc: u32) -> bool {
        match (comparison.to_after, comparison.to_last) {
            (Some(Ordering::Equal), _) => push(&mut self.ties, segment, doc),
            (Some(Ordering::Less), _) | (_, Some(Ordering::Greater)) => {}
            (_, Some(Ordering::Equal)) => push(&mut self.last_ties, segment, doc),
            (_, Some(Ordering::Less) | None) => return false,
        }
        true
    }

    /// Returns the order of a time relative to the value before the first, and to the last one; `None` if they are to be compared as
    /// values.
    fn compare_time(&self, number: i64) -> Option<Comparison> {
        let place = time::order(number);
        let compare = |other: TimeOrder| match self.order.direction {
            Direction::Ascending => place.cmp(&other),
            Direction::Descending => other.cmp(&place),
        };
        if self.order.after.is_some() != self.after_time.is_some()
            || self.last.is_some() != self.last_time.is_some()
        {
            return None;
        }
        Some(Comparison { to_after: self.after_time.map(compare), to_last: self.last_time.map(compare) })
    }

    /// Drops the records that are not among the first ones, whatever their keys.
    fn drop_others(&mut self) {
        let (order, at) = (self.order, self.order.wanted.saturating_sub(1));
        if self.leading.len() <= at {
            return;
        }
        let compare =
            |(a, ..): &(SortValue, usize, u32), (b, ..): &(SortValue, usize, u32)| order.compare(a, b);
        let (_, last, _) = self.leading.select_nth_unstable_by(at, compare);
        let last = last.0.clone();
        // Records with the last value so far are behind the new one.
        self.last_ties.iter_mut().for_each(Vec::clear);
        let last_ties = &mut self.last_ties;
        self.leading.retain(|(value, segment, doc)| {
            let place = order.compare(value, &last);
            if place.is_eq() {
                push(last_ties, *segment, *doc);
            }
            place.is_lt()
        });
        self.last_time = time_of(&last);
        self.last = Some(last);
    }
}

fn push(docs: &mut SegmentDocs, segment: usize, doc: u32) {
    if let Some(docs) = docs.get_mut(segment) {
        docs.push(doc);
    }
}

/// Returns the row ids of records.
fn rows_of(segments: &[Box<dyn ColumnSegment + '_>], docs: SegmentDocs) -> Result<Vec<i64>, ColumnError> {
    let mut rows = Vec::new();
    for (segment, docs) in segments.iter().zip(docs) {
        segment.rows(&docs, &mut rows)?;
    }
    Ok(rows)
}

/// Returns the place of a sort value that is a time.
fn time_of(value: &SortValue) -> Option<TimeOrder> {
    match value {
        SortValue::Text(text) | SortValue::NonNumber(text) => TimeOrder::of_text(text),
        SortValue::Missing | SortValue::Number(_) => None,
    }
}
