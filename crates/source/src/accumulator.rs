//! Accumulator of one aggregate: count, sum, mean, minimum, maximum or number of distinct values.
//!
//! Sums of decimals are exact as long as they can be. Values of other types than the aggregate needs are skipped and
//! counted.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use fetchwell_core::fit::{characters, clip};
use fetchwell_core::record::{Decimal, Numeric, Scalar, comparable};
use serde_json::{Number, Value};

use crate::{Mean, Metric};

/// Maximum bytes of a text value that are kept and shown.
pub const MAX_TEXT_BYTES: usize = 1_000;

/// Maximum number of distinct values. Each takes 8 bytes until the end.
pub const MAX_DISTINCT: usize = 5_000_000;

/// Accumulator of one metric.
#[derive(Debug)]
pub enum Accumulator {
    /// Number of values.
    Count(u64),
    /// Exact sum of numbers.
    Sum(Sum),
    /// Sum and number of the values.
    Mean(Sum, u64),
    /// Least value so far.
    Least(Extreme),
    /// Greatest value so far.
    Greatest(Extreme),
    /// Hashes of the values. Among five million values, the probability of a collision is one in a million.
    Distinct(HashSet<u64>),
}

impl Accumulator {
    /// Creates the accumulator of a metric, without values.
    pub fn new(metric: Metric) -> Self {
        match metric {
            Metric::Count => Self::Count(0),
            Metric::Sum => Self::Sum(Sum::default()),
            Metric::Avg => Self::Mean(Sum::default(), 0),
            Metric::Min => Self::Least(Extreme::default()),
            Metric::Max => Self::Greatest(Extreme::default()),
            Metric::CountDistinct => Self::Distinct(HashSet::new()),
        }
    }

    /// Adds a record with this value of the field. A record without a value affects only a count.
    pub fn add(&mut self, value: Option<&Value>) {
        match (self, value) {
            (Self::Count(count), _) => *count += 1,
            (_, None) => {}
            (Self::Sum(sum), Some(value)) => {
                sum.add(value);
            }
            (Self::Mean(sum, count), Some(value)) => *count += u64::from(sum.add(value)),
            (Self::Least(smallest), Some(value)) => smallest.add(value, Ordering::Less),
            (Self::Greatest(greatest), Some(value)) => greatest.add(value, Ordering::Greater),
            (Self::Distinct(seen), Some(value)) => seen.extend(fingerprint(value)),
        }
    }

    /// Adds `times` records with this value of the field.
    pub fn add_times(&mut self, value: Option<&Value>, times: u64) {
        match (self, value) {
            (Self::Count(count), _) => *count += times,
            (_, None) => {}
            (Self::Sum(sum), Some(value)) => {
                sum.add_times(value, times);
            }
            (Self::Mean(sum, count), Some(value)) => {
                *count += if sum.add_times(value, times) { times } else { 0 };
            }
            (Self::Least(extreme), Some(value)) => extreme.add_times(value, times, Ordering::Less),
            (Self::Greatest(extreme), Some(value)) => extreme.add_times(value, times, Ordering::Greater),
            (Self::Distinct(seen), Some(value)) => seen.extend(fingerprint(value)),
        }
    }

    /// Adds the sum of `times` numbers to a sum or a mean. `has_fraction` is true if one was not an integer.
    pub fn add_exact(&mut self, total: Decimal, has_fraction: bool, times: u64) {
        match self {
            Self::Sum(sum) => sum.add_exact(total, has_fraction),
            Self::Mean(sum, count) => {
                sum.add_exact(total, has_fraction);
                *count += times;
            }
            Self::Count(_) | Self::Least(_) | Self::Greatest(_) | Self::Distinct(_) => {}
        }
    }

    /// Adds values to a number of distinct values by their [`fingerprint`]s.
    pub fn add_fingerprints(&mut self, fingerprints: &[u64]) {
        if let Self::Distinct(seen) = self {
            seen.extend(fingerprints);
        }
    }

