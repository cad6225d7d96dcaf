//! Writes single records within a transaction and tracks the types of their fields.

use fetchwell_core::handle::StreamName;
use fetchwell_core::record::{RecordData, SortValue};
use fetchwell_source::contract::{Change, Tally};
use fetchwell_source::manifest::kinds::Kinds;
use fetchwell_source::manifest::observed::ObservedFields;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::read::stored_value;

/// Stream that is being written to.
#[derive(Debug)]
pub(crate) struct OpenStream {
    pub(crate) row: i64,
    cursor_field: Option<String>,
    fields: ObservedFields,
    /// True if the last key was not in the store, so that the next one probably is not, either.
    expects_new: bool,
}

/// A record to insert.
struct NewRecord<'r> {
    key: &'r str,
    data: &'r RecordData,
    /// Text of the data.
    text: &'r str,
    emitted_at: Option<&'r str>,
    version: i64,
}

/// A record of the store.
struct WrittenRecord {
    row: i64,
    /// Text of the data; `None` if the record was deleted.
    data: Option<String>,
    emitted_at: Option<String>,
}

/// Effect of writing a record, with the row id of the record. A deleted record that was never there has none.
#[derive(Debug)]
pub(crate) enum WriteOutcome {
    Added(i64),
    Changed(i64),
    Deleted(i64),
    Unchanged(Option<i64>),
}

impl WriteOutcome {
    /// Counts the record in a tally.
    pub(crate) fn count_in(&self, tally: &mut Tally) {
        match self {
            Self::Added(_) => tally.added += 1,
            Self::Changed(_) => tally.changed += 1,
            Self::Deleted(_) => tally.deleted += 1,
            Self::Unchanged(_) => tally.unchanged += 1,
        }
    }

    /// Returns the row id of the record.
    pub(crate) fn row(&self) -> Option<i64> {
        match self {
            Self::Added(row) | Self::Changed(row) | Self::Deleted(row) => Some(*row),
            Self::Unchanged(row) => *row,
        }
    }
}

