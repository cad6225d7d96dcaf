//! Group keys of an aggregation.
//!
//! Up to 200,000 groups are counted in memory, and their field may hold texts of megabytes. A long text is therefore
//! identified by its digest and shown by its first characters.

use sha2::{Digest, Sha256};

use fetchwell_core::fit::clip;
use fetchwell_core::record::{Numeric, Scalar};
use fetchwell_source::accumulator::MAX_TEXT_BYTES;
use serde_json::Value;

use super::time_bucket::TimeBucket;

/// Value that all records of a group share. Numbers that a filter considers equal are the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum GroupKey {
    Bool(bool),
    Number(Numeric),
    Text(String),
    LongText { start: String, digest: [u8; 32] },
    Time(TimeBucket),
}

impl GroupKey {
    /// Returns the key of a value, or `None` for lists, objects and `null`.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Number(number) => Numeric::of_number(number).map(Self::Number),
            Value::String(text) if text.len() <= MAX_TEXT_BYTES => Some(Self::Text(text.clone())),
            Value::String(text) => Some(Self::LongText {
                start: clip(text, MAX_TEXT_BYTES),
                digest: Sha256::digest(text).into(),
            }),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Returns the keys of the groups that a record with this value is in: the different items of a list, otherwise the
    /// value. `None` is the group of records without a value.
    pub(super) fn all_of(value: &Value) -> Vec<Option<Self>> {
        let Value::Array(items) = value else { return vec![Self::from_value(value)] };
        let mut keys: Vec<_> = items.iter().filter_map(Self::from_value).map(Some).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() { vec![None] } else { keys }
    }

    /// Returns the number of bytes of text in the key.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Text(text) | Self::LongText { start: text, .. } => text.len(),
            Self::Bool(_) | Self::Number(_) | Self::Time(_) => 0,
        }
    }

    pub(super) fn into_scalar(self) -> Option<Scalar> {
        match self {
            Self::Bool(value) => Some(Scalar::Bool(value)),
            Self::Number(number) => number.to_json().map(Scalar::Number),
            Self::Text(text) | Self::LongText { start: text, .. } => Some(Scalar::Text(text)),
            Self::Time(bucket) => Some(Scalar::Text(bucket.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_told_apart_by_all_of_them() {
        let long = "a word ".repeat(20_000);
        let of = |end: &str| GroupKey::from_value(&json!(format!("{long}{end}"))).unwrap();
        assert_eq!(of("1"), of("1"));
        assert_ne!(of("1"), of("2"));
        assert!(of("1").held() <= MAX_TEXT_BYTES);
        assert_eq!(of("1").into_scalar(), of("2").into_scalar());
    }

    #[test]
    fn a_list_is_in_the_group_of_each_item_once() {
        let keys = |value: Value| GroupKey::all_of(&value).len();
        assert_eq!(keys(json!(["a", "b", "a", 1, 1.0, null])), 3);
        assert_eq!(GroupKey::all_of(&json!([])), [None]);
        assert_eq!(GroupKey::all_of(&json!([[]])), [None]);
        assert_eq!(keys(json!("a")), 1);
    }

    #[test]
    fn numbers_are_one_key_however_they_are_written() {
        let of = |value: Value| GroupKey::from_value(&value).unwrap();
        assert_eq!(of(json!(1)), of(json!(1.0)));
        assert_eq!(of(json!(0)), of(json!(-0.0)));
        assert_ne!(of(json!(1)), of(json!("1")));
        assert_ne!(of(json!(i64::MAX)), of(json!(i64::MAX - 1)));
        assert_eq!(of(json!(-0.0)).into_scalar(), Some(Scalar::Number(0.into())));
    }
}