    /// Returns false if a sum has parts that were added as floating point, so that it depends on the order of its values.
    pub fn is_exact(&self) -> bool {
        !matches!(self, Self::Sum(sum) | Self::Mean(sum, _) if sum.has_parts)
    }

    /// Returns true if the sum exceeded its range.
    pub fn is_overfull(&self) -> bool {
        matches!(self, Self::Distinct(seen) if seen.len() > MAX_DISTINCT)
    }

    /// Returns true if the sum is too large for a number.
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Sum(sum) | Self::Mean(sum, _) if !sum.total().is_finite())
    }

    /// Returns the number of bytes that grow with the values added.
    pub fn held(&self) -> usize {
        match self {
            Self::Count(_) | Self::Sum(_) | Self::Mean(..) => 0,
            Self::Least(extreme) | Self::Greatest(extreme) => extreme.held(),
            Self::Distinct(seen) => seen.len() * size_of::<u64>(),
        }
    }

    /// Returns the number of texts that were skipped because they are not numbers. Empty texts, which CSV files have
    /// in place of missing values, do not count.
    pub fn passed_over(&self) -> u64 {
        match self {
            Self::Sum(sum) | Self::Mean(sum, _) => sum.texts,
            Self::Least(extreme) | Self::Greatest(extreme) => match extreme.kept {
                Some((Rank::Number(_), _)) => extreme.texts,
                _ => 0,
            },
            Self::Count(_) | Self::Distinct(_) => 0,
        }
    }

    /// Returns the result; `None` without values.
    pub fn value(&self) -> Option<Scalar> {
        match self {
            Self::Count(count) => Some(Scalar::Number((*count).into())),
            Self::Distinct(seen) => Some(Scalar::Number(seen.len().into())),
            Self::Sum(sum) => sum.value().map(Scalar::Number),
            #[expect(clippy::cast_precision_loss, reason = "2^53 values cannot be read")]
            Self::Mean(sum, count) => {
                sum.value().and_then(|_| Number::from_f64(sum.total() / *count as f64)).map(Scalar::Number)
            }
            Self::Least(extreme) | Self::Greatest(extreme) => {
                extreme.kept.as_ref().map(|(_, scalar)| scalar.clone())
            }
        }
    }

    /// Returns the parts of a mean.
    pub fn mean(&self) -> Option<Mean> {
        match self {
            Self::Mean(sum, count) => Some(Mean { sum: sum.value()?, count: *count }),
            _ => None,
        }
    }

    /// Adds the values of a mean.
    pub(crate) fn add_mean(&mut self, mean: &Mean) {
        if let Self::Mean(sum, count) = self {
            sum.add(&Value::Number(mean.sum.clone()));
            *count += mean.count;
        }
    }

    /// Compares two aggregates of one metric. An aggregate without a value is the least.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Least(a) | Self::Greatest(a), Self::Least(b) | Self::Greatest(b)) => {
                a.rank().cmp(&b.rank())
            }
            _ => self.number().cmp(&other.number()),
        }
    }

    fn number(&self) -> Option<Numeric> {
        match self.value() {
            Some(Scalar::Number(number)) => Numeric::of_number(&number),
            Some(Scalar::Text(_) | Scalar::Bool(_)) | None => None,
        }
    }
}

/// Returns a hash by which values are distinguished; `None` for a list, an object and `null`. Numbers that a filter considers equal
/// have the same hash.
pub fn fingerprint(value: &Value) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Bool(value) => value.hash(&mut hasher),
        Value::Number(number) => Numeric::of_number(number).hash(&mut hasher),
        Value::String(text) => text.hash(&mut hasher),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    }
    std::mem::discriminant(value).hash(&mut hasher);
    Some(hasher.finish())
}

/// Sum of numbers. Decimals are added exactly; numbers outside their range are added as floating point.
#[derive(Debug, Default)]
pub struct Sum {
    exact: Decimal,
    /// True if some number was not an integer.
    has_fraction: bool,
    parts: f64,
    /// True if a number was added as floating point, even if such numbers cancel each other out.
    has_parts: bool,
    any: bool,
    /// Number of texts that were skipped.
    texts: u64,
}

