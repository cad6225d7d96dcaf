//! The rows that a batch of an import changes, decided from the rows that exist.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::sort_key::SortKey;
use super::words::{Place, RecordWords};
use crate::record::{RecordData, SortValue};
use crate::source::store::{Change, Tally};

/// Place of a record: the row id of its stream, and its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RecordPlace {
    pub(super) stream: i64,
    pub(super) key: String,
}

/// State of a record before a change.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordState {
    /// SHA-256 of the text; `None` if the record is deleted.
    pub(super) digest: Option<Vec<u8>>,
    pub(super) emitted_at: Option<String>,
}

/// Changed rows in columns, each row once. The names are those of the table.
#[derive(Debug, Default)]
pub(super) struct ChangedRows {
    pub(super) stream: Vec<i64>,
    pub(super) key: Vec<String>,
    pub(super) data: Vec<Option<String>>,
    pub(super) emitted_at: Vec<Option<String>>,
    pub(super) sort_value: Vec<Vec<u8>>,
    pub(super) version: Vec<i64>,
    /// Words; `None` for a deleted record.
    pub(super) words: Vec<Option<RecordWords>>,
    /// True if the record may have words in the table.
    pub(super) is_known: Vec<bool>,
    /// True if the table has no row of the record.
    pub(super) is_new: Vec<bool>,
}

/// Batch that is being decided.
#[derive(Debug)]
pub(super) struct Batch {
    /// Row id of the connection.
    connection: i64,
    states: HashMap<RecordPlace, RecordState>,
    rows: HashMap<RecordPlace, Row>,
    /// Change of the number of records of each stream.
    pub(super) counts: HashMap<i64, i64>,
    pub(super) tally: Tally,
    /// Version of the newest change.
    pub(super) version: i64,
}

#[derive(Debug)]
struct Row {
    data: Option<String>,
    emitted_at: Option<String>,
    sort_value: Vec<u8>,
    version: i64,
    words: Option<RecordWords>,
    is_known: bool,
    is_new: bool,
}

impl Batch {
    /// Creates a batch of one connection.
    pub(super) fn new(
        connection: i64,
        states: HashMap<RecordPlace, RecordState>,
        tally: Tally,
        version: i64,
    ) -> Self {
        Self { connection, states, rows: HashMap::new(), counts: HashMap::new(), tally, version }
    }

    /// Applies a change of a record, which takes the next version if it changes anything.
    pub(super) fn apply(&mut self, place: RecordPlace, change: &Change, cursor_field: Option<&str>) {
        let before = self.states.get(&place).cloned().unwrap_or_default();
        let stream = place.stream;
        match change {
            Change::Delete { .. } if before.digest.is_none() => self.tally.unchanged += 1,
            Change::Delete { deleted_at } => {
                self.tally.deleted += 1;
                *self.counts.entry(stream).or_default() -= 1;
                let emitted_at = deleted_at.as_deref().map(without_nul);
                let row = Row { emitted_at, is_known: true, ..Row::new(&SortValue::Missing) };
                self.put(place, row, None);
            }
            Change::Put { data, emitted_at } => {
                let text = serde_json::to_string(data).unwrap_or_default();
                let digest = Sha256::digest(&text).to_vec();
                if before.digest.as_ref() == Some(&digest) {
                    self.tally.unchanged += 1;
                    return;
                }
                // A record without a time keeps its previous time, unless it had been deleted: a deletion's time is not
                // the record's.
                let kept = before.emitted_at.filter(|_| before.digest.is_some());
                let emitted_at = emitted_at.as_deref().map(without_nul).or(kept);
                if before.digest.is_some() {
                    self.tally.changed += 1;
                } else {
                    self.tally.added += 1;
                    *self.counts.entry(stream).or_default() += 1;
                }
                let value = sort_value(cursor_field, data, emitted_at.as_deref());
                let words = RecordWords::new(
                    Place { stream, connection: self.connection },
                    &place.key,
                    data,
                    emitted_at.as_deref(),
                );
                let is_known = before.digest.is_some();
                let row =
                    Row { data: Some(text), emitted_at, words: Some(words), is_known, ..Row::new(&value) };
                self.put(place, row, Some(digest));
            }
        }
    }

