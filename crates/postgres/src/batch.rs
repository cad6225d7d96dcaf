//! The rows that a batch of an import changes, decided from the rows that exist.

use std::collections::HashMap;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread::{Builder, available_parallelism, scope};

use fetchwell_core::record::{RecordData, SortValue};
use fetchwell_source::contract::{Change, Tally};
use sha2::{Digest, Sha256};

use super::sort_key::SortKey;
use super::words::{Place, RecordWords};

/// Minimum number of records for a thread that computes their words.
const MIN_RECORDS_PER_THREAD: usize = 250;

/// Maximum number of threads that compute words. Words take most of the processor time of an import.
const MAX_THREADS: usize = 4;

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
    pub(crate) fn apply(&mut self, place: RecordPlace, change: &'c Change, cursor_field: Option<&str>) {
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
                let is_known = before.digest.is_some();
                let row = Row { data: Some((data, text)), emitted_at, is_known, ..Row::new(&value) };
                self.put(place, row, Some(digest));
            }
        }
    }

    fn put(&mut self, place: RecordPlace, row: Row<'c>, digest: Option<Vec<u8>>) {
        self.version += 1;
        let is_new =
            self.rows.get(&place).map_or_else(|| !self.states.contains_key(&place), |before| before.is_new);
        self.states.insert(place.clone(), RecordState { digest, emitted_at: row.emitted_at.clone() });
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
        columns.words = words_of(&rows, self.connection);
        for (place, row) in rows {
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

/// Returns the words of records, computed by several threads if there are many records.
fn words_of(rows: &[(RecordPlace, Row<'_>)], connection: i64) -> Vec<Option<RecordWords>> {
    let words = |(place, row): &(RecordPlace, Row<'_>)| {
        let (data, _) = row.data.as_ref()?;
        let of = Place { stream: place.stream, connection };
        Some(RecordWords::new(of, &place.key, data, row.emitted_at.as_deref()))
    };
    let threads = available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let size = rows.len().div_ceil(threads).max(MIN_RECORDS_PER_THREAD);
    let (own, others) = rows.split_at(size.min(rows.len()));
    scope(|scope| {
        let words = &words;
        let others = others.chunks(size).map(|chunk| {
            let compute = move || chunk.iter().map(words).collect::<Vec<_>>();
            (chunk, Builder::new().name("words".to_owned()).spawn_scoped(scope, compute))
        });
        let others: Vec<_> = others.collect();
        let mut found: Vec<Option<RecordWords>> = own.iter().map(words).collect();
        for (chunk, thread) in others {
            match thread {
                Ok(thread) => found.extend(thread.join().unwrap_or_else(|panicked| resume_unwind(panicked))),
                // The thread could not be started.
                Err(_) => found.extend(chunk.iter().map(words)),
            }
        }
        found
    })
}

impl Row<'_> {
    fn new(value: &SortValue) -> Self {
        let sort_value = SortKey::new(value).bytes;
        Self { data: None, emitted_at: None, sort_value, version: 0, is_known: false, is_new: false }
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

/// Returns a text without NUL characters, which PostgreSQL does not store. In the text of a record they are escaped.
pub(crate) fn without_nul(text: &str) -> String {
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
        let changes = [
            ("a", put("1", Some("2026-01-01"))),
            ("a", put("1", None)),
            ("a", put("2", None)),
            ("b", put("1", None)),
            ("b", Change::Delete { deleted_at: Some("2026\0".to_owned()) }),
            ("c", Change::Delete { deleted_at: None }),
        ];
        for (key, change) in &changes {
            batch.apply(place(key), change, None);
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
            batch.apply(place(&format!("k{number}")), change, None);
        }
        let rows = batch.take_rows();
        assert_eq!((rows.key.len(), rows.words.len()), (1_203, 1_203));
        for (key, words) in rows.key.iter().zip(&rows.words) {
            let word = key.replace('k', "word");
            assert!(words.as_ref().unwrap().words.plain_words().any(|found| found == word), "{key}");
        }
    }
}
