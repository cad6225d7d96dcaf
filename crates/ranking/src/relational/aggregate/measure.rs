//! Measured values of the groups of a segment.
//!
//! Numbers are added up exactly as whole numbers of billionths; of numbers and times, only the least and the greatest are
//! kept for a minimum or maximum. Every other value is counted, and added once with its number of records.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use fetchwell_core::record::Decimal;
use fetchwell_source::Metric;
use fetchwell_source::accumulator::{Accumulator, fingerprint};
use serde_json::Value;

use super::super::columns::time::{TimeOrder, order};
use super::super::columns::{Cell, ColumnError};
use super::super::interrupt::Interrupt;

/// Maximum number of different values that are counted, each with some hundred bytes. More are read as JSON.
const MAX_VALUES: usize = 20_000;

/// The same for a number of distinct values, which is kept in fewer bytes.
const MAX_DISTINCT_VALUES: usize = 500_000;

/// Digits after the decimal point of the unit in which numbers are added.
const SCALE: u32 = 9;

/// Unit of a whole number.
const UNIT: i128 = 1_000_000_000;

/// Maximum size of a number of at most 15 digits, in its own unit.
const MAX_DIGITS: f64 = 1e15;

/// Measured values of all groups of a segment.
#[derive(Debug)]
pub(super) struct Measures {
    metric: Metric,
    groups: Vec<GroupMeasure>,
    /// Number of records of values that are counted, by slot and identity.
    others: HashMap<(u32, u8, u64), (Cell, u64)>,
    /// Slots and ordinals of the texts of a number of distinct values.
    texts: HashSet<(u32, u32)>,
}

/// Measured values of a group.
#[derive(Debug, Default)]
pub(super) struct GroupMeasure {
    /// Sum of the numbers in billionths.
    total: i128,
    has_fraction: bool,
    numbers: u64,
    whole: Option<(i64, i64)>,
    part: Option<(f64, f64)>,
    times: Option<TimeRange>,
    values: Vec<(Value, u64)>,
    /// Hashes of distinct texts.
    fingerprints: Vec<u64>,
}

/// First and last of some times.
#[derive(Debug, Clone, Copy)]
struct TimeRange {
    first: TimeCell,
    last: TimeCell,
    count: u64,
}

/// Time with its place among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimeCell {
    place: TimeOrder,
    number: i64,
}

impl TimeCell {
    fn new(number: i64) -> Self {
        Self { place: order(number), number }
    }

    /// Replaces the time by another one whose place is as `wanted`. Of times at one place, the first one as text is shown.
    fn replace_by(&mut self, other: Self, wanted: Ordering) {
        let ordering = other.place.cmp(&self.place);
        let text = |cell: Self| Cell::Time(cell.number).value(|_| None).map(|value| value.to_string());
        if ordering == wanted || ordering.is_eq() && other != *self && text(other) < text(*self) {
            *self = other;
        }
    }
}

impl Measures {
    pub(super) fn new(metric: Metric) -> Self {
        Self { metric, groups: Vec::new(), others: HashMap::new(), texts: HashSet::new() }
    }

    /// Adds the value of a record of a slot.
    pub(super) fn add(&mut self, slot: u32, cell: Cell) {
        let at = usize::try_from(slot).unwrap_or_default();
        if at >= self.groups.len() {
            self.groups.resize_with(at + 1, GroupMeasure::default);
        }
        let Some(group) = self.groups.get_mut(at) else { return };
        let is_known = match self.metric {
            Metric::Count => true,
            Metric::Sum | Metric::Avg => group.sum(cell),
            Metric::Min | Metric::Max => group.extend(cell),
            Metric::CountDistinct => match cell {
                Cell::Text(ordinal) => {
                    self.texts.insert((slot, ordinal));
                    true
                }
                _ => false,
            },
        };
        if !is_known && !matches!(cell, Cell::Missing | Cell::Object | Cell::List(_)) {
            let (kind, bits) = cell.identity();
            self.others.entry((slot, kind, bits)).or_insert((cell, 0)).1 += 1;
        }
    }

    /// Returns true if more values are counted than memory is meant for.
    pub(super) fn is_overfull(&self) -> bool {
        let max = if self.metric == Metric::CountDistinct { MAX_DISTINCT_VALUES } else { MAX_VALUES };
        self.others.len() + self.texts.len() > max
    }

    /// Returns the measured values of `count` slots. `read` passes the texts of ordinals, which are sorted and
    /// different.
    pub(super) fn into_groups(
        mut self,
        count: usize,
        interrupt: &Interrupt,
        read: impl FnOnce(&[u32], &mut dyn FnMut(u32, &str)) -> Result<(), ColumnError>,
    ) -> Result<Vec<GroupMeasure>, ColumnError> {
        self.groups.resize_with(count, GroupMeasure::default);
        let is_distinct = self.metric == Metric::CountDistinct;
        let counted = self.others.values().filter_map(|(cell, _)| match cell {
            Cell::Text(ordinal) => Some(*ordinal),
            _ => None,
        });
        let ordinals = self.texts.iter().map(|(_, ordinal)| *ordinal).chain(counted);
        let mut ordinals: Vec<u32> = ordinals.collect();
        ordinals.sort_unstable();
        ordinals.dedup();
        let (mut texts, mut fingerprints) = (HashMap::new(), HashMap::new());
        read(&ordinals, &mut |ordinal, text| {
            if is_distinct {
                fingerprints.extend(fingerprint(&Value::from(text)).map(|hash| (ordinal, hash)));
            } else {
                texts.insert(ordinal, text.to_owned());
            }
        })?;
        for (slot, ordinal) in self.texts {
            interrupt.check()?;
            let group = usize::try_from(slot).ok().and_then(|at| self.groups.get_mut(at));
            if let (Some(group), Some(hash)) = (group, fingerprints.get(&ordinal)) {
                group.fingerprints.push(*hash);
            }
        }
        for ((slot, ..), (cell, times)) in self.others {
            interrupt.check()?;
            let value = cell.value(|ordinal| texts.get(&ordinal).map(String::as_str));
            let group = usize::try_from(slot).ok().and_then(|at| self.groups.get_mut(at));
            if let (Some(group), Some(value)) = (group, value) {
                group.values.push((value, times));
            }
        }
        Ok(self.groups)
    }
}

