//! Filters: conditions on the top-level fields of a stream's records.
//!
//! In JSON a filter is an object: `{"from": "ann@example.com", "amount": {"gte": 10, "lt": 20}}`.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::json;

use crate::record::Scalar;

/// Conditions that must all hold, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter(pub Vec<Condition>);

/// Condition on one top-level field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Name of the field.
    pub field: String,
    /// Operator of the comparison.
    pub operator: Operator,
    /// Value that the field is compared with.
    pub value: Scalar,
}

/// Comparison operator of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// Equal to the value.
    Equal,
    /// Greater than or equal to the value.
    GreaterOrEqual,
    /// Greater than the value.
    Greater,
    /// Less than or equal to the value.
    LessOrEqual,
    /// Less than the value.
    Less,
}

impl Operator {
    /// Operators of a range.
    pub const RANGE: [Self; 4] = [Self::GreaterOrEqual, Self::Greater, Self::LessOrEqual, Self::Less];

    /// Returns the name of the operator. In JSON, `eq` is written as the bare value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "eq",
            Self::GreaterOrEqual => "gte",
            Self::Greater => "gt",
            Self::LessOrEqual => "lte",
            Self::Less => "lt",
        }
    }

    /// Parses the name of a range operator.
    #[must_use]
    pub fn of_range(word: &str) -> Option<Self> {
        Self::RANGE.into_iter().find(|operator| operator.as_str() == word)
    }
}

impl Filter {
    /// Returns the conditions in order, as `[field, operator, value]`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let condition =
            |Condition { field, operator, value }: &Condition| json!([field, operator.as_str(), value]);
        self.0.iter().map(condition).collect()
    }

    /// Returns true if there are no conditions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Maximum number of conditions of one filter.
const MAX_CONDITIONS: usize = 32;

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Filter;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object such as {\"field\": \"value\"} or {\"field\": {\"gte\": 1}}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Filter, A::Error> {
                let mut conditions = Vec::new();
                while let Some((field, compared)) = fields.next_entry::<String, Comparison>()? {
                    check_name(&field).map_err(A::Error::custom)?;
                    for (operator, value) in compared.0 {
                        conditions.push(Condition { field: field.clone(), operator, value });
                    }
                }
                match conditions.len() {
                    0 => Err(A::Error::custom("it is empty; leave it out")),
                    1..=MAX_CONDITIONS => Ok(Filter(conditions)),
                    _ => Err(A::Error::custom(format!("it has more than {MAX_CONDITIONS} conditions"))),
                }
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Refuses field names such as `filter[amount][gte]`, which is the syntax of a URL for what is an object here.
fn check_name(field: &str) -> Result<(), String> {
    if field.is_empty() {
        return Err("it has a field without a name".to_owned());
    }
    match field.split_once('[') {
        Some((name, operator)) if operator.ends_with(']') => {
            let operator = operator.trim_end_matches(']');
            Err(format!("`{field}` is written {{\"{name}\": {{\"{operator}\": value}}}}"))
        }
        _ => Ok(()),
    }
}

/// Right-hand side of a field: a value, or an object of range operators.
struct Comparison(Vec<(Operator, Scalar)>);

impl<'de> Deserialize<'de> for Comparison {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum RawComparison {
            Value(Scalar),
            Range(serde_json::Map<String, serde_json::Value>),
            Other(serde::de::IgnoredAny),
        }
        match RawComparison::deserialize(deserializer)? {
            RawComparison::Value(value) => Ok(Self(vec![(Operator::Equal, value)])),
            RawComparison::Range(range) if range.is_empty() => Err(D::Error::custom(
                "an empty object compares with nothing; write {\"gte\": value} or the value",
            )),
            RawComparison::Range(range) => {
                let mut compared = Vec::with_capacity(range.len());
                for (word, value) in range {
                    let operator = Operator::of_range(&word).ok_or_else(|| {
                        D::Error::custom(format!(
                            "there is no operator `{word}`; there are gte, gt, lte and lt"
                        ))
                    })?;
                    let value = serde_json::from_value(value).map_err(|_not_scalar| {
                        D::Error::custom(format!("`{word}` compares with a string, a number or a boolean"))
                    })?;
                    compared.push((operator, value));
                }
                Ok(Self(compared))
            }
            RawComparison::Other(_) => Err(D::Error::custom(
                "a field is compared with a string, a number, a boolean, or {\"gte\": value}",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expect: &str) {
        let filter: Filter = serde_json::from_str(json).unwrap();
        let written: Vec<String> =
            filter.0.iter().map(|c| format!("{} {} {}", c.field, c.operator.as_str(), c.value)).collect();
        assert_eq!(written.join("; "), expect);
    }

    #[track_caller]
    fn refuses(json: &str, part: &str) {
        let problem = serde_json::from_str::<Filter>(json).unwrap_err().to_string();
        assert!(problem.contains(part), "{json}: {problem}");
    }

    #[test]
    fn a_filter_is_values_and_ranges() {
        check(r#"{"from":"a","n":1,"seen":true}"#, "from eq a; n eq 1; seen eq true");
        check(r#"{"n":{"gte":1,"lt":2.5}}"#, "n gte 1; n lt 2.5");
        check(r#"{"t":{"gt":"2026-01-01"}}"#, "t gt 2026-01-01");
    }

    #[test]
    fn invalid_filter_error_shows_the_syntax() {
        refuses("{}", "leave it out");
        refuses("\"a=b\"", "an object such as");
        refuses(r#"{"n":{}}"#, "write {\"gte\": value}");
        refuses(r#"{"n":{"like":1}}"#, "no operator `like`");
        refuses(r#"{"n":{"eq":1}}"#, "no operator `eq`");
        refuses(r#"{"n":{"gte":[1]}}"#, "`gte` compares with");
        refuses(r#"{"n":[1]}"#, "is compared with a string");
        refuses(r#"{"n":null}"#, "is compared with a string");
        refuses(r#"{"n[gte]":1}"#, "{\"n\": {\"gte\": value}}");
        refuses(r#"{"":1}"#, "without a name");
    }
}
