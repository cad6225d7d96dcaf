//! Filters: conditions on the fields of a stream's records.
//!
//! In JSON a filter is an object: `{"from": "ann@example.com", "amount": {"gte": 10, "lt": 20}}`.

use std::fmt;

use fetchwell_core::record::Scalar;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Value, json};

/// Conditions that must all hold, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter(pub Vec<Condition>);

/// Condition on one field. A field with several values passes if any of them does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Name of the field, or the path to a value inside of it, such as `author.name`.
    pub field: String,
    /// Test that the value has to pass.
    pub test: Test,
}

/// Test of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Equal to the value.
    Equal(Scalar),
    /// Equal to one of the values.
    In(Vec<Scalar>),
    /// Inside a range that the value bounds.
    Range(RangeOperator, Scalar),
    /// A text with this text in it, in any case.
    Contains(String),
    /// A text that begins with this text, in any case.
    Prefix(String),
    /// True: any value but `null`. False: no value.
    Exists(bool),
}

/// Comparison operator of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeOperator {
    /// Greater than or equal to the value.
    GreaterOrEqual,
    /// Greater than the value.
    Greater,
    /// Less than or equal to the value.
    LessOrEqual,
    /// Less than the value.
    Less,
}

/// Names of the operators, for errors.
const OPERATORS: &str = "eq, in, gte, gt, lte, lt, contains, prefix and exists";

/// Maximum number of values of `in`.
const MAX_VALUES: usize = 100;

impl RangeOperator {
    /// All operators, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::GreaterOrEqual, Self::Greater, Self::LessOrEqual, Self::Less];

    /// Returns the name of the operator.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GreaterOrEqual => "gte",
            Self::Greater => "gt",
            Self::LessOrEqual => "lte",
            Self::Less => "lt",
        }
    }
}

impl Test {
    /// Creates the test with an operator's name and a value.
    ///
    /// # Errors
    ///
    /// The name is no operator, or the value is not one that it takes.
    pub fn parse(operator: &str, value: Value) -> Result<Self, String> {
        if let Some(range) = RangeOperator::ALL.into_iter().find(|range| range.as_str() == operator) {
            return Ok(Self::Range(range, scalar(operator, &value)?));
        }
        let text = |value: &Value| match scalar(operator, value)?.to_string() {
            text if text.is_empty() => Err(format!("`{operator}` needs a text that is not empty")),
            text => Ok(text),
        };
        match operator {
            "eq" => scalar(operator, &value).map(Self::Equal),
            "contains" => text(&value).map(Self::Contains),
            "prefix" => text(&value).map(Self::Prefix),
            "exists" => match value {
                Value::Bool(exists) => Ok(Self::Exists(exists)),
                Value::String(text) if text == "true" => Ok(Self::Exists(true)),
                Value::String(text) if text == "false" => Ok(Self::Exists(false)),
                _ => Err("`exists` is true or false".to_owned()),
            },
            "in" => match value {
                Value::Array(values) if (1..=MAX_VALUES).contains(&values.len()) => {
                    values.iter().map(|value| scalar(operator, value)).collect::<Result<_, _>>().map(Self::In)
                }
                Value::Array(_) => Err(format!("`in` takes 1 to {MAX_VALUES} values")),
                one => scalar(operator, &one).map(|one| Self::In(vec![one])),
            },
            _ => Err(format!("there is no operator `{operator}`; there are {OPERATORS}")),
        }
    }

    /// Returns the name of the operator.
    #[must_use]
    pub fn operator(&self) -> &'static str {
        match self {
            Self::Equal(_) => "eq",
            Self::In(_) => "in",
            Self::Range(range, _) => range.as_str(),
            Self::Contains(_) => "contains",
            Self::Prefix(_) => "prefix",
            Self::Exists(_) => "exists",
        }
    }

    /// Returns the value that the operator takes.
    fn value(&self) -> Value {
        match self {
            Self::Equal(value) | Self::Range(_, value) => json!(value),
            Self::In(values) => json!(values),
            Self::Contains(text) | Self::Prefix(text) => json!(text),
            Self::Exists(exists) => json!(exists),
        }
    }
}

