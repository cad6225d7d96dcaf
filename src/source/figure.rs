//! A figure, while it is being counted.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Number, Value};

use crate::fit::{characters, clip};
use crate::record::{Decimal, Numeric, Scalar, comparable};
use crate::source::Metric;

/// The most of a text that is kept and shown, in bytes.
pub(super) const TEXT_MOST: usize = 1_000;

/// The most different values that are told apart. Each takes 8 bytes until the end.
pub(super) const DISTINCT_MOST: usize = 5_000_000;

#[derive(Debug)]
pub(super) enum Figure {
    Count(u64),
    Sum(Sum),
    Least(Extreme),
    Greatest(Extreme),
    /// Hashes of the values: of five million, the chance that two agree is one in a million.
    Distinct(HashSet<u64>),
}

impl Figure {
    pub(super) fn new(metric: Metric) -> Self {
        match metric {
            Metric::Count => Self::Count(0),
            Metric::Sum => Self::Sum(Sum::default()),
            Metric::Min => Self::Least(Extreme::default()),
            Metric::Max => Self::Greatest(Extreme::default()),
            Metric::CountDistinct => Self::Distinct(HashSet::new()),
        }
    }

    /// Adds a record with this value of the field. Only a count cares for records without one.
    pub(super) fn add(&mut self, value: Option<&Value>) {
        match (self, value) {
            (Self::Count(count), _) => *count += 1,
            (_, None) => {}
            (Self::Sum(sum), Some(value)) => sum.add(value),
            (Self::Least(least), Some(value)) => least.add(value, Ordering::Less),
            (Self::Greatest(greatest), Some(value)) => greatest.add(value, Ordering::Greater),
            (Self::Distinct(seen), Some(value)) => seen.extend(fingerprint(value)),
        }
    }

    pub(super) fn is_overfull(&self) -> bool {
        matches!(self, Self::Distinct(seen) if seen.len() > DISTINCT_MOST)
    }

    /// Whether it is a sum that no number can tell.
    pub(super) fn is_too_large(&self) -> bool {
        matches!(self, Self::Sum(sum) if !sum.total().is_finite())
    }

