//! SQLite representation of sort values, and sort positions as the text of a cursor.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

use crate::record::SortValue;

/// Stored in place of a missing value; less than every number that JSON can represent.
const MISSING: f64 = f64::NEG_INFINITY;

impl ToSql for SortValue {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>, rusqlite::Error> {
        Ok(match self {
            Self::Missing => MISSING.into(),
            Self::Number(bits) => f64::from_bits(*bits).into(),
            Self::Text(text) => text.as_str().into(),
        })
    }
}

impl FromSql for SortValue {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Real(number) if number.is_finite() => Self::number(number),
            #[expect(clippy::cast_precision_loss, reason = "it was stored from a floating point number")]
            ValueRef::Integer(number) => Self::number(number as f64),
            ValueRef::Text(_) => Self::Text(value.as_str()?.to_owned()),
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => Self::Missing,
        })
    }
}

/// Sort position of one query: after the record with this value, key and stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SortPosition {
    /// Digest of the query; a position of another query is rejected.
    pub(in crate::source::store) question: u64,
    pub(in crate::source::store) value: SortValue,
    pub(in crate::source::store) key: String,
    /// Row id of the stream, since records of two connections can have equal value and key.
    pub(in crate::source::store) stream: i64,
}

impl SortPosition {
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
    use rusqlite::Connection;
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
        fn sqlite_has_the_same_order(a in any_value(), b in any_value()) {
            let sqlite = Connection::open_in_memory().unwrap();
            let less: bool = sqlite.query_one("SELECT ?1 < ?2", (&a, &b), |row| row.get(0)).unwrap();
            let equal: bool = sqlite.query_one("SELECT ?1 = ?2", (&a, &b), |row| row.get(0)).unwrap();
            prop_assert_eq!((less, equal), (a < b, a == b));
        }

        #[test]
        fn stored_values_round_trip(a in any_value()) {
            let sqlite = Connection::open_in_memory().unwrap();
            sqlite.execute_batch("CREATE TABLE t (v ANY NOT NULL) STRICT").unwrap();
            sqlite.execute("INSERT INTO t VALUES (?1)", [&a]).unwrap();
            let back: SortValue = sqlite.query_one("SELECT v FROM t", (), |row| row.get(0)).unwrap();
            prop_assert_eq!(back, a);
        }

        #[test]
        fn positions_round_trip(value in any_value(), key in ".*", question in any::<u64>(), stream in any::<i64>()) {
            let place = SortPosition { question, value, key, stream };
            prop_assert_eq!(SortPosition::decode(&place.encode()), Some(place));
        }
    }
}