fn scalar(operator: &str, value: &Value) -> Result<Scalar, String> {
    Scalar::from_value(value)
        .ok_or_else(|| format!("`{operator}` compares with a string, a number or a boolean"))
}

impl Filter {
    /// Returns the conditions in order, as `[field, operator, value]`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.0.iter().map(|Condition { field, test }| json!([field, test.operator(), test.value()])).collect()
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
                    conditions
                        .extend(compared.0.into_iter().map(|test| Condition { field: field.clone(), test }));
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
        Some((name, operator))
            if operator.ends_with(']') && operator.starts_with(|first: char| first.is_ascii_alphabetic()) =>
        {
            let operator = operator.trim_end_matches(']');
            Err(format!("`{field}` is written {{\"{name}\": {{\"{operator}\": value}}}}"))
        }
        _ => Ok(()),
    }
}

/// Right-hand side of a field: a value, an array of alternatives, or an object of operators.
struct Comparison(Vec<Test>);

impl<'de> Deserialize<'de> for Comparison {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tests = match Value::deserialize(deserializer)? {
            Value::Object(operators) if operators.is_empty() => Err(
                "an empty object compares with nothing; write {\"gte\": value} or the value".to_owned(),
            ),
            Value::Object(operators) => {
                operators.into_iter().map(|(operator, value)| Test::parse(&operator, value)).collect()
            }
            values @ Value::Array(_) => Test::parse("in", values).map(|test| vec![test]),
            value => match Scalar::from_value(&value) {
                Some(value) => Ok(vec![Test::Equal(value)]),
                None => Err(
                    "a field is compared with a string, a number, a boolean, an array of these, or {\"gte\": value}; \
                     {\"exists\": false} finds records without the field"
                        .to_owned(),
                ),
            },
        };
        tests.map(Self).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expect: &str) {
        let filter: Filter = serde_json::from_str(json).unwrap();
        let written: Vec<String> = filter
            .0
            .iter()
            .map(|c| format!("{} {} {}", c.field, c.test.operator(), c.test.value()))
            .collect();
        assert_eq!(written.join("; "), expect);
    }

    #[track_caller]
    fn refuses(json: &str, part: &str) {
        let problem = serde_json::from_str::<Filter>(json).unwrap_err().to_string();
        assert!(problem.contains(part), "{json}: {problem}");
    }

    #[test]
    fn a_filter_is_values_and_ranges() {
        check(r#"{"from":"a","n":1,"seen":true}"#, "from eq \"a\"; n eq 1; seen eq true");
        check(r#"{"n":{"gte":1,"lt":2.5}}"#, "n gte 1; n lt 2.5");
        check(r#"{"n":[1,2],"m":{"in":["a"]}}"#, "n in [1,2]; m in [\"a\"]");
        check(
            r#"{"a":{"contains":"x","eq":1},"b":{"prefix":7}}"#,
            "a contains \"x\"; a eq 1; b prefix \"7\"",
        );
        check(r#"{"a.b[].c":{"exists":false}}"#, "a.b[].c exists false");
        check(r#"{"t":{"gt":"2026-01-01"}}"#, "t gt \"2026-01-01\"");
    }

    #[test]
    fn invalid_filter_error_shows_the_syntax() {
        refuses("{}", "leave it out");
        refuses("\"a=b\"", "an object such as");
        refuses(r#"{"n":{}}"#, "write {\"gte\": value}");
        refuses(r#"{"n":{"like":1}}"#, "no operator `like`");
        refuses(r#"{"n":{"ne":1}}"#, "there are eq, in, gte");
        refuses(r#"{"n":{"in":[]}}"#, "1 to 100 values");
        refuses(r#"{"n":{"contains":""}}"#, "not empty");
        refuses(r#"{"n":{"exists":"maybe"}}"#, "true or false");
        refuses(r#"{"n":{"gte":[1]}}"#, "`gte` compares with");
        refuses(r#"{"n":[[1]]}"#, "`in` compares with");
        refuses(r#"{"n":[]}"#, "1 to 100 values");
        refuses(r#"{"n":null}"#, "is compared with a string");
        refuses(r#"{"n[gte]":1}"#, "{\"n\": {\"gte\": value}}");
        refuses(r#"{"":1}"#, "without a name");
    }
}