impl Sum {
    /// Adds a value. Returns true if it is a number.
    fn add(&mut self, value: &Value) -> bool {
        let Some(number) = Numeric::from_value(value) else {
            self.texts += u64::from(is_some_text(value));
            return false;
        };
        self.has_fraction |= matches!(number, Numeric::Part(_));
        let decimal = match number {
            Numeric::Whole(whole) => Some(Decimal::whole(whole)),
            Numeric::Part(_) => Decimal::from_f64(number.as_f64()),
        };
        match decimal.map(|decimal| (decimal, self.exact.plus(decimal))) {
            Some((_, Some(exact))) => self.exact = exact,
            Some((decimal, None)) => {
                let exact = std::mem::replace(&mut self.exact, decimal);
                self.add_part(exact.as_f64());
            }
            None => self.add_part(number.as_f64()),
        }
        self.any = true;
        true
    }

    /// Adds a value `times` times. Returns true if it is a number.
    fn add_times(&mut self, value: &Value, times: u64) -> bool {
        let Some(number) = Numeric::from_value(value) else {
            self.texts += times * u64::from(is_some_text(value));
            return false;
        };
        let decimal = match number {
            Numeric::Whole(whole) => Some(Decimal::whole(whole)),
            Numeric::Part(_) => Decimal::from_f64(number.as_f64()),
        };
        let exact = decimal.and_then(|decimal| self.exact.plus(decimal.times(times)?));
        if let Some(exact) = exact {
            self.has_fraction |= matches!(number, Numeric::Part(_));
            (self.exact, self.any) = (exact, true);
        } else {
            (0..times).for_each(|_| {
                self.add(value);
            });
        }
        true
    }

    fn add_exact(&mut self, total: Decimal, has_fraction: bool) {
        match self.exact.plus(total) {
            Some(exact) => self.exact = exact,
            None => self.add_part(total.as_f64()),
        }
        (self.any, self.has_fraction) = (true, self.has_fraction || has_fraction);
    }

    fn add_part(&mut self, number: f64) {
        (self.parts, self.has_parts) = (self.parts + number, true);
    }

    fn total(&self) -> f64 {
        self.exact.as_f64() + self.parts
    }

    fn value(&self) -> Option<Number> {
        match (self.any, self.exact.as_whole().filter(|_| !self.has_fraction && self.parts == 0.0)) {
            (false, _) => None,
            (true, Some(whole)) => Numeric::Whole(whole).to_json(),
            (true, None) => Number::from_f64(self.total()),
        }
    }
}

/// Minimum or maximum so far.
///
/// If any value is a number, only numbers are compared, because a numeric column may contain texts such as `n/a`. Of
/// a long text only the start is kept, which is the minimum or maximum of all starts.
#[derive(Debug, Default)]
pub struct Extreme {
    kept: Option<(Rank<'static>, Scalar)>,
    /// Number of texts that are not numbers.
    texts: u64,
}

/// Comparison key of a value. Types of values order as the variants do.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank<'a> {
    Bool(bool),
    /// Start of a text, and true if the text was truncated.
    Text(Cow<'a, str>, bool),
    Number(Numeric),
}

impl Extreme {
    fn add(&mut self, value: &Value, wanted: Ordering) {
        self.add_times(value, 1, wanted);
    }

