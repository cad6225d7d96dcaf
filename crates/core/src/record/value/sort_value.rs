//! The sort key of a record: one order for the embedded store, its SQLite queries, and the merged lists of remote
//! servers.
//!
//! Records without a value come first, then numbers, then strings by code points; in an order by a field with numbers, its
//! strings are before them. A string that is a time is converted to UTC with nine digits of a second, so times sort as such
//! whatever their offset; those without a zone count as UTC. All numbers are floating point: two ways of comparing would
//! give two orders.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::ordered;

/// The value that a record is sorted by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SortValue {
    /// No value, or a value that cannot be ordered.
    #[serde(rename = "m")]
    Missing,
    /// A text in a field of numbers, such as `n/a`. It is before all numbers, so that a list by largest number ends with it.
    #[serde(rename = "x")]
    NonNumber(String),
    /// The bits of an `f64`, because a number printed as text may not parse to the same value.
    #[serde(rename = "n")]
    Number(u64),
    /// A string, or a timestamp in UTC.
    #[serde(rename = "t")]
    Text(String),
}

impl SortValue {
    /// Returns the sort value of a field; a missing field, `null`, booleans, lists and objects have none.
    pub fn from_value(value: Option<&Value>) -> Self {
        match value {
            Some(Value::Number(number)) => number.as_f64().map_or(Self::Missing, Self::number),
            Some(Value::Bool(value)) => Self::number(f64::from(u8::from(*value))),
            Some(Value::String(text)) => Self::text(text),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => Self::Missing,
        }
    }

    /// Returns the sort value of a text.
    pub fn text(text: &str) -> Self {
        Self::Text(ordered(text))
    }

    /// Returns the sort value of a text in a field of numbers.
    pub fn non_number(text: &str) -> Self {
        Self::NonNumber(ordered(text))
    }

    /// Returns the sort key of a finite number.
    pub fn number(number: f64) -> Self {
        // -0 and 0 are the same number.
        Self::Number((if number == 0.0 { 0.0_f64 } else { number }).to_bits())
    }

    /// Returns the place of values of this kind among those of others.
    fn class(&self) -> u8 {
        match self {
            Self::Missing => 0,
            Self::NonNumber(_) => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
        }
    }
}

impl Eq for SortValue {}

impl PartialOrd for SortValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SortValue {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => f64::from_bits(*a).total_cmp(&f64::from_bits(*b)),
            (Self::Text(a), Self::Text(b)) | (Self::NonNumber(a), Self::NonNumber(b)) => a.cmp(b),
            _ => self.class().cmp(&other.class()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn timestamps_sort_by_time() {
        let early = SortValue::from_value(Some(&json!("2026-04-01T01:00:00+02:00")));
        let late = SortValue::from_value(Some(&json!("2026-03-31T23:30:00.5Z")));
        assert_eq!(early, SortValue::Text("2026-03-31T23:00:00.000000000Z".to_owned()));
        assert!(early < late && late < SortValue::from_value(Some(&json!("2026-04-01"))));
    }
}