    /// The bytes it holds that grow with what is counted.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Count(_) | Self::Sum(_) => 0,
            Self::Least(extreme) | Self::Greatest(extreme) => extreme.held(),
            Self::Distinct(seen) => seen.len() * size_of::<u64>(),
        }
    }

    /// How many texts are in no sum and no comparison of numbers, because they are none. Empty texts, which
    /// a table has where it has no value, do not count.
    pub(super) fn passed_over(&self) -> u64 {
        match self {
            Self::Sum(sum) => sum.texts,
            Self::Least(extreme) | Self::Greatest(extreme) => match extreme.kept {
                Some((Rank::Number(_), _)) => extreme.texts,
                _ => 0,
            },
            Self::Count(_) | Self::Distinct(_) => 0,
        }
    }

    pub(super) fn value(&self) -> Option<Scalar> {
        match self {
            Self::Count(count) => Some(Scalar::Number((*count).into())),
            Self::Distinct(seen) => Some(Scalar::Number(seen.len().into())),
            Self::Sum(sum) => sum.value().map(Scalar::Number),
            Self::Least(extreme) | Self::Greatest(extreme) => {
                extreme.kept.as_ref().map(|(_, scalar)| scalar.clone())
            }
        }
    }

    /// How two figures of one metric order. Nothing is less than anything.
    pub(super) fn order(&self, other: &Self) -> Ordering {
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

/// What tells different values apart. Numbers that filters take as equal are one.
fn fingerprint(value: &Value) -> Option<u64> {
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

/// Decimals are added exactly; numbers that are too large or too small for that apart from them.
#[derive(Debug, Default)]
pub(super) struct Sum {
    exact: Decimal,
    /// Some number was not whole.
    has_fraction: bool,
    parts: f64,
    any: bool,
    /// Texts that were passed over.
    texts: u64,
}

impl Sum {
    fn add(&mut self, value: &Value) {
        let Some(number) = Numeric::of(value) else {
            self.texts += u64::from(is_some_text(value));
            return;
        };
        self.has_fraction |= matches!(number, Numeric::Part(_));
        let decimal = match number {
            Numeric::Whole(whole) => Some(Decimal::whole(whole)),
            Numeric::Part(_) => Decimal::of(number.as_f64()),
        };
        match decimal.map(|decimal| (decimal, self.exact.plus(decimal))) {
            Some((_, Some(exact))) => self.exact = exact,
            Some((decimal, None)) => {
                (self.exact, self.parts) = (decimal, self.parts + self.exact.as_f64());
            }
            None => self.parts += number.as_f64(),
        }
        self.any = true;
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

/// The least or the greatest value so far.
///
/// A column of numbers may have an `n/a` in it: where one value is a number, the others are passed over. Of a
/// long text only the start is kept, which is the least, or the greatest, of all starts.
#[derive(Debug, Default)]
pub(super) struct Extreme {
    kept: Option<(Rank<'static>, Scalar)>,
    /// Texts that are no numbers.
    texts: u64,
}

/// What a value is compared by. Kinds of values compare as they stand here.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank<'a> {
    Bool(bool),
    /// The start of a text, and whether that is not all of it.
    Text(Cow<'a, str>, bool),
    Number(Numeric),
}

impl Extreme {
    fn add(&mut self, value: &Value, wanted: Ordering) {
        let Some(rank) = Rank::of(value) else { return };
        if matches!(rank, Rank::Text(..)) {
            self.texts += u64::from(is_some_text(value));
        }
        let is_better = self.rank().is_none_or(|best| match rank.kind().cmp(&best.kind()) {
            Ordering::Equal => rank.cmp(best) == wanted,
            kind => kind.is_gt(),
        });
        if is_better {
            let shown = match value {
                Value::String(text) if text.len() > TEXT_MOST => Some(Scalar::Text(clip(text, TEXT_MOST))),
                value => Scalar::of(value),
            };
            self.kept = shown.map(|shown| (rank.into_owned(), shown));
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
    fn of(value: &'a Value) -> Option<Self> {
        match (value, Numeric::of(value)) {
            (_, Some(number)) => Some(Self::Number(number)),
            (Value::Bool(value), None) => Some(Self::Bool(*value)),
            (Value::String(text), None) => {
                let start = characters(text, 0, TEXT_MOST);
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

fn is_some_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(metric: Metric, values: &[Value], expect: &Value) {
        let mut figure = Figure::new(metric);
        values.iter().for_each(|value| figure.add(Some(value).filter(|value| !value.is_null())));
        assert_eq!(&serde_json::to_value(figure.value()).unwrap(), expect, "{metric:?} {values:?}");
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
    fn where_there_are_numbers_only_they_are_compared() {
        let column = [json!("5"), json!("n/a"), json!(""), json!("50"), json!("-")];
        check(Metric::Min, &column, &json!("5"));
        check(Metric::Max, &column, &json!("50"));
        check(Metric::Max, &[json!("n/a"), json!("-")], &json!("n/a"));
        check(Metric::Min, &[json!(true), json!("x")], &json!("x"));
        let ids: Vec<Value> =
            (0..40).map(|n: i64| json!((1_234_567_890_123_456_780 + n).to_string())).collect();
        check(Metric::Max, &ids, &json!("1234567890123456819"));
        check(Metric::Max, &[json!(i64::MAX - 1), json!(i64::MAX), json!(i64::MAX - 2)], &json!(i64::MAX));
        let mut figure = Figure::new(Metric::Max);
        column.iter().for_each(|value| figure.add(Some(value)));
        assert_eq!(figure.passed_over(), 2);
    }

    #[test]
    fn the_start_of_a_long_text_is_kept() {
        let long = "b".repeat(10_000_000);
        for metric in [Metric::Min, Metric::Max] {
            let mut figure = Figure::new(metric);
            figure.add(Some(&json!(long)));
            figure.add(Some(&json!(format!("{long}c"))));
            assert!(figure.held() <= 2 * TEXT_MOST, "{}", figure.held());
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
        let mut figure = Figure::new(Metric::Sum);
        figure.add(Some(&json!(1e308)));
        assert!(!figure.is_too_large());
        figure.add(Some(&json!(1e308)));
        assert!(figure.is_too_large());
    }

    #[test]
    fn different_values_are_different_to_filters_too() {
        check(Metric::CountDistinct, &[json!(1), json!(1.0), json!(0), json!(-0.0)], &json!(2));
        check(
            Metric::CountDistinct,
            &[json!(true), json!("true"), json!(i64::MAX), json!(9.3e18)],
            &json!(4),
        );
    }
}
