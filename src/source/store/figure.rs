//! A figure, while it is being counted.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Number, Value};

use super::number::Numeric;
use super::sort_value::SortValue;
use crate::record::Scalar;
use crate::source::Metric;

/// The most different values that are told apart. Each takes 8 bytes until the end.
const DISTINCT_MOST: usize = 5_000_000;

#[derive(Debug)]
pub(super) enum Figure {
    Count(u64),
    /// Whole numbers are added exactly, and the others apart from them.
    Sum {
        whole: i128,
        parts: f64,
        any: bool,
    },
    Least(Option<(SortValue, Scalar)>),
    Greatest(Option<(SortValue, Scalar)>),
    /// Hashes of the values: of five million, the chance that two agree is one in a million.
    Distinct(HashSet<u64>),
}

impl Figure {
    pub(super) fn new(metric: Metric) -> Self {
        match metric {
            Metric::Count => Self::Count(0),
            Metric::Sum => Self::Sum { whole: 0, parts: 0.0, any: false },
            Metric::Min => Self::Least(None),
            Metric::Max => Self::Greatest(None),
            Metric::CountDistinct => Self::Distinct(HashSet::new()),
        }
    }

    /// Adds a record with this value of the field. Only a count cares for records without one.
    pub(super) fn add(&mut self, value: Option<&Value>) {
        let scalar = value.and_then(Scalar::of);
        match (self, scalar) {
            (Self::Count(count), _) => *count += 1,
            (_, None) => {}
            (Self::Sum { whole, parts, any }, Some(scalar)) => match addend(&scalar) {
                Some(Addend::Whole(number)) => (*whole, *any) = (whole.saturating_add(number), true),
                Some(Addend::Part(number)) => (*parts, *any) = (*parts + number, true),
                None => {}
            },
            (Self::Least(least), Some(scalar)) => keep(least, scalar, Ordering::Less),
            (Self::Greatest(greatest), Some(scalar)) => keep(greatest, scalar, Ordering::Greater),
            (Self::Distinct(seen), Some(scalar)) => {
                let mut hasher = DefaultHasher::new();
                scalar.hash(&mut hasher);
                seen.insert(hasher.finish());
            }
        }
    }

    pub(super) fn is_overfull(&self) -> bool {
        matches!(self, Self::Distinct(seen) if seen.len() > DISTINCT_MOST)
    }

    pub(super) fn value(&self) -> Option<Scalar> {
        match self {
            Self::Count(count) => Some(Scalar::Number((*count).into())),
            Self::Distinct(seen) => Some(Scalar::Number(seen.len().into())),
            Self::Sum { any: false, .. } => None,
            Self::Sum { whole, parts, .. } => Some(Scalar::Number(sum(*whole, *parts)?)),
            Self::Least(kept) | Self::Greatest(kept) => kept.as_ref().map(|(_, scalar)| scalar.clone()),
        }
    }

    /// How two figures of one metric order. Nothing is less than anything.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let sortable = |figure: &Self| {
            let value = figure.value().and_then(|scalar| serde_json::to_value(scalar).ok());
            SortValue::of(value.as_ref())
        };
        sortable(self).cmp(&sortable(other))
    }
}

enum Addend {
    Whole(i128),
    Part(f64),
}

fn addend(scalar: &Scalar) -> Option<Addend> {
    let of_number = |number: &Number| match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => Some(Addend::Whole(whole.into())),
        (None, Some(whole)) => Some(Addend::Whole(whole.into())),
        (None, None) => number.as_f64().map(Addend::Part),
    };
    match scalar {
        Scalar::Number(number) => of_number(number),
        // Every field of a table is text.
        Scalar::Text(text) => match text.parse::<i64>() {
            Ok(whole) => Some(Addend::Whole(whole.into())),
            Err(_not_whole) => Numeric::of_text(text).map(|number| Addend::Part(number.as_f64())),
        },
        Scalar::Bool(_) => None,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a sum with parts, or beyond 64 bits, is a floating point number"
)]
fn sum(whole: i128, parts: f64) -> Option<Number> {
    match i64::try_from(whole) {
        Ok(whole) if parts == 0.0 => Some(whole.into()),
        _ => Number::from_f64(whole as f64 + parts),
    }
}

fn keep(kept: &mut Option<(SortValue, Scalar)>, scalar: Scalar, wanted: Ordering) {
    let value = match &scalar {
        // A table's numbers order as numbers.
        Scalar::Text(text) => Numeric::of_text(text).map_or_else(
            || SortValue::text(text),
            |number| SortValue::of(number.to_json().map(Value::Number).as_ref()),
        ),
        other => SortValue::of(serde_json::to_value(other).ok().as_ref()),
    };
    if kept.as_ref().is_none_or(|(best, _)| value.cmp(best) == wanted) {
        *kept = Some((value, scalar));
    }
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
        check(Metric::Min, &[json!("b"), json!("a")], &json!("a"));
        check(Metric::Max, &[json!("9"), json!("10")], &json!("10"));
        check(
            Metric::Min,
            &[json!("2026-04-01T00:30:00+02:00"), json!("2026-03-31T23:00:00Z")],
            &json!("2026-04-01T00:30:00+02:00"),
        );
        check(Metric::CountDistinct, &[json!(1), json!("1"), json!(1), json!([])], &json!(2));
    }
}
