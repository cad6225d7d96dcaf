//! Sort keys of rows in a merged list.
//!
//! Rows are ordered by value, then by record id, which is the order of the stores (`relational::list`); a list
//! has the same order whether fetchwell reads its own store or that of another server. Descending order is the exact
//! reverse.

use fetchwell_core::handle::RecordId;
use fetchwell_core::record::SortValue;
use serde::{Deserialize, Serialize};

use crate::Change;

/// Sort key in ascending order: the value, then the record id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SortKey {
    value: SortValue,
    key: RecordId,
}

impl SortKey {
    /// Creates the sort key of a record that is ordered by `value`.
    pub fn new(change: &Change, value: SortValue) -> Self {
        Self { value, key: change.address().record.clone() }
    }

    /// Returns the value that orders the record.
    pub(crate) fn value(&self) -> &SortValue {
        &self.value
    }
}

/// Returns the value that orders a record: the stream's cursor field, or the emission time if there is none.
pub fn sort_value(change: &Change, by: Option<&str>) -> SortValue {
    match (change, by) {
        (Change::Present(record), Some(field)) => SortValue::from_value(record.data.get(field)),
        (Change::Present(record), None) => {
            record.emitted_at.as_deref().map_or(SortValue::Missing, SortValue::text)
        }
        (Change::Deleted { .. }, _) => SortValue::Missing,
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use serde_json::{Value, json};

    use super::*;
    use fetchwell_core::handle::RecordAddress;
    use fetchwell_core::record::{Record, RecordData};

    fn row(key: &str, at: &Value, emitted: Option<&str>) -> Change {
        let address =
            RecordAddress { connection: None, stream: "s".parse().unwrap(), record: key.parse().unwrap() };
        let data = RecordData::from_iter([("at".to_owned(), at.clone())]);
        let emitted_at = emitted.map(str::to_owned);
        Change::Present(Box::new(Record { emitted_at, ..Record::new(address, data) }))
    }

    fn sort_key(change: &Change, by: Option<&str>) -> SortKey {
        SortKey::new(change, sort_value(change, by))
    }

    #[track_caller]
    fn check(first: &SortKey, second: &SortKey, expect: Ordering) {
        assert_eq!(first.cmp(second), expect);
        assert_eq!(second.cmp(first), expect.reverse());
    }

    #[test]
    fn values_are_ordered_as_what_they_are() {
        let at = |value: Value| sort_key(&row("k", &value, None), Some("at"));
        check(&at(json!(9)), &at(json!(10)), Ordering::Less);
        check(&at(json!(true)), &at(json!(1.0)), Ordering::Equal);
        check(&at(json!(-0.0)), &at(json!(0)), Ordering::Equal);
        check(&at(json!(9)), &at(json!("9")), Ordering::Less);
        // The same timestamp written in two ways; as text they would differ.
        check(
            &at(json!("2026-04-01T00:00:00Z")),
            &at(json!("2026-04-01T02:00:00.000+02:00")),
            Ordering::Equal,
        );
        check(&at(json!("2026-04-01")), &at(json!("2026-04-01T00:00:00Z")), Ordering::Less);
    }

    #[test]
    fn missing_value_is_least() {
        let at = |value: Value, emitted| sort_key(&row("k", &value, Some(emitted)), Some("at"));
        for missing in [json!(null), json!([1]), json!({"x": 1})] {
            check(
                &at(missing, "2026-02-01T00:00:00Z"),
                &at(json!(-5), "2026-01-01T00:00:00Z"),
                Ordering::Less,
            );
        }
    }

    #[test]
    fn a_stream_without_a_field_is_ordered_by_when_records_were_emitted() {
        let at = |emitted| sort_key(&row("k", &json!(1), emitted), None);
        check(&at(None), &at(Some("2026-01-01T00:00:00Z")), Ordering::Less);
        check(&at(Some("2026-01-01T03:00:00+03:00")), &at(Some("2026-01-01T00:00:01Z")), Ordering::Less);
    }

    #[test]
    fn ties_are_by_key() {
        let row_key = |key| sort_key(&row(key, &json!(1), None), Some("at"));
        check(&row_key("k1"), &row_key("k2"), Ordering::Less);
        check(&row_key(r#"["a","2"]"#), &row_key(r#"["a","10"]"#), Ordering::Greater);
    }
}
