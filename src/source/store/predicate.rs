//! A filter, made ready for many records.

use std::cmp::Ordering;

use serde_json::Value;

use super::pick::{Picked, Picker};
use super::sort_value::{SortValue, comparable};
use crate::record::{Capability, Scalar, StreamDetail};
use crate::source::{Condition, Filter, Operator, QueryFault, SourceError};

/// Conditions with the place of each one's field among the picked ones.
#[derive(Debug)]
pub(super) struct Predicate(Vec<(usize, Operator, Comparand)>);

/// What a field is compared with, read once.
#[derive(Debug)]
struct Comparand {
    text: String,
    /// The text as it orders: a moment in UTC, else the text.
    ordered: String,
    number: Option<f64>,
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
            comparand.compare(value).is_some_and(|ordering| match operator {
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
        let text = value.to_string();
        let number = match value {
            Scalar::Number(number) => number.as_f64(),
            Scalar::Text(text) => number_of(text),
            Scalar::Bool(_) => None,
        };
        let ordered = comparable(&text).unwrap_or_else(|| text.clone());
        Self { ordered, number, boolean: text.parse().ok(), text }
    }

    /// How a field's value stands to it. A number and a text that is one are compared as numbers: a filter
    /// in a URL is always text, and so is every field of a table.
    fn compare(&self, value: &Value) -> Option<Ordering> {
        match value {
            Value::Number(number) => number.as_f64()?.partial_cmp(&self.number?),
            Value::Bool(value) => Some(value.cmp(&self.boolean?)),
            Value::String(text) if *text == self.text => Some(Ordering::Equal),
            Value::String(text) => match (self.number, number_of(text)) {
                (Some(wanted), Some(number)) => number.partial_cmp(&wanted),
                _ => Some(comparable(text).as_deref().unwrap_or(text).cmp(&self.ordered)),
            },
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// A text that is a number and nothing else.
pub(super) fn number_of(text: &str) -> Option<f64> {
    let digits = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    if digits { text.parse().ok().filter(|number: &f64| number.is_finite()) } else { None }
}

/// The ends of the order that a filter on the field of the order leaves, where they can be used: only texts
/// that are no numbers, since those compare with both.
pub(super) fn bounds(filter: &Filter, cursor_field: &str) -> Vec<(Operator, SortValue)> {
    let bound = |condition: &Condition| match &condition.value {
        Scalar::Text(text) if condition.field == cursor_field && number_of(text).is_none() => {
            Some((condition.operator, SortValue::text(text)))
        }
        _ => None,
    };
    filter.0.iter().filter_map(bound).collect()
}

/// Refuses a filter by what a stream does not take.
pub(super) fn check(filter: &Filter, stream: &StreamDetail) -> Result<(), SourceError> {
    for Condition { field, operator, .. } in &filter.0 {
        let wanted = if *operator == Operator::Equal { Capability::Equal } else { Capability::Range };
        let can = |detail: &&crate::record::FieldDetail| detail.capabilities.contains(&wanted);
        if stream.field(field).as_ref().is_some_and(can) {
            continue;
        }
        let known = stream.fields.iter().filter(can).map(|detail| detail.name.as_str()).take(20);
        let known: Vec<&str> = known.collect();
        let by = if wanted == Capability::Equal { "by value" } else { "by range" };
        let problem = match stream.field(field) {
            None => format!("stream `{}` has no field `{field}`", stream.name),
            Some(_) => format!("field `{field}` of stream `{}` cannot be filtered {by}", stream.name),
        };
        let hint = format!("Fields that can be filtered {by}: {}.", known.join(", "));
        return Err(SourceError::CorrectQuery { fault: QueryFault::InvalidFilter, problem, hint });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
}