impl GroupMeasure {
    /// Adds a number to the sum. Returns false for other values, and for numbers of more than 15 digits.
    fn sum(&mut self, cell: Cell) -> bool {
        let units = match cell {
            Cell::Whole(number) => i128::from(number).checked_mul(UNIT),
            Cell::Part(number) => billionths(number),
            _ => None,
        };
        let Some(total) = units.and_then(|units| self.total.checked_add(units)) else { return false };
        self.has_fraction |= units.is_some_and(|units| units % UNIT != 0);
        (self.total, self.numbers) = (total, self.numbers + 1);
        true
    }

    /// Extends the range of values. Returns false for a value that is not a number or a time.
    fn extend(&mut self, cell: Cell) -> bool {
        match cell {
            Cell::Whole(number) => {
                let (least, greatest) = self.whole.unwrap_or((number, number));
                self.whole = Some((least.min(number), greatest.max(number)));
            }
            Cell::Part(number) => {
                let (least, greatest) = self.part.unwrap_or((number, number));
                self.part = Some((least.min(number), greatest.max(number)));
            }
            Cell::Time(number) => {
                let time = TimeCell::new(number);
                let range = TimeRange { first: time, last: time, count: 0 };
                let range = self.times.get_or_insert(range);
                range.first.replace_by(time, Ordering::Less);
                range.last.replace_by(time, Ordering::Greater);
                range.count += 1;
            }
            _ => return false,
        }
        true
    }

    /// Adds the values to an accumulator, for a group of `records`.
    pub(super) fn add_to(&self, accumulator: &mut Accumulator, records: u64) {
        if let Accumulator::Count(count) = accumulator {
            *count += records;
            return;
        }
        if self.numbers > 0
            && let Some(total) = Decimal::from_parts(self.total, SCALE)
        {
            accumulator.add_exact(total, self.has_fraction, self.numbers);
        }
        let wholes = self.whole.map(|(least, greatest)| [Cell::Whole(least), Cell::Whole(greatest)]);
        let parts = self.part.map(|(least, greatest)| [Cell::Part(least), Cell::Part(greatest)]);
        for cell in [wholes, parts].into_iter().flatten().flatten() {
            accumulator.add_times(cell.value(|_| None).as_ref(), 1);
        }
        if let Some(TimeRange { first, last, count }) = &self.times {
            accumulator.add_times(Cell::Time(last.number).value(|_| None).as_ref(), 1);
            if *count > 1 {
                accumulator.add_times(Cell::Time(first.number).value(|_| None).as_ref(), count - 1);
            }
        }
        for (value, times) in &self.values {
            accumulator.add_times(Some(value), *times);
        }
        accumulator.add_fingerprints(&self.fingerprints);
    }
}

/// Returns a number in billionths if it has at most 15 digits, of which at most nine are after the decimal point: the number of
/// its shortest text. Both the digits and the power of ten are exact as floating point, so their quotient is the number only if
/// the text is.
fn billionths(number: f64) -> Option<i128> {
    let mut power = 1.0;
    let mut rest = UNIT;
    loop {
        let digits = (number * power).round();
        if digits.abs() > MAX_DIGITS {
            return None;
        }
        if digits / power == number {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and has at most 16 digits")]
            return i128::from(digits as i64).checked_mul(rest);
        }
        if rest == 1 {
            return None;
        }
        (power, rest) = (power * 10.0, rest / 10);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::interrupt::InterruptOnDrop;
    use super::*;

    #[test]
    fn cancelled_call_reads_no_values() {
        for metric in [Metric::CountDistinct, Metric::Max] {
            let (interrupt, mut measures) = (Interrupt::default(), Measures::new(metric));
            measures.add(0, Cell::Text(1));
            drop(InterruptOnDrop(interrupt.clone()));
            let groups = measures.into_groups(1, &interrupt, |_, _| Ok(()));
            assert!(matches!(groups, Err(ColumnError::Source(_))), "{metric:?}");
        }
    }

    proptest! {
        #[test]
        fn billionths_are_those_of_the_shortest_text(digits in -1_000_000_000_000_000_i64..1_000_000_000_000_000, scale in 0_u32..12, any in any::<f64>()) {
            let written: f64 = format!("{digits}e-{scale}").parse().unwrap();
            for number in [written, any] {
                if let Some(units) = billionths(number) {
                    prop_assert_eq!(Decimal::from_parts(units, SCALE).unwrap().as_f64().to_string(), (number + 0.0).to_string());
                    let exact = Decimal::from_f64(number).unwrap();
                    let difference = exact.plus(Decimal::from_parts(-units, SCALE).unwrap()).unwrap();
                    prop_assert_eq!(difference.as_whole(), Some(0));
                }
            }
            if scale <= 9 {
                prop_assert!(billionths(written).is_some(), "{}", written);
            }
        }
    }
}
