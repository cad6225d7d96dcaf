//! SQLite representation of sort values.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

use crate::record::SortValue;
use crate::source::relational::tables::SortColumn;

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

/// Reads a sort value from a column.
pub(super) fn sort_column(value: ValueRef<'_>) -> SortColumn<'_> {
    match value {
        ValueRef::Real(number) if number.is_finite() => SortColumn::Number(number),
        #[expect(clippy::cast_precision_loss, reason = "it was stored from a floating point number")]
        ValueRef::Integer(number) => SortColumn::Number(number as f64),
        ValueRef::Text(_) => value.as_str().map_or(SortColumn::Missing, SortColumn::Text),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => SortColumn::Missing,
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
            let back: SortValue =
                sqlite.query_one("SELECT v FROM t", (), |row| Ok(sort_column(row.get_ref(0)?).into())).unwrap();
            prop_assert_eq!(back, a);
        }
    }
}
