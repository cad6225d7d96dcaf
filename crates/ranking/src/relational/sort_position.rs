//! Sort positions as the text of a cursor.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use fetchwell_core::record::SortValue;
use serde::{Deserialize, Serialize};

use super::tables::RecordKey;

/// Sort position of one query: after the record with this value, key and stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SortPosition {
    /// Digest of the query; a position of another query is rejected.
    pub(crate) question: u64,
    pub(crate) value: SortValue,
    pub(crate) key: String,
    /// Row id of the stream, since records of two connections can have equal value and key.
    pub(crate) stream: i64,
}

impl SortPosition {
    pub(super) fn record_key(&self) -> RecordKey<'_> {
        RecordKey { stream: self.stream, key: &self.key }
    }

    pub(super) fn encode(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(text: &str) -> Option<Self> {
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_value() -> impl Strategy<Value = SortValue> {
        prop_oneof![
            Just(SortValue::Missing),
            any::<f64>().prop_filter("JSON has no NaN", |n| n.is_finite()).prop_map(SortValue::number),
            (-9i64..9).prop_map(|n| SortValue::from_value(Some(&json!(n)))),
            ".{0,8}".prop_map(|text: String| SortValue::text(&text)),
        ]
    }

    proptest! {
        #[test]
        fn positions_round_trip(value in any_value(), key in ".*", question in any::<u64>(), stream in any::<i64>()) {
            let place = SortPosition { question, value, key, stream };
            prop_assert_eq!(SortPosition::decode(&place.encode()), Some(place));
        }
    }
}