    /// Adds a value `times` times. Of equal values that are written differently, the first one as text is shown, so that
    /// the result does not depend on the order of the records.
    fn add_times(&mut self, value: &Value, times: u64, wanted: Ordering) {
        let Some(rank) = Rank::new(value) else { return };
        if matches!(rank, Rank::Text(..)) {
            self.texts += times * u64::from(is_some_text(value));
        }
        let order = self.kept.as_ref().map(|(best, _)| match rank.kind().cmp(&best.kind()) {
            Ordering::Equal if rank.cmp(best) == wanted => Ordering::Greater,
            Ordering::Equal if rank.cmp(best).is_eq() => Ordering::Equal,
            Ordering::Equal => Ordering::Less,
            kind => kind,
        });
        let is_tie = order == Some(Ordering::Equal);
        if order.is_some_and(Ordering::is_lt) || is_tie && self.is_shown(value) {
            return;
        }
        let shown = match value {
            Value::String(text) if text.len() > MAX_TEXT_BYTES => {
                Some(Scalar::Text(clip(text, MAX_TEXT_BYTES)))
            }
            value => Scalar::from_value(value),
        };
        let Some(shown) = shown else { return };
        let is_first = |(_, kept): &(Rank<'_>, Scalar)| as_written(kept) <= as_written(&shown);
        if !is_tie || !self.kept.as_ref().is_some_and(is_first) {
            self.kept = Some((rank.into_owned(), shown));
        }
    }

    /// Returns true if the value is shown as it is written.
    fn is_shown(&self, value: &Value) -> bool {
        match (value, &self.kept) {
            (Value::String(text), Some((_, Scalar::Text(shown)))) => text == shown,
            (Value::Number(number), Some((_, Scalar::Number(shown)))) => number == shown,
            (Value::Bool(value), Some((_, Scalar::Bool(shown)))) => value == shown,
            _ => false,
        }
    }

    fn rank(&self) -> Option<&Rank<'static>> {
        self.kept.as_ref().map(|(rank, _)| rank)
    }

    fn held(&self) -> usize {
        let Some((rank, shown)) = &self.kept else { return 0 };
        let rank = if let Rank::Text(text, _) = rank { text.len() } else { 0 };
        let shown = if let Scalar::Text(text) = shown { text.len() } else { 0 };
        rank + shown
    }
}

impl<'a> Rank<'a> {
    fn new(value: &'a Value) -> Option<Self> {
        match (value, Numeric::from_value(value)) {
            (_, Some(number)) => Some(Self::Number(number)),
            (Value::Bool(value), None) => Some(Self::Bool(*value)),
            (Value::String(text), None) => {
                let start = characters(text, 0, MAX_TEXT_BYTES);
                let is_cut = start.len() < text.len();
                Some(Self::Text(comparable(text).map_or(Cow::Borrowed(start), Cow::Owned), is_cut))
            }
            (_, None) => None,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Text(..) => 1,
            Self::Number(_) => 2,
        }
    }

    fn into_owned(self) -> Rank<'static> {
        match self {
            Self::Bool(value) => Rank::Bool(value),
            Self::Text(text, is_cut) => Rank::Text(Cow::Owned(text.into_owned()), is_cut),
            Self::Number(number) => Rank::Number(number),
        }
    }
}

/// Returns a value as it is written, numbers before texts.
fn as_written(scalar: &Scalar) -> (bool, String) {
    (matches!(scalar, Scalar::Text(_)), scalar.to_string())
}

