//! Evaluation of filters over columns.
//!
//! Each condition is evaluated with the values that parsing the records would give: a text once in each segment, however many
//! records have it, and a number for each record. Timestamps are compared as numbers.

use std::collections::HashMap;

use fetchwell_core::record::start_of_day;
use fetchwell_source::RangeOperator;
use fetchwell_source::manifest::kinds::{is_day, is_time};
use serde_json::Value;

use super::super::interrupt::Interrupt;
use super::super::predicate::{Comparand, ParsedTest, Predicate, accepts};
use super::time::{self, TimeOrder};
use super::{Cell, CellBlock, ColumnError, ColumnSegment, each_block, each_text};

/// Returns the records of a segment that pass a filter.
pub(crate) fn matching(
    segment: &dyn ColumnSegment,
    predicate: &Predicate,
    interrupt: &Interrupt,
) -> Result<Vec<u32>, ColumnError> {
    let mut docs = segment.docs().to_vec();
    for (field, test) in predicate.tests() {
        if docs.is_empty() {
            break;
        }
        let mut test = CellTest::new(test, segment, field, &docs, interrupt)?;
        let mut passing = Vec::new();
        each_block(segment, field, &docs, interrupt, |docs, block| {
            let cells = docs.iter().zip(&block.cells);
            passing.extend(cells.filter(|(_, cell)| test.passes(**cell, block)).map(|(doc, _)| *doc));
            Ok(())
        })?;
        docs = passing;
    }
    Ok(docs)
}

/// Returns the rows of all records of some segments that pass a filter.
pub(crate) fn matching_rows(
    segments: &[Box<dyn ColumnSegment + '_>],
    predicate: &Predicate,
    interrupt: &Interrupt,
) -> Result<Vec<i64>, ColumnError> {
    let mut rows = Vec::new();
    for segment in segments {
        let docs = matching(segment.as_ref(), predicate, interrupt)?;
        segment.rows(&docs, &mut rows)?;
    }
    Ok(rows)
}

/// First and last of the times that pass a test.
type Span = (TimeOrder, TimeOrder);

/// Test of times by their numbers.
#[derive(Debug)]
enum TimeTest {
    /// Times in some spans, and dates with some numbers.
    Equal { spans: Vec<Span>, numbers: Vec<i64> },
    /// All times by their order relative to a bound.
    Range(RangeOperator, TimeOrder),
    /// Times in a span, while dates are compared as text.
    TimeSpan(Option<Span>),
    /// All times are compared as text.
    Text,
}

/// Test of a condition, with the results for the texts of a segment.
#[derive(Debug)]
struct CellTest<'a> {
    test: &'a ParsedTest,
    /// Result of each text of the segment, as bits by its ordinal.
    texts: Vec<u64>,
    times: TimeTest,
    /// Results for times that are compared as text.
    time_texts: HashMap<i64, bool>,
    passes_missing: bool,
    passes_empty: bool,
    passes_object: bool,
}

impl<'a> CellTest<'a> {
    fn new(
        test: &'a ParsedTest,
        segment: &dyn ColumnSegment,
        field: usize,
        docs: &[u32],
        interrupt: &Interrupt,
    ) -> Result<Self, ColumnError> {
        let texts = if let ParsedTest::Exists(_) = test {
            Vec::new()
        } else {
            passing_texts(test, segment, field, docs, interrupt)?
        };
        let passes = |cell: Cell| test.passes(cell.value(|_| None).as_ref());
        Ok(Self {
            test,
            texts,
            times: TimeTest::new(test),
            time_texts: HashMap::new(),
            passes_missing: passes(Cell::Missing),
            passes_empty: passes(Cell::Empty),
            passes_object: passes(Cell::Object),
        })
    }

