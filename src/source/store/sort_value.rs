//! What a record is ordered by, so that SQLite and this program agree on the order.
//!
//! Records without a value come first, then numbers, then texts by code points. A text that is a moment is
//! written in UTC with nine digits of a second, so moments order as such whatever offset they were written
//! with. Numbers are all stored as floating point: two ways to compare them would be two orders.

use std::cmp::Ordering;
use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kinds::moment;

/// Stands for no value: less than every number that JSON has.
const MISSING: f64 = f64::NEG_INFINITY;

/// What a record is ordered by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum SortValue {
    #[serde(rename = "m")]
    Missing,
    /// As bits, because a number written as text may not come back the same.
    #[serde(rename = "n")]
    Number(u64),
    #[serde(rename = "t")]
    Text(String),
}

impl SortValue {
    pub(super) fn of(value: Option<&Value>) -> Self {
        match value {
            Some(Value::Number(number)) => number.as_f64().map_or(Self::Missing, Self::number),
            Some(Value::Bool(value)) => Self::number(f64::from(u8::from(*value))),
            Some(Value::String(text)) => Self::text(text),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => Self::Missing,
        }
    }

    pub(super) fn text(text: &str) -> Self {
        Self::Text(comparable(text).unwrap_or_else(|| text.to_owned()))
    }

    fn number(number: f64) -> Self {
        // -0 and 0 are one number to SQLite.
        Self::Number((if number == 0.0 { 0.0_f64 } else { number }).to_bits())
    }
}

/// A moment in the form in which moments order as texts.
pub(super) fn comparable(text: &str) -> Option<String> {
    let moment = moment(text)?;
    let mut written = String::with_capacity(30);
    write!(written, "{moment:.9}").ok()?;
    Some(written)
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
            (Self::Missing, Self::Missing) => Ordering::Equal,
            (Self::Number(a), Self::Number(b)) => f64::from_bits(*a).total_cmp(&f64::from_bits(*b)),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Missing, _) | (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (_, Self::Missing) | (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

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

/// A place in the order of one question: after the record with this value and key, of this stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The question, so that a place of another is told apart.
    pub(super) question: u64,
    pub(super) value: SortValue,
    pub(super) key: String,
    /// The row of the stream: records of two connections may have the same value and key.
    pub(super) stream: i64,
}

impl Place {
    pub(super) fn write(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::Connection;
    use serde_json::json;

    use super::*;

    #[test]
    fn moments_order_as_such() {
        let early = SortValue::of(Some(&json!("2026-04-01T01:00:00+02:00")));
        let late = SortValue::of(Some(&json!("2026-03-31T23:30:00.5Z")));
        assert_eq!(early, SortValue::Text("2026-03-31T23:00:00.000000000Z".to_owned()));
        assert!(early < late && late < SortValue::of(Some(&json!("2026-04-01"))));
    }

    fn any_value() -> impl Strategy<Value = SortValue> {
        prop_oneof![
            Just(SortValue::Missing),
            any::<f64>().prop_filter("JSON has no NaN", |n| n.is_finite()).prop_map(SortValue::number),
            (-9i64..9).prop_map(|n| SortValue::of(Some(&json!(n)))),
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
        fn what_is_stored_comes_back(a in any_value()) {
            let sqlite = Connection::open_in_memory().unwrap();
            sqlite.execute_batch("CREATE TABLE t (v ANY NOT NULL) STRICT").unwrap();
            sqlite.execute("INSERT INTO t VALUES (?1)", [&a]).unwrap();
            let back: SortValue = sqlite.query_one("SELECT v FROM t", (), |row| row.get(0)).unwrap();
            prop_assert_eq!(back, a);
        }

        #[test]
        fn a_place_is_read_as_written(value in any_value(), key in ".*", question in any::<u64>(), stream in any::<i64>()) {
            let place = Place { question, value, key, stream };
            prop_assert_eq!(Place::read(&place.write()), Some(place));
        }
    }
}
