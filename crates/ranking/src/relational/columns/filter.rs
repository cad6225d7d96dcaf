//! Evaluation of filters over columns.
//!
//! Each condition is evaluated with the values that parsing the records would give: a text once in each segment, however many
//! records have it, and a number for each record. Timestamps are compared as numbers.

use std::collections::HashMap;

use fetchwell_core::record::parse_timestamp;
use fetchwell_source::manifest::kinds::{is_day, is_time};
use serde_json::Value;

use super::super::interrupt::Interrupt;
use super::super::predicate::{Comparand, ParsedTest, Predicate};
use super::time::{self, TimeForm};
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

/// Milliseconds from the first to the last of a span.
type Span = (i64, i64);

/// Test of a condition, with the results for the texts of a segment.
#[derive(Debug)]
struct CellTest<'a> {
    test: &'a ParsedTest,
    /// Result of each text of the segment, as bits by its ordinal.
    texts: Vec<u64>,
    /// Spans of the timestamps that pass; `None` if each is compared as text.
    spans: Option<Vec<Span>>,
    /// Results for dates, and for timestamps that are compared as text.
    dates: HashMap<i64, bool>,
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
            spans: passing_spans(test),
            dates: HashMap::new(),
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
        match (time::decode(number), &self.spans) {
            ((millis, TimeForm::Seconds | TimeForm::Millis), Some(spans)) => {
                spans.iter().any(|(first, last)| (*first..=*last).contains(&millis))
            }
            _ => {
                let test = self.test;
                *self.dates.entry(number).or_insert_with(|| test.passes(Some(&time::value(number))))
            }
        }
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
    let mut ordinals = Vec::new();
    each_block(segment, field, docs, interrupt, |_, block| {
        let cells = block.cells.iter().chain(block.lists.iter().flatten());
        ordinals.extend(cells.filter_map(|cell| match cell {
            Cell::Text(ordinal) => Some(*ordinal),
            _ => None,
        }));
        Ok(())
    })?;
    ordinals.sort_unstable();
    ordinals.dedup();
    Ok(ordinals)
}

/// Returns the spans of the timestamps that pass a test; `None` if the test compares them as text.
fn passing_spans(test: &ParsedTest) -> Option<Vec<Span>> {
    match test {
        ParsedTest::Equal(wanted) => Some(wanted.iter().filter_map(equal_span).collect()),
        ParsedTest::Range(..) => Some(range_span(test).into_iter().collect()),
        ParsedTest::Contains(_) | ParsedTest::Prefix(_) | ParsedTest::Exists(_) => None,
    }
}

/// Returns the span of the timestamps that equal a value: those of a day, or one.
fn equal_span(wanted: &Comparand) -> Option<Span> {
    let Comparand::Text(wanted) = wanted else { return None };
    if is_day(&wanted.text) {
        let (first, _) = time::decode(time::encode(&wanted.text)?);
        return Some((first, first + time::DAY - 1));
    }
    let wanted = parse_timestamp(&wanted.text)?;
    (wanted.as_nanosecond() % 1_000_000 == 0).then(|| (wanted.as_millisecond(), wanted.as_millisecond()))
}

/// Returns the span of the timestamps that are in a range. Times are compared in their order, so all that pass follow each other
/// at one end: its bound is found by bisection.
fn range_span(test: &ParsedTest) -> Option<Span> {
    let passes = |millis: i64| test.passes(Some(&time::value(time::number(millis, TimeForm::Millis))));
    let (passes_first, passes_last) = (passes(time::FIRST), passes(time::LAST));
    if passes_first == passes_last {
        return passes_first.then_some((time::FIRST, time::LAST));
    }
    // Invariant: `low` has the result of the first time, `high` that of the last one.
    let (mut low, mut high) = (time::FIRST, time::LAST);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if passes(middle) == passes_first { low = middle } else { high = middle }
    }
    Some(if passes_first { (time::FIRST, low) } else { (high, time::LAST) })
}