fn is_some_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(metric: Metric, values: &[Value], expect: &Value) {
        let mut accumulator = Accumulator::new(metric);
        values.iter().for_each(|value| accumulator.add(Some(value).filter(|value| !value.is_null())));
        assert_eq!(&serde_json::to_value(accumulator.value()).unwrap(), expect, "{metric:?} {values:?}");
    }

    #[test]
    fn floating_point_that_cancels_out_leaves_a_sum_inexact() {
        let mut sum = Accumulator::new(Metric::Sum);
        [json!(1e300), json!(-1e300)].iter().for_each(|value| sum.add(Some(value)));
        assert!(!sum.is_exact());
    }

    #[test]
    fn figures_are_of_values_and_pass_over_the_rest() {
        check(Metric::Count, &[json!(1), json!(null)], &json!(2));
        check(Metric::Sum, &[json!(1), json!("2"), json!(null), json!("x")], &json!(3));
        check(Metric::Sum, &[json!(1), json!(0.5)], &json!(1.5));
        check(Metric::Sum, &[json!(i64::MAX), json!(1), json!(-1)], &json!(i64::MAX));
        check(Metric::Sum, &[json!("x")], &json!(null));
        check(Metric::Sum, &[json!(0.1), json!(0.2), json!("0.1")], &json!(0.4));
        check(Metric::Sum, &[json!(508_753.4), json!(0.03), json!(0.01)], &json!(508_753.44));
        check(Metric::Sum, &[json!(0.75), json!(0.25)], &json!(1.0));
        check(Metric::Sum, &[json!(1e300), json!(0.5)], &json!(1e300));
        check(Metric::Avg, &[json!(1), json!("2"), json!(null), json!("x"), json!(6)], &json!(3.0));
        check(Metric::Avg, &[json!("x")], &json!(null));
        check(Metric::Min, &[json!("b"), json!("a")], &json!("a"));
        check(Metric::Max, &[json!("9"), json!("10")], &json!("10"));
        check(
            Metric::Min,
            &[json!("2026-04-01T00:30:00+02:00"), json!("2026-03-31T23:00:00Z")],
            &json!("2026-04-01T00:30:00+02:00"),
        );
        check(Metric::CountDistinct, &[json!(1), json!("1"), json!(1), json!([])], &json!(2));
    }
    #[test]
    fn numbers_take_precedence_over_texts() {
        let column = [json!("5"), json!("n/a"), json!(""), json!("50"), json!("-")];
        check(Metric::Min, &column, &json!("5"));
        check(Metric::Max, &column, &json!("50"));
        check(Metric::Max, &[json!("n/a"), json!("-")], &json!("n/a"));
        check(Metric::Min, &[json!(true), json!("x")], &json!("x"));
        let ids: Vec<Value> =
            (0..40).map(|n: i64| json!((1_234_567_890_123_456_780 + n).to_string())).collect();
        check(Metric::Max, &ids, &json!("1234567890123456819"));
        check(Metric::Max, &[json!(i64::MAX - 1), json!(i64::MAX), json!(i64::MAX - 2)], &json!(i64::MAX));
        let mut accumulator = Accumulator::new(Metric::Max);
        column.iter().for_each(|value| accumulator.add(Some(value)));
        assert_eq!(accumulator.passed_over(), 2);
    }

    #[test]
    fn the_start_of_a_long_text_is_kept() {
        let long = "b".repeat(10_000_000);
        for metric in [Metric::Min, Metric::Max] {
            let mut accumulator = Accumulator::new(metric);
            accumulator.add(Some(&json!(long)));
            accumulator.add(Some(&json!(format!("{long}c"))));
            assert!(accumulator.held() <= 2 * MAX_TEXT_BYTES, "{}", accumulator.held());
        }
        check(Metric::Max, &[json!("c"), json!(long)], &json!("c"));
        check(Metric::Min, &[json!(long), json!("b".repeat(1_000))], &json!("b".repeat(1_000)));
    }

    #[test]
    fn sums_are_exact_as_long_as_they_can_be() {
        let large = json!("99999999999999999999999999999999999999");
        check(Metric::Sum, &[large.clone(), large.clone(), json!(1)], &json!(2e38));
        check(Metric::Sum, &[json!(u64::MAX), json!(-0.0)], &json!(u64::MAX));
        check(Metric::Sum, &[json!(1e16), json!(1), json!(-1e16)], &json!(1));
        let mut accumulator = Accumulator::new(Metric::Sum);
        accumulator.add(Some(&json!(1e308)));
        assert!(!accumulator.is_too_large());
        accumulator.add(Some(&json!(1e308)));
        assert!(accumulator.is_too_large());
    }

    #[test]
    fn distinct_values_agree_with_filters() {
        check(Metric::CountDistinct, &[json!(1), json!(1.0), json!(0), json!(-0.0)], &json!(2));
        check(
            Metric::CountDistinct,
            &[json!(true), json!("true"), json!(i64::MAX), json!(9.3e18)],
            &json!(4),
        );
    }
}
