//! The rows that a batch of an import changes, decided from the rows that exist.

use std::collections::HashMap;

use fetchwell_core::record::{RecordData, SortValue};
use fetchwell_source::contract::{Change, Tally};
use sha2::{Digest, Sha256};

use super::preparation::{Prepared, compute, without_nul};
use super::sort_key::SortKey;
use super::words::{Place, RecordWords};

/// Place of a record: the row id of its stream, and its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RecordPlace {
    pub(crate) stream: i64,
    pub(crate) key: String,
}

/// State of a record before a change.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordState {
    /// SHA-256 of the text; `None` if the record is deleted.
    pub(crate) digest: Option<Vec<u8>>,
    pub(crate) emitted_at: Option<String>,
}

/// Changed rows in columns, each row once. The names are those of the table.
#[derive(Debug, Default)]
pub(crate) struct ChangedRows {
    pub(crate) stream: Vec<i64>,
    pub(crate) key: Vec<String>,
    pub(crate) data: Vec<Option<String>>,
    pub(crate) emitted_at: Vec<Option<String>>,
    pub(crate) sort_value: Vec<Vec<u8>>,
    pub(crate) version: Vec<i64>,
    /// Words; `None` for a deleted record.
    pub(crate) words: Vec<Option<RecordWords>>,
    /// True if the record may have words in the table.
    pub(crate) is_known: Vec<bool>,
    /// True if the table has no row of the record.
    pub(crate) is_new: Vec<bool>,
}

/// Batch that is being decided.
#[derive(Debug)]
pub(crate) struct Batch<'c> {
    /// Row id of the connection.
    connection: i64,
    states: HashMap<RecordPlace, RecordState>,
    rows: HashMap<RecordPlace, Row<'c>>,
    /// Change of the number of records of each stream.
    pub(crate) counts: HashMap<i64, i64>,
    pub(crate) tally: Tally,
    /// Version of the newest change.
    pub(crate) version: i64,
}

#[derive(Debug)]
struct Row<'c> {
    /// Fields and text of the record; `None` if it is deleted.
    data: Option<(&'c RecordData, String)>,
    emitted_at: Option<String>,
    /// Words, if they were computed before.
    words: Option<RecordWords>,
    sort_value: Vec<u8>,
    version: i64,
    is_known: bool,
    is_new: bool,
}

impl<'c> Batch<'c> {
    /// Creates a batch of one connection.
    pub(crate) fn new(
        connection: i64,
        states: HashMap<RecordPlace, RecordState>,
        tally: Tally,
        version: i64,
    ) -> Self {
        Self { connection, states, rows: HashMap::new(), counts: HashMap::new(), tally, version }
    }

    /// Applies a change of a record, which takes the next version if it changes anything.
    pub(crate) fn apply(
        &mut self,
        place: RecordPlace,
        change: &'c Change,
        prepared: Prepared,
        cursor_field: Option<&str>,
    ) {
        let own = self.rows.get(&place);
        let state = self.states.get(&place);
        let exists =
            own.map_or_else(|| state.is_some_and(|state| state.digest.is_some()), |own| own.data.is_some());
        let stream = place.stream;
        match change {
            Change::Delete { .. } if !exists => self.tally.unchanged += 1,
            Change::Delete { deleted_at } => {
                self.tally.deleted += 1;
                *self.counts.entry(stream).or_default() -= 1;
                let emitted_at = deleted_at.as_deref().map(without_nul);
                self.put(place, Row { emitted_at, is_known: true, ..Row::new(&SortValue::Missing) });
            }
            Change::Put { data, emitted_at } => {
                let text = prepared.text.unwrap_or_else(|| serde_json::to_string(data).unwrap_or_default());
                let is_same = match own {
                    Some(own) => own.data.as_ref().is_some_and(|(_, before)| *before == text),
                    None => state
                        .and_then(|state| state.digest.as_deref())
                        .is_some_and(|digest| digest == Sha256::digest(&text).as_slice()),
                };
                if is_same {
                    self.tally.unchanged += 1;
                    return;
                }
                let mut words = prepared.words;
                let emitted_at = emitted_at.as_deref().map(without_nul).or_else(|| {
                    // A record without a time keeps its previous time, unless it had been deleted: a deletion's time is
                    // not the record's.
                    let before = match own {
                        Some(own) => &own.emitted_at,
                        None => &state?.emitted_at,
                    };
                    let kept = before.clone().filter(|_| exists)?;
                    // They have no time.
                    words = None;
                    Some(kept)
                });
                if exists {
                    self.tally.changed += 1;
                } else {
                    self.tally.added += 1;
                    *self.counts.entry(stream).or_default() += 1;
                }
                let value = sort_value(cursor_field, data, emitted_at.as_deref());
                let row = Row { data: Some((data, text)), emitted_at, words, ..Row::new(&value) };
                self.put(place, Row { is_known: exists, ..row });
            }
        }
    }