    fn put(&mut self, place: RecordPlace, row: Row, digest: Option<Vec<u8>>) {
        self.version += 1;
        let is_new =
            self.rows.get(&place).map_or_else(|| !self.states.contains_key(&place), |before| before.is_new);
        self.states.insert(place.clone(), RecordState { digest, emitted_at: row.emitted_at.clone() });
        // A record that the batch itself has changed before may have had words before the batch.
        let is_known = row.is_known || self.rows.get(&place).is_some_and(|before| before.is_known);
        self.rows.insert(place, Row { version: self.version, is_known, is_new, ..row });
    }

    /// Returns the changed rows.
    pub(super) fn take_rows(&mut self) -> ChangedRows {
        let mut columns = ChangedRows::default();
        // The order of changes: rows that are inserted together get their ids in it.
        let mut rows: Vec<(RecordPlace, Row)> = self.rows.drain().collect();
        rows.sort_unstable_by_key(|(_, row)| row.version);
        for (place, row) in rows {
            columns.stream.push(place.stream);
            columns.key.push(place.key);
            columns.data.push(row.data);
            columns.emitted_at.push(row.emitted_at);
            columns.sort_value.push(row.sort_value);
            columns.version.push(row.version);
            columns.words.push(row.words);
            columns.is_known.push(row.is_known);
            columns.is_new.push(row.is_new);
        }
        columns
    }
}

impl Row {
    fn new(value: &SortValue) -> Self {
        let sort_value = SortKey::new(value).bytes;
        Self {
            data: None,
            emitted_at: None,
            sort_value,
            version: 0,
            words: None,
            is_known: false,
            is_new: false,
        }
    }
}

/// Returns the value that orders a record.
pub(super) fn sort_value(
    cursor_field: Option<&str>,
    data: &RecordData,
    emitted_at: Option<&str>,
) -> SortValue {
    match cursor_field {
        Some(field) => SortValue::from_value(data.get(field)),
        None => emitted_at.map_or(SortValue::Missing, SortValue::text),
    }
}

/// Returns a text without NUL characters, which PostgreSQL does not store. In the text of a record they are escaped.
pub(super) fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(key: &str) -> RecordPlace {
        RecordPlace { stream: 1, key: key.to_owned() }
    }

    fn put(text: &str, emitted_at: Option<&str>) -> Change {
        let json = json!({"text": text});
        Change::Put { data: serde_json::from_value(json).unwrap(), emitted_at: emitted_at.map(str::to_owned) }
    }

    #[test]
    fn each_row_is_written_once_in_its_last_state() {
        let mut batch = Batch::new(3, HashMap::new(), Tally::default(), 7);
        batch.apply(place("a"), &put("1", Some("2026-01-01")), None);
        batch.apply(place("a"), &put("1", None), None);
        batch.apply(place("a"), &put("2", None), None);
        batch.apply(place("b"), &put("1", None), None);
        batch.apply(place("b"), &Change::Delete { deleted_at: Some("2026\0".to_owned()) }, None);
        batch.apply(place("c"), &Change::Delete { deleted_at: None }, None);
        let expect = Tally { added: 2, changed: 1, unchanged: 2, deleted: 1 };
        assert_eq!((batch.tally, batch.version, batch.counts.get(&1)), (expect, 11, Some(&1)));
        let rows = batch.take_rows();
        let mut rows: Vec<_> =
            rows.key.iter().zip(&rows.data).zip(&rows.emitted_at).zip(&rows.version).collect();
        rows.sort();
        let [(((a, data), emitted_at), version), (((b, none), deleted_at), last)] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!((a.as_str(), data.as_deref(), **version), ("a", Some(r#"{"text":"2"}"#), 9));
        // A record without a time keeps the one it has.
        assert_eq!(emitted_at.as_deref(), Some("2026-01-01"));
        assert_eq!(
            (b.as_str(), none.as_deref(), deleted_at.as_deref(), **last),
            ("b", None, Some("2026"), 11)
        );
    }
}
