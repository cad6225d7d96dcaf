//! A filter, made ready for many records.

use std::cmp::Ordering;

use serde_json::Value;

use super::kinds::{is_day, is_time};
use super::pick::{Picked, Picker};
use crate::record::{Capability, FieldDetail, Numeric, Scalar, SortValue, StreamDetail, comparable};
use crate::source::{Condition, Filter, Operator, QueryFault, SourceError};

/// Conditions with the place of each one's field among the picked ones.
#[derive(Debug)]
pub(super) struct Predicate(Vec<(usize, Operator, Comparand)>);

/// What a field is compared with, read once.
#[derive(Debug)]
enum Comparand {
    Bool(bool),
    /// `None` for a number that JSON cannot write.
    Number(Option<Numeric>),
    Text(TextComparand),
}

/// A text, which in a URL stands for anything.
#[derive(Debug)]
struct TextComparand {
    text: String,
    /// The text as it orders: a moment in UTC, else the text.
    ordered: String,
    number: Option<Numeric>,
    boolean: Option<bool>,
}

impl Predicate {
    pub(super) fn new(filter: &Filter, picker: &mut Picker) -> Self {
        let compile = |condition: &Condition| {
            (picker.want(&condition.field), condition.operator, Comparand::of(&condition.value))
        };
        Self(filter.0.iter().map(compile).collect())
    }

    /// Whether a record with these values passes. A field that is missing passes nothing.
    pub(super) fn passes(&self, picked: &Picked) -> bool {
        self.0.iter().all(|(at, operator, comparand)| {
            let Some(Some(value)) = picked.get(*at) else { return false };
            comparand.compare(*operator, value).is_some_and(|ordering| match operator {
                Operator::Equal => ordering.is_eq(),
                Operator::GreaterOrEqual => ordering.is_ge(),
                Operator::Greater => ordering.is_gt(),
                Operator::LessOrEqual => ordering.is_le(),
                Operator::Less => ordering.is_lt(),
            })
        })
    }
}

impl Comparand {
    fn of(value: &Scalar) -> Self {
        match value {
            Scalar::Bool(value) => Self::Bool(*value),
            Scalar::Number(number) => Self::Number(Numeric::of_number(number)),
            Scalar::Text(text) => Self::Text(TextComparand {
                ordered: comparable(text).unwrap_or_else(|| text.clone()),
                number: Numeric::of_text(text),
                boolean: text.parse().ok(),
                text: text.clone(),
            }),
        }
    }

    /// How a field's value stands to it; `None` where the two do not compare. A number and a text that is one
    /// compare as numbers: a filter in a URL is always text, and so is every field of a table.
    fn compare(&self, operator: Operator, value: &Value) -> Option<Ordering> {
        match (self, value) {
            (Self::Bool(wanted), Value::Bool(value)) => Some(value.cmp(wanted)),
            (Self::Bool(wanted), Value::String(text)) => {
                (text.parse() == Ok(*wanted)).then_some(Ordering::Equal)
            }
            (Self::Number(wanted), value) => Some(Numeric::of(value)?.cmp(wanted.as_ref()?)),
            (Self::Text(wanted), Value::Bool(value)) => Some(value.cmp(&wanted.boolean?)),
            (Self::Text(wanted), Value::Number(number)) => {
                Some(Numeric::of_number(number)?.cmp(wanted.number.as_ref()?))
            }
            (Self::Text(wanted), Value::String(text)) => wanted.compare(operator, text),
            (Self::Bool(_) | Self::Text(_), _) => None,
        }
    }
}

impl TextComparand {
    /// Two texts are equal when they are the same or the same moment: `01234` is not `1234`. A range of numbers
    /// has no other texts in it, but `2026` may be the start of a range of days.
    fn compare(&self, operator: Operator, text: &str) -> Option<Ordering> {
        if *text == self.text {
            return Some(Ordering::Equal);
        }
        if let (Some(wanted), false) = (&self.number, operator == Operator::Equal) {
            if let Some(number) = Numeric::of_text(text) {
                return Some(number.cmp(wanted));
            }
            if !is_time(text) && !is_day(text) {
                return None;
            }
        }
        Some(comparable(text).as_deref().unwrap_or(text).cmp(&self.ordered))
    }
}

