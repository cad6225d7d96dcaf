//! SQLite representation of sort values.

use fetchwell_core::record::SortValue;
use fetchwell_ranking::relational::tables::SortColumn;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// Stored in place of a missing value; less than every number that JSON can represent.
const MISSING: f64 = f64::NEG_INFINITY;

/// Returns a sort value as it is stored, or one that is in its place: no row has a text in a field of numbers.
pub(crate) fn stored_value(value: &SortValue) -> ToSqlOutput<'_> {
    match value {
        SortValue::Missing => MISSING.into(),
        SortValue::NonNumber(_) => f64::MIN.into(),
        SortValue::Number(bits) => f64::from_bits(*bits).into(),
        SortValue::Text(text) => text.as_str().into(),
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
            let less: bool = sqlite.query_one("SELECT ?1 < ?2", (stored_value(&a), stored_value(&b)), |row| row.get(0)).unwrap();
            let equal: bool = sqlite.query_one("SELECT ?1 = ?2", (stored_value(&a), stored_value(&b)), |row| row.get(0)).unwrap();
            prop_assert_eq!((less, equal), (a < b, a == b));
        }

        #[test]
        fn stored_values_round_trip(a in any_value()) {
            let sqlite = Connection::open_in_memory().unwrap();
            sqlite.execute_batch("CREATE TABLE t (v ANY NOT NULL) STRICT").unwrap();
            sqlite.execute("INSERT INTO t VALUES (?1)", [stored_value(&a)]).unwrap();
            let back: SortValue =
                sqlite.query_one("SELECT v FROM t", (), |row| Ok(sort_column(row.get_ref(0)?).into())).unwrap();
            prop_assert_eq!(back, a);
        }
    }
}