    fn passes(&mut self, cell: Cell, block: &CellBlock) -> bool {
        if let ParsedTest::Exists(exists) = self.test {
            return (cell != Cell::Missing) == *exists;
        }
        match cell {
            Cell::Missing => self.passes_missing,
            Cell::Empty => self.passes_empty,
            Cell::Object => self.passes_object,
            Cell::Bool(value) => self.test.passes(Some(&Value::Bool(value))),
            Cell::Whole(number) => self.test.passes(Some(&number.into())),
            Cell::Part(number) => self.test.passes(Some(&number.into())),
            Cell::Time(number) => self.passes_time(number),
            Cell::Text(ordinal) => self.passes_text(ordinal),
            Cell::List(list) => block.list(list).iter().any(|item| self.passes(*item, block)),
        }
    }

    fn passes_text(&self, ordinal: u32) -> bool {
        let bits = usize::try_from(ordinal / u64::BITS).ok().and_then(|at| self.texts.get(at));
        bits.is_some_and(|bits| bits & 1 << (ordinal % u64::BITS) != 0)
    }

    fn passes_time(&mut self, number: i64) -> bool {
        let is_inside = |place: TimeOrder, (first, last): &Span| (*first..=*last).contains(&place);
        let place = time::order(number);
        match &self.times {
            TimeTest::Range(operator, bound) => return accepts(*operator, place.cmp(bound)),
            TimeTest::Equal { spans, .. } if place.is_time() => {
                return spans.iter().any(|span| is_inside(place, span));
            }
            TimeTest::Equal { numbers, .. } => return numbers.contains(&number),
            TimeTest::TimeSpan(span) if place.is_time() => {
                return span.as_ref().is_some_and(|span| is_inside(place, span));
            }
            TimeTest::TimeSpan(_) | TimeTest::Text => {}
        }
        let test = self.test;
        *self.time_texts.entry(number).or_insert_with(|| test.passes(Some(&time::value(number))))
    }
}

/// Evaluates a test for the texts of some records. Returns the results as bits by ordinals.
fn passing_texts(
    test: &ParsedTest,
    segment: &dyn ColumnSegment,
    field: usize,
    docs: &[u32],
    interrupt: &Interrupt,
) -> Result<Vec<u64>, ColumnError> {
    let count = segment.text_count(field)?;
    let words = u64::BITS as usize;
    let mut bits = vec![0_u64; count.div_ceil(words)];
    if count == 0 {
        return Ok(bits);
    }
    let mut set = |ordinal: u32| {
        let at = usize::try_from(ordinal / u64::BITS).unwrap_or(usize::MAX);
        if let Some(bits) = bits.get_mut(at) {
            *bits |= 1 << (ordinal % u64::BITS);
        }
    };
    if let Some(wanted) = wanted_texts(test)
        && !segment.has_addresses(field)?
    {
        for text in wanted {
            segment.ordinal(field, text)?.into_iter().for_each(&mut set);
        }
        return Ok(bits);
    }
    let ordinals: Vec<u32> = if docs.len() >= count / 4 {
        (0..u32::try_from(count).unwrap_or(u32::MAX)).collect()
    } else {
        used_texts(segment, field, docs, interrupt)?
    };
    let mut value = Value::String(String::new());
    each_text(segment, field, &ordinals, interrupt, |ordinal, text| {
        if let Value::String(held) = &mut value {
            held.clear();
            held.push_str(text);
        }
        if test.passes(Some(&value)) {
            set(ordinal);
        }
    })?;
    Ok(bits)
}

/// Returns the only texts that pass a test, apart from mail addresses; `None` if others may pass.
fn wanted_texts(test: &ParsedTest) -> Option<Vec<&str>> {
    let ParsedTest::Equal(wanted) = test else { return None };
    wanted.iter().map(wanted_text).collect()
}

fn wanted_text(wanted: &Comparand) -> Option<&str> {
    match wanted {
        Comparand::Text(wanted) if is_time(&wanted.text) || is_day(&wanted.text) => None,
        Comparand::Text(wanted) => Some(wanted.text.as_str()),
        Comparand::Bool(value) => Some(if *value { "true" } else { "false" }),
        Comparand::Number(_) => None,
    }
}

