//! Filters, compiled for many records.
//!
//! A `Predicate` is a filter with values that are parsed once and then compared with many records. Numbers and texts
//! compare by meaning, since values in a URL and in CSV files are always text.

use std::cmp::Ordering;

use serde_json::Value;

use super::field_reader::{FieldReader, FieldValues};
use crate::record::{Capability, FieldDetail, Numeric, Scalar, SortValue, StreamDetail, comparable};
use crate::source::store::manifest::kinds::{is_day, is_time};
use crate::source::{Condition, Filter, Operator, QueryFault, SourceError};

/// Conditions of a filter, each with the index of its field among the values that are read.
#[derive(Debug)]
pub(in crate::source::store) struct Predicate(Vec<(usize, Operator, Comparand)>);

/// Parsed right-hand side of a condition.
#[derive(Debug)]
enum Comparand {
    Bool(bool),
    /// Number, or `None` if JSON cannot represent it.
    Number(Option<Numeric>),
    Text(TextComparand),
}

/// Text to compare with. A value in a URL is text, whatever type it stands for.
#[derive(Debug)]
struct TextComparand {
    text: String,
    /// Text by which a range orders: a timestamp in UTC, otherwise the text itself.
    ordered: String,
    number: Option<Numeric>,
    boolean: Option<bool>,
}

impl Predicate {
    pub(in crate::source::store) fn new(filter: &Filter, reader: &mut FieldReader) -> Self {
        let compile = |condition: &Condition| {
            (reader.select(&condition.field), condition.operator, Comparand::new(&condition.value))
        };
        Self(filter.0.iter().map(compile).collect())
    }

    /// Returns true if a record with these values passes. A missing field fails every condition.
    pub(in crate::source::store) fn passes(&self, values: &FieldValues) -> bool {
        self.0.iter().all(|(at, operator, comparand)| {
            let Some(Some(value)) = values.get(*at) else { return false };
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
    fn new(value: &Scalar) -> Self {
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

    /// Compares a field's value with this one; returns `None` if their types do not compare. A number and a text that
    /// is a number compare as numbers, because values in a URL and in CSV files are always text.
    fn compare(&self, operator: Operator, value: &Value) -> Option<Ordering> {
        match (self, value) {
            (Self::Bool(wanted), Value::Bool(value)) => Some(value.cmp(wanted)),
            (Self::Bool(wanted), Value::String(text)) => {
                (text.parse() == Ok(*wanted)).then_some(Ordering::Equal)
            }
            (Self::Number(wanted), value) => Some(Numeric::from_value(value)?.cmp(wanted.as_ref()?)),
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
    /// Compares two texts. They are equal if they are identical or the same timestamp: `01234` does not equal `1234`.
    /// In a range of numbers, texts that are not numbers never match, except timestamps and dates, because `2026` can
    /// be the start of a range of days.
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

/// Returns the conditions on the cursor field that SQLite can apply to sort values: every record that passes the
/// filter is inside them. Texts that are numbers or booleans are left out, because they also match values of those
/// types, which sort separately from texts.
pub(in crate::source::store) fn bounds(filter: &Filter, cursor_field: &str) -> Vec<(Operator, SortValue)> {
    let bound = |condition: &Condition| match Comparand::new(&condition.value) {
        Comparand::Text(TextComparand { text, number: None, boolean: None, .. })
            if condition.field == cursor_field =>
        {
            Some((condition.operator, SortValue::text(&text)))
        }
        Comparand::Text(_) | Comparand::Number(_) | Comparand::Bool(_) => None,
    };
    filter.0.iter().filter_map(bound).collect()
}

/// Refuses a filter on fields that the stream does not let be filtered in that way.
pub(in crate::source::store) fn check(filter: &Filter, stream: &StreamDetail) -> Result<(), SourceError> {
    for Condition { field, operator, .. } in &filter.0 {
        let (capability, what) = match operator {
            Operator::Equal => (Capability::Equal, "filtered by value"),
            _ => (Capability::Range, "filtered by range"),
        };
        if let Some((problem, hint)) = missing_capability(stream, field, capability, what) {
            return Err(SourceError::InvalidQuery { fault: QueryFault::InvalidFilter, problem, hint });
        }
    }
    Ok(())
}

/// Returns problem and hint if a field does not have a capability, or `None` if it does. The hint lists the fields
/// that have it.
pub(super) fn missing_capability(
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
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&serde_json::from_value(filter.clone()).unwrap(), &mut reader);
        let mut values = Vec::new();
        reader.read(&record.to_string(), &mut values);
        assert_eq!(predicate.passes(&values), expect, "{filter} {record}");
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
        // `2026` is a number, while the days of that year are not.
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
        fn passing_values_are_inside_the_bounds(wanted in any_scalar(), value in any_scalar(), operator in 0_usize..5) {
            let filter = match operator {
                0 => json!({"v": wanted}),
                other => json!({"v": {["gte", "gt", "lte", "lt"][other - 1]: wanted}}),
            };
            let filter: Filter = serde_json::from_value(filter).unwrap();
            let predicate = Predicate::new(&filter, &mut FieldReader::default());
            let sorted = SortValue::from_value(Some(&value));
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