impl OpenStream {
    /// Opens a stream of a connection, creating it if there is none. A changed cursor field updates the sort value of
    /// every record in it.
    pub(crate) fn open(
        transaction: &Transaction<'_>,
        connection: i64,
        name: &StreamName,
        cursor_field: Option<String>,
    ) -> Result<Self, rusqlite::Error> {
        transaction.execute(
            "INSERT INTO streams (connection, name, cursor_field) VALUES (?1, ?2, ?3)
             ON CONFLICT (connection, name) DO NOTHING",
            params![connection, name.as_str(), cursor_field],
        )?;
        let (row, before): (i64, Option<String>) = transaction.query_row(
            "SELECT id, cursor_field FROM streams WHERE connection = ?1 AND name = ?2",
            params![connection, name.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let mut statement = transaction.prepare("SELECT name, kinds FROM fields WHERE stream = ?1")?;
        let fields = statement.query_map([row], |row| Ok((row.get(0)?, Kinds::from_bits(row.get(1)?))))?;
        let fields = ObservedFields::new(fields.collect::<Result<_, _>>()?);
        let stream = Self { row, fields, cursor_field, expects_new: false };
        if before != stream.cursor_field {
            stream.update_sort_values(transaction)?;
        }
        Ok(stream)
    }

    fn update_sort_values(&self, transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
        transaction.execute(
            "UPDATE streams SET cursor_field = ?2 WHERE id = ?1",
            params![self.row, self.cursor_field],
        )?;
        let mut update = transaction.prepare("UPDATE records SET sort_value = ?2 WHERE id = ?1")?;
        let mut rows = transaction.prepare("SELECT id, data, emitted_at FROM records WHERE stream = ?1")?;
        let mut rows = rows.query([self.row])?;
        while let Some(row) = rows.next()? {
            let data: Option<String> = row.get(1)?;
            let data: RecordData = data.and_then(|data| serde_json::from_str(&data).ok()).unwrap_or_default();
            let emitted_at: Option<String> = row.get(2)?;
            update.execute(params![
                row.get::<_, i64>(0)?,
                stored_value(&self.sort_value(&data, emitted_at.as_deref()))
            ])?;
        }
        Ok(())
    }

    fn sort_value(&self, data: &RecordData, emitted_at: Option<&str>) -> SortValue {
        match &self.cursor_field {
            Some(field) => SortValue::from_value(data.get(field)),
            None => emitted_at.map_or(SortValue::Missing, SortValue::text),
        }
    }

    /// Writes one record with `version` as its version.
    pub(crate) fn put(
        &mut self,
        transaction: &Transaction<'_>,
        key: &str,
        change: &Change,
        version: i64,
    ) -> Result<WriteOutcome, rusqlite::Error> {
        let (data, emitted_at) = match change {
            Change::Put { data, emitted_at } => (data, emitted_at.as_deref()),
            Change::Delete { deleted_at } => {
                return self.delete(transaction, key, deleted_at.as_deref(), version);
            }
        };
        // Done for unchanged records too: an older import may have known fewer types.
        self.fields.observe(data);
        let text = &serde_json::to_string(data).unwrap_or_default();
        let new = NewRecord { key, data, text, emitted_at, version };
        if self.expects_new
            && let Some(row) = self.insert(transaction, &new)?
        {
            return Ok(WriteOutcome::Added(row));
        }
        let Some(WrittenRecord { row, data: before, emitted_at: before_at }) = self.find(transaction, key)?
        else {
            let added = self.insert(transaction, &new)?;
            return added.map(WriteOutcome::Added).ok_or(rusqlite::Error::QueryReturnedNoRows);
        };
        if before.as_ref() == Some(text) {
            return Ok(WriteOutcome::Unchanged(Some(row)));
        }
        // A record without a time keeps its previous time, unless it had been deleted: a deletion's time is not the
        // record's.
        let emitted_at = emitted_at.or(before_at.as_deref().filter(|_| before.is_some()));
        let sort_value = self.sort_value(data, emitted_at);
        let mut update = transaction.prepare_cached(
            "UPDATE records SET data = ?2, emitted_at = ?3, sort_value = ?4, version = ?5 WHERE id = ?1",
        )?;
        update.execute(params![row, text, emitted_at, stored_value(&sort_value), version])?;
        Ok(if before.is_some() { WriteOutcome::Changed(row) } else { WriteOutcome::Added(row) })
    }

    fn delete(
        &mut self,
        transaction: &Transaction<'_>,
        key: &str,
        deleted_at: Option<&str>,
        version: i64,
    ) -> Result<WriteOutcome, rusqlite::Error> {
        let Some(WrittenRecord { row, data: Some(_), .. }) = self.find(transaction, key)? else {
            return Ok(WriteOutcome::Unchanged(None));
        };
        let mut update = transaction
            .prepare_cached("UPDATE records SET data = NULL, emitted_at = ?2, version = ?3 WHERE id = ?1")?;
        update.execute(params![row, deleted_at, version])?;
        Ok(WriteOutcome::Deleted(row))
    }

    /// Returns the record of a key, which may be a deleted one.
    fn find(
        &mut self,
        transaction: &Transaction<'_>,
        key: &str,
    ) -> Result<Option<WrittenRecord>, rusqlite::Error> {
        let mut existing = transaction
            .prepare_cached("SELECT id, data, emitted_at FROM records WHERE stream = ?1 AND key = ?2")?;
        let read = |row: &Row<'_>| {
            Ok(WrittenRecord { row: row.get(0)?, data: row.get(1)?, emitted_at: row.get(2)? })
        };
        let found = existing.query_row(params![self.row, key], read).optional()?;
        self.expects_new = found.is_none();
        Ok(found)
    }

    /// Inserts a record. Returns its row id, or `None` if there is one of its key.
    fn insert(
        &self,
        transaction: &Transaction<'_>,
        new: &NewRecord<'_>,
    ) -> Result<Option<i64>, rusqlite::Error> {
        let NewRecord { key, data, text, emitted_at, version } = *new;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO records (stream, key, data, emitted_at, sort_value, version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (stream, key) DO NOTHING",
        )?;
        let sort_value = self.sort_value(data, emitted_at);
        let inserted =
            insert.execute(params![self.row, key, text, emitted_at, stored_value(&sort_value), version])?;
        Ok((inserted > 0).then(|| transaction.last_insert_rowid()))
    }

    /// Saves the fields that are new since the last save.
    pub(crate) fn save_fields(&mut self, transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
        let mut save = transaction
            .prepare_cached("INSERT OR REPLACE INTO fields (stream, name, kinds) VALUES (?1, ?2, ?3)")?;
        for field in self.fields.take_unsaved() {
            save.execute(params![self.row, field.name, field.kinds.bits()])?;
        }
        Ok(())
    }
}