    fn put(&mut self, place: RecordPlace, row: Row<'c>) {
        self.version += 1;
        let is_new =
            self.rows.get(&place).map_or_else(|| !self.states.contains_key(&place), |before| before.is_new);
        // A record that the batch itself has changed before may have had words before the batch.
        let is_known = row.is_known || self.rows.get(&place).is_some_and(|before| before.is_known);
        self.rows.insert(place, Row { version: self.version, is_known, is_new, ..row });
    }

    /// Returns the changed rows.
    pub(crate) fn take_rows(&mut self) -> ChangedRows {
        let mut columns = ChangedRows::default();
        // The order of changes: rows that are inserted together get their ids in it.
        let mut rows: Vec<(RecordPlace, Row<'_>)> = self.rows.drain().collect();
        rows.sort_unstable_by_key(|(_, row)| row.version);
        let missing = missing_words(&rows, self.connection);
        for ((place, row), words) in rows.into_iter().zip(missing) {
            columns.words.push(row.words.or(words));
            columns.stream.push(place.stream);
            columns.key.push(place.key);
            columns.data.push(row.data.map(|(_, text)| text));
            columns.emitted_at.push(row.emitted_at);
            columns.sort_value.push(row.sort_value);
            columns.version.push(row.version);
            columns.is_known.push(row.is_known);
            columns.is_new.push(row.is_new);
        }
        columns
    }
}

/// Returns the words of records that have none yet.
fn missing_words(rows: &[(RecordPlace, Row<'_>)], connection: i64) -> Vec<Option<RecordWords>> {
    compute(rows, |(place, row)| {
        let (data, _) = row.data.as_ref().filter(|_| row.words.is_none())?;
        let of = Place { stream: place.stream, connection };
        Some(RecordWords::new(of, &place.key, data, row.emitted_at.as_deref()))
    })
}

impl Row<'_> {
    fn new(value: &SortValue) -> Self {
        let sort_value = SortKey::new(value).bytes;
        Self {
            data: None,
            emitted_at: None,
            words: None,
            sort_value,
            version: 0,
            is_known: false,
            is_new: false,
        }
    }
}

/// Returns the value that orders a record.
pub(crate) fn sort_value(
    cursor_field: Option<&str>,
    data: &RecordData,
    emitted_at: Option<&str>,
) -> SortValue {
    match cursor_field {
        Some(field) => SortValue::from_value(data.get(field)),
        None => emitted_at.map_or(SortValue::Missing, SortValue::text),
    }
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
        let changes = [
            ("a", put("1", Some("2026-01-01"))),
            ("a", put("1", None)),
            ("a", put("2", None)),
            ("b", put("1", None)),
            ("b", Change::Delete { deleted_at: Some("2026\0".to_owned()) }),
            ("c", Change::Delete { deleted_at: None }),
        ];
        for (key, change) in &changes {
            batch.apply(place(key), change, Prepared::default(), None);
        }
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

    #[test]
    fn threads_keep_the_order_of_records() {
        let changes: Vec<Change> = (0..1_203).map(|number| put(&format!("word{number}"), None)).collect();
        let mut batch = Batch::new(3, HashMap::new(), Tally::default(), 0);
        for (number, change) in changes.iter().enumerate() {
            batch.apply(place(&format!("k{number}")), change, Prepared::default(), None);
        }
        let rows = batch.take_rows();
        assert_eq!((rows.key.len(), rows.words.len()), (1_203, 1_203));
        for (key, words) in rows.key.iter().zip(&rows.words) {
            let word = key.replace('k', "word");
            let mut is_found = false;
            words.as_ref().unwrap().words.for_each_plain(|found| is_found |= found == word);
            assert!(is_found, "{key}");
        }
    }
}