/// Returns the ordinals of the texts that some records have, sorted.
pub(in super::super) fn used_texts(
    segment: &dyn ColumnSegment,
    field: usize,
    docs: &[u32],
    interrupt: &Interrupt,
) -> Result<Vec<u32>, ColumnError> {
    let mut used = vec![false; segment.text_count(field)?];
    each_block(segment, field, docs, interrupt, |_, block| {
        for cell in block.cells.iter().chain(block.lists.iter().flatten()) {
            let Cell::Text(ordinal) = cell else { continue };
            let text = usize::try_from(*ordinal).ok().and_then(|ordinal| used.get_mut(ordinal));
            *text.ok_or_else(|| ColumnError::Unreadable("a column lacks a text".to_owned()))? = true;
        }
        Ok(())
    })?;
    Ok((0..).zip(used).filter_map(|(ordinal, is_used)| is_used.then_some(ordinal)).collect())
}

impl TimeTest {
    fn new(test: &ParsedTest) -> Self {
        match test {
            ParsedTest::Equal(wanted) => Self::Equal {
                spans: wanted.iter().filter_map(equal_span).collect(),
                numbers: wanted.iter().filter_map(equal_number).collect(),
            },
            ParsedTest::Range(operator, Comparand::Text(bound)) => match TimeOrder::of_text(&bound.ordered) {
                Some(bound) => Self::Range(*operator, bound),
                None => Self::TimeSpan(range_span(test)),
            },
            ParsedTest::Range(..) => Self::TimeSpan(range_span(test)),
            ParsedTest::Contains(_) | ParsedTest::Prefix(_) | ParsedTest::Exists(_) => Self::Text,
        }
    }
}

/// Returns the span of the times that equal a value: those of a day, or one.
fn equal_span(wanted: &Comparand) -> Option<Span> {
    let Comparand::Text(wanted) = wanted else { return None };
    if !is_day(&wanted.text) {
        return TimeOrder::of_text(&wanted.text).map(|at| (at, at));
    }
    let first = start_of_day(&wanted.text)?.as_second();
    Some((TimeOrder::of_timestamp(first, 0), TimeOrder::of_timestamp(first + time::DAY - 1, time::NANOS - 1)))
}

/// Returns the number of the date that equals a value.
fn equal_number(wanted: &Comparand) -> Option<i64> {
    let Comparand::Text(wanted) = wanted else { return None };
    time::encode(&wanted.text)
}

/// Returns the span of the times that are in a range. Times are compared in their order, so all that pass follow each other
/// at one end: its bound is found by bisection.
fn range_span(test: &ParsedTest) -> Option<Span> {
    let second = i128::from(time::NANOS);
    let parts = |at: i128| {
        let part = |number: i128| i64::try_from(number).unwrap_or_default();
        (part(at.div_euclid(second)), part(at.rem_euclid(second)))
    };
    let passes = |at: i128| {
        let (seconds, nanos) = parts(at);
        test.passes(Some(&time::timestamp(seconds, nanos)))
    };
    let span = |first: i128, last: i128| {
        let [first, last] = [first, last].map(parts);
        (TimeOrder::of_timestamp(first.0, first.1), TimeOrder::of_timestamp(last.0, last.1))
    };
    let (first, last) = (i128::from(time::FIRST) * second, i128::from(time::LAST + 1) * second - 1);
    let (passes_first, passes_last) = (passes(first), passes(last));
    if passes_first == passes_last {
        return passes_first.then(|| span(first, last));
    }
    // Invariant: `low` has the result of the first time, `high` that of the last one.
    let (mut low, mut high) = (first, last);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if passes(middle) == passes_first { low = middle } else { high = middle }
    }
    Some(if passes_first { span(first, low) } else { span(high, last) })
}