/// The ends of the order that a filter on the field of the order leaves, where they can be used: every record
/// that passes has to be inside. Texts that are numbers or booleans compare with these too, which order apart
/// from texts.
pub(super) fn bounds(filter: &Filter, cursor_field: &str) -> Vec<(Operator, SortValue)> {
    let bound = |condition: &Condition| match Comparand::of(&condition.value) {
        Comparand::Text(TextComparand { text, number: None, boolean: None, .. })
            if condition.field == cursor_field =>
        {
            Some((condition.operator, SortValue::text(&text)))
        }
        Comparand::Text(_) | Comparand::Number(_) | Comparand::Bool(_) => None,
    };
    filter.0.iter().filter_map(bound).collect()
}

/// Refuses a filter by what a stream does not take.
pub(super) fn check(filter: &Filter, stream: &StreamDetail) -> Result<(), SourceError> {
    for Condition { field, operator, .. } in &filter.0 {
        let (capability, what) = match operator {
            Operator::Equal => (Capability::Equal, "filtered by value"),
            _ => (Capability::Range, "filtered by range"),
        };
        if let Some((problem, hint)) = unfit(stream, field, capability, what) {
            return Err(SourceError::CorrectQuery { fault: QueryFault::InvalidFilter, problem, hint });
        }
    }
    Ok(())
}

