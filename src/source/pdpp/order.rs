//! Which of two records comes first, when each is the first of its connection.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use crate::handle::{ConnectionId, RecordId};
use crate::record::Record;
use crate::source::{Change, Direction};

/// What a record is ordered by.
#[derive(Debug)]
pub(super) struct Place {
    own: Option<Sortable>,
    emitted: Option<Sortable>,
    key: RecordId,
    connection: Option<ConnectionId>,
}

impl Place {
    /// The place of a record by the field that orders its stream, and by when it was emitted.
    pub(super) fn of(change: &Change, by: Option<&str>) -> Self {
        let (address, record) = match change {
            Change::Present(record) => (&record.address, Some(&**record)),
            Change::Deleted { address, .. } => (address, None),
        };
        let own = |record: &Record| Sortable::of(record.data.get(by?)?);
        let emitted = |record: &Record| record.emitted_at.as_ref().map(|text| Sortable::of_text(text));
        Self {
            own: record.and_then(own),
            emitted: record.and_then(emitted),
            key: address.record.clone(),
            connection: address.connection.clone(),
        }
    }

    /// By the field, or by the time when one of the two has no such field; then by key, then by connection.
    /// What has no value comes last in either direction.
    pub(super) fn cmp(&self, other: &Self, direction: Direction) -> Ordering {
        let (mine, theirs) = match (&self.own, &other.own) {
            (Some(_), Some(_)) => (&self.own, &other.own),
            _ => (&self.emitted, &other.emitted),
        };
        let by_value = match (mine, theirs) {
            (Some(mine), Some(theirs)) => match direction {
                Direction::Ascending => mine.cmp(theirs),
                Direction::Descending => theirs.cmp(mine),
            },
            (mine, theirs) => theirs.is_some().cmp(&mine.is_some()),
        };
        by_value.then_with(|| self.key.cmp(&other.key)).then_with(|| self.connection.cmp(&other.connection))
    }
}

/// A value with an order: numbers, then texts. Two texts that are both times are compared as times.
#[derive(Debug)]
enum Sortable {
    Number(f64),
    Time(Timestamp, String),
    Text(String),
}

impl Sortable {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_f64().map(Self::Number),
            Value::String(text) => Some(Self::of_text(text)),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn of_text(text: &str) -> Self {
        match text.parse() {
            Ok(time) => Self::Time(time, text.to_owned()),
            Err(_no_time) => Self::Text(text.to_owned()),
        }
    }

    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(mine), Self::Number(theirs)) => mine.total_cmp(theirs),
            (Self::Number(_), _) => Ordering::Less,
            (_, Self::Number(_)) => Ordering::Greater,
            (Self::Time(mine, _), Self::Time(theirs, _)) => mine.cmp(theirs),
            (Self::Time(_, mine) | Self::Text(mine), Self::Time(_, theirs) | Self::Text(theirs)) => {
                mine.cmp(theirs)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::handle::RecordAddress;
    use crate::record::RecordData;

    fn place(connection: &str, key: &str, at: &Value, emitted: Option<&str>) -> Place {
        let address = RecordAddress {
            connection: connection.parse().ok(),
            stream: "s".parse().unwrap(),
            record: key.parse().unwrap(),
        };
        let record = Record {
            address,
            data: RecordData::from_iter([("at".to_owned(), at.clone())]),
            emitted_at: emitted.map(str::to_owned),
            connector_key: None,
            display_name: None,
            record_url: None,
            expanded: Vec::new(),
        };
        Place::of(&Change::Present(Box::new(record)), Some("at"))
    }

    #[track_caller]
    fn check(first: &Place, second: &Place, descending: Ordering, ascending: Ordering) {
        assert_eq!(first.cmp(second, Direction::Descending), descending);
        assert_eq!(first.cmp(second, Direction::Ascending), ascending);
        assert_eq!(second.cmp(first, Direction::Descending), descending.reverse());
    }

    #[test]
    fn values_are_ordered_as_what_they_are() {
        let at = |value: Value| place("c", "k", &value, None);
        check(&at(json!(9)), &at(json!(10)), Ordering::Greater, Ordering::Less);
        // The same moment, written twice; as text they would differ.
        check(
            &at(json!("2026-04-01T00:00:00Z")),
            &at(json!("2026-04-01T02:00:00.000+02:00")),
            Ordering::Equal,
            Ordering::Equal,
        );
        check(
            &at(json!("2026-04-01")),
            &at(json!("2026-04-01T00:00:00Z")),
            Ordering::Greater,
            Ordering::Less,
        );
        check(&at(json!(9)), &at(json!("9")), Ordering::Greater, Ordering::Less);
    }

    #[test]
    fn without_the_field_the_time_counts_and_nothing_comes_last() {
        let at = |value: Value, emitted| place("c", "k", &value, emitted);
        check(
            &at(json!(1), Some("2026-01-02T00:00:00Z")),
            &at(json!(null), Some("2026-01-01T00:00:00Z")),
            Ordering::Less,
            Ordering::Greater,
        );
        check(
            &at(json!(null), None),
            &at(json!(null), Some("2026-01-01T00:00:00Z")),
            Ordering::Greater,
            Ordering::Greater,
        );
    }

    #[test]
    fn ties_are_by_key_then_by_connection() {
        let of = |connection, key| place(connection, key, &json!(1), None);
        check(&of("b", "k1"), &of("a", "k2"), Ordering::Less, Ordering::Less);
        check(&of("a", "k1"), &of("b", "k1"), Ordering::Less, Ordering::Less);
    }
}