/// Why a field of a stream cannot be used so, with the fields that can; `None` when it can.
pub(super) fn unfit(
    stream: &StreamDetail,
    field: &str,
    capability: Capability,
    what: &str,
) -> Option<(String, String)> {
    let can = |detail: &&FieldDetail| detail.capabilities.contains(&capability);
    let problem = match stream.field(field) {
        Some(detail) if can(&detail) => return None,
        Some(_) => format!("field `{field}` of stream `{}` cannot be {what}", stream.name),
        None => format!("stream `{}` has no field `{field}`", stream.name),
    };
    let fit: Vec<&str> =
        stream.fields.iter().filter(can).map(|detail| detail.name.as_str()).take(20).collect();
    let hint = match fit.as_slice() {
        [] => format!("No field of stream `{}` can be {what}.", stream.name),
        fit => format!("Fields that can be {what}: {}.", fit.join(", ")),
    };
    Some((problem, hint))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(filter: &Value, record: &Value, expect: bool) {
        let mut picker = Picker::default();
        let predicate = Predicate::new(&serde_json::from_value(filter.clone()).unwrap(), &mut picker);
        let mut picked = Vec::new();
        picker.pick(&record.to_string(), &mut picked);
        assert_eq!(predicate.passes(&picked), expect, "{filter} {record}");
    }

    #[test]
    fn values_compare_by_what_they_mean() {
        check(&json!({"a": "x"}), &json!({"a": "x"}), true);
        check(&json!({"a": "x"}), &json!({"a": "X"}), false);
        check(&json!({"a": "x"}), &json!({"b": "x"}), false);
        check(&json!({"a": 21}), &json!({"a": 21.0}), true);
        check(&json!({"a": "21"}), &json!({"a": 21}), true);
        check(&json!({"a": 21}), &json!({"a": "21"}), true);
        check(&json!({"a": {"gt": 9}}), &json!({"a": "10"}), true);
        check(&json!({"a": "true"}), &json!({"a": true}), true);
        check(&json!({"a": true}), &json!({"a": 1}), false);
        check(&json!({"a": ""}), &json!({"a": null}), false);
        check(
            &json!({"t": {"gte": "2026-04-01T00:00:00Z"}}),
            &json!({"t": "2026-04-01T01:00:00+02:00"}),
            false,
        );
        check(&json!({"t": "2026-04-01T00:00:00.000Z"}), &json!({"t": "2026-04-01T02:00:00+02:00"}), true);
        check(
            &json!({"t": {"gte": "2026-04-01", "lt": "2026-04-02"}}),
            &json!({"t": "2026-04-01T23:59:59Z"}),
            true,
        );
        check(&json!({"a": "x", "n": {"lt": 2}}), &json!({"n": 1, "a": "x"}), true);
        check(&json!({"a": "x", "n": {"lt": 2}}), &json!({"n": 2, "a": "x"}), false);
    }
    #[test]
    fn texts_are_equal_as_they_are_written() {
        check(&json!({"sid": "1234567890123456780"}), &json!({"sid": "1234567890123456780"}), true);
        check(&json!({"sid": "1234567890123456780"}), &json!({"sid": "1234567890123456781"}), false);
        check(&json!({"zip": "01234"}), &json!({"zip": "1234"}), false);
        check(&json!({"zip": "1000"}), &json!({"zip": "1e3"}), false);
        check(&json!({"zip": 1000}), &json!({"zip": "1e3"}), true);
        check(&json!({"zip": "01234"}), &json!({"zip": 1234}), true);
        check(&json!({"flag": true}), &json!({"flag": "true"}), true);
    }

    #[test]
    fn whole_numbers_compare_exactly() {
        check(&json!({"v": i64::MAX}), &json!({"v": i64::MAX}), true);
        check(&json!({"v": i64::MAX}), &json!({"v": i64::MAX - 1}), false);
        check(&json!({"v": {"gt": i64::MAX - 1}}), &json!({"v": i64::MAX}), true);
        check(&json!({"v": {"gt": i64::MAX}}), &json!({"v": u64::MAX}), true);
        check(&json!({"v": {"gt": "1234567890123456780"}}), &json!({"v": "1234567890123456781"}), true);
        check(
            &json!({"v": {"lt": "1234567890123456781"}}),
            &json!({"v": 1_234_567_890_123_456_780_i64}),
            true,
        );
    }

    #[test]
    fn a_range_of_numbers_has_no_other_texts_in_it() {
        for text in ["n/a", "", "-", "~"] {
            for range in [json!({"gt": 10}), json!({"lt": 10}), json!({"gte": "10"}), json!({"lte": "10"})] {
                check(&json!({"amount": range}), &json!({"amount": text}), false);
            }
        }
        check(&json!({"amount": {"gt": "9"}}), &json!({"amount": "10"}), true);
        check(&json!({"name": {"gt": "n"}}), &json!({"name": "n/a"}), true);
        // A year is a number, and the days of a year are no numbers.
        check(&json!({"day": {"gte": "2026"}}), &json!({"day": "2026-04-01"}), true);
        check(&json!({"at": {"lt": "2026"}}), &json!({"at": "2026-04-01T00:00:00Z"}), false);
    }

    fn any_scalar() -> impl Strategy<Value = Value> {
        prop_oneof![
            (-3i64..3).prop_map(Value::from),
            (-3i64..3).prop_map(|n| json!(n.to_string())),
            any::<bool>().prop_map(Value::from),
            any::<bool>().prop_map(|boolean| json!(boolean.to_string())),
            "[0-9a-z./-]{0,4}".prop_map(Value::from),
            (0..48).prop_map(|hour| json!(format!("2026-04-01T{:02}:00:00+{:02}:00", hour % 24, hour / 24))),
            (1..4).prop_map(|day| json!(format!("2026-04-0{day}"))),
        ]
    }

    proptest! {
        #[test]
        fn what_passes_is_inside_the_bounds(wanted in any_scalar(), value in any_scalar(), operator in 0_usize..5) {
            let filter = match operator {
                0 => json!({"v": wanted}),
                other => json!({"v": {["gte", "gt", "lte", "lt"][other - 1]: wanted}}),
            };
            let filter: Filter = serde_json::from_value(filter).unwrap();
            let predicate = Predicate::new(&filter, &mut Picker::default());
            let sorted = SortValue::of(Some(&value));
            let inside = bounds(&filter, "v").iter().all(|(operator, bound)| match operator {
                Operator::Equal => sorted == *bound,
                Operator::GreaterOrEqual => sorted >= *bound,
                Operator::Greater => sorted > *bound,
                Operator::LessOrEqual => sorted <= *bound,
                Operator::Less => sorted < *bound,
            });
            prop_assert!(inside || !predicate.passes(&vec![Some(value)]));
        }
    }
}
