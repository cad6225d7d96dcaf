//! The rows of one batch of an import, in its transaction.

use std::collections::HashMap;

use fetchwell_core::handle::{RecordId, StreamName};
use fetchwell_source::contract::{Change, ImportId, IncomingRecord, ItemId, Role, Tally};
use fetchwell_source::manifest::Manifest;
use fetchwell_source::sync::{ItemPart, ItemStart, Relation, Removal};
use rusqlite::Transaction;

use super::imports::has_tables;
use super::items::{begin_item, end_item, put_relation};
use crate::database::identity;
use crate::documents::DocumentWriter;
use crate::fulltext::index::{IndexChange, Rows};
use crate::import::{OpenStream, WriteOutcome};

/// The batch that is written, and what stays known between batches.
#[derive(Debug)]
pub(super) struct BatchState {
    /// Import that is synchronized; `None` for an import to its end.
    pub(super) import: Option<ImportId>,
    pub(super) connection: i64,
    /// Id of the store. A removal of records or a restored backup gives it another one, and other row ids.
    pub(super) uuid: String,
    pub(super) manifest: Option<Manifest>,
    /// Writer of the documents, if the connection is a project.
    pub(super) documents: Option<DocumentWriter>,
    pub(super) streams: HashMap<StreamName, OpenStream>,
    /// Versions of the store before and after the last batch.
    pub(super) before: i64,
    pub(super) version: i64,
    /// Changes of the number of records by stream, in this batch.
    pub(super) counts: HashMap<i64, i64>,
    /// Records of this batch, by effect.
    pub(super) tally: Tally,
    /// Each record of this batch, if it was changed.
    pub(super) changed: Vec<Option<ChangedRecord>>,
}

/// A record that was changed.
#[derive(Debug)]
pub(super) struct ChangedRecord {
    record: i64,
    stream: i64,
    is_new: bool,
}

/// Reason why a batch is not written.
pub(super) enum BatchError {
    Sqlite(rusqlite::Error),
    /// The import was removed from the store.
    ImportRemoved,
    /// Records were removed from the store, or it was restored from a backup.
    StoreReplaced,
}

impl From<rusqlite::Error> for BatchError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl BatchState {
    pub(super) fn new(connection: i64, uuid: String, version: i64) -> Self {
        Self {
            import: None,
            connection,
            uuid,
            manifest: None,
            documents: None,
            streams: HashMap::new(),
            before: version,
            version,
            counts: HashMap::new(),
            tally: Tally::default(),
            changed: Vec::new(),
        }
    }

    /// Begins a batch, unless the store was changed so that the batch does not apply to it.
    pub(super) fn begin(&mut self, transaction: &Transaction<'_>) -> Result<(), BatchError> {
        let (uuid, newest) = identity(transaction)?;
        if let Some(import) = self.import {
            // A backup of a store without imports has no such table.
            let has_imports = uuid == self.uuid || has_tables(transaction)?;
            let sql = "SELECT 1 FROM imports WHERE id = ?1 AND connection = ?2";
            if !has_imports || !transaction.prepare_cached(sql)?.exists((import.0, self.connection))? {
                return Err(BatchError::ImportRemoved);
            }
        }
        // Items and records may have other row ids.
        if uuid != self.uuid {
            return Err(BatchError::StoreReplaced);
        }
        if newest != self.version {
            // Another process may have seen other fields, or removed a stream.
            self.streams.clear();
        }
        (self.before, self.version, self.tally) = (newest, newest, Tally::default());
        self.counts.clear();
        self.changed.clear();
        Ok(())
    }

    pub(super) fn end(&mut self, transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
        for known in self.streams.values_mut() {
            known.save_fields(transaction)?;
        }
        for (stream, by) in &self.counts {
            let sql = "UPDATE streams SET record_count = record_count + ?2 WHERE id = ?1";
            transaction.execute(sql, (stream, by))?;
        }
        transaction.execute("UPDATE store SET version = ?1 WHERE id = 1", [self.version])?;
        match &mut self.documents {
            Some(documents) => documents.commit(transaction),
            None => Ok(()),
        }
    }

    /// Writes a record and counts it. Returns its row id.
    pub(super) fn put(
        &mut self,
        transaction: &Transaction<'_>,
        incoming: &IncomingRecord,
    ) -> Result<Option<i64>, rusqlite::Error> {
        let version = self.version + 1;
        let stream = self.stream(transaction, &incoming.stream)?;
        let row = stream.row;
        let written = stream.put(transaction, incoming.key.as_str(), &incoming.change, version)?;
        written.count_in(&mut self.tally);
        if let Some(documents) = &mut self.documents {
            match (&written, &incoming.change) {
                (WriteOutcome::Added(row) | WriteOutcome::Changed(row), Change::Put { data, .. }) => {
                    documents.put(transaction, *row, incoming.key.as_str(), data)?;
                }
                (WriteOutcome::Deleted(row), _) => documents.delete(transaction, *row)?,
                _ => {}
            }
        }
        let (is_new, by) = match &written {
            WriteOutcome::Added(_) => (true, 1),
            WriteOutcome::Deleted(_) => (false, -1),
            WriteOutcome::Changed(_) => (false, 0),
            WriteOutcome::Unchanged(record) => {
                self.changed.push(None);
                return Ok(*record);
            }
        };
        self.version = version;
        *self.counts.entry(row).or_default() += by;
        let record = written.row();
        self.changed.push(record.map(|record| ChangedRecord { record, stream: row, is_new }));
        Ok(record)
    }

    /// Writes a part of an item. Returns the item and the records that it is related to.
    pub(super) fn put_part(
        &mut self,
        transaction: &Transaction<'_>,
        part: &ItemPart,
        rows: &[Option<i64>],
    ) -> Result<(ItemId, Vec<i64>), rusqlite::Error> {
        let ItemPart { start, relations, end } = part;
        let item = match start {
            ItemStart::Path(path) => begin_item(transaction, self.import, path)?,
            ItemStart::Known(item) => *item,
        };
        let mut related = Vec::with_capacity(relations.len());
        for relation in relations {
            let (record, role) = match relation {
                Relation::Written { at, role } => (rows.get(*at).copied().flatten(), *role),
                Relation::Depends { stream, key } => (self.find(transaction, stream, key)?, Role::Depends),
            };
            if let Some(record) = record {
                put_relation(transaction, item, record, role)?;
                related.push(record);
            }
        }
        if let Some(state) = end {
            end_item(transaction, item, state)?;
        }
        Ok((item, related))
    }

    /// Returns the row id of a record.
    fn find(
        &mut self,
        transaction: &Transaction<'_>,
        stream: &StreamName,
        key: &RecordId,
    ) -> Result<Option<i64>, rusqlite::Error> {
        let stream = self.stream(transaction, stream)?.row;
        let mut find = transaction.prepare_cached("SELECT id FROM records WHERE stream = ?1 AND key = ?2")?;
        let mut rows = find.query((stream, key.as_str()))?;
        rows.next()?.map(|row| row.get(0)).transpose()
    }

    /// Deletes a record that no item gives, unless another process wrote it since.
    pub(super) fn remove(
        &mut self,
        transaction: &Transaction<'_>,
        removal: &Removal,
    ) -> Result<(), rusqlite::Error> {
        let Removal { record, version, incoming } = removal;
        let sql = "SELECT 1 FROM item_records o JOIN import_items p ON p.id = o.item
             WHERE o.record = ?1 AND o.role = ?2 AND p.absence = 0";
        if transaction.prepare_cached(sql)?.exists((record, Role::Gives.number()))? {
            return Ok(());
        }
        let sql = "SELECT 1 FROM records r JOIN streams s ON s.id = r.stream
             WHERE r.id = ?1 AND r.version <= ?2 AND r.key = ?3 AND s.name = ?4 AND s.connection = ?5";
        let (stream, key) = (incoming.stream.as_str(), incoming.key.as_str());
        let is_same =
            transaction.prepare_cached(sql)?.exists((record, version, key, stream, self.connection))?;
        if is_same {
            self.put(transaction, incoming)?;
        }
        // A record that another process wrote since stays, and no item has it any more.
        transaction.prepare_cached("DELETE FROM item_records WHERE record = ?1")?.execute([record])?;
        Ok(())
    }

    /// Returns a stream, which is opened on first use.
    fn stream(
        &mut self,
        transaction: &Transaction<'_>,
        name: &StreamName,
    ) -> Result<&mut OpenStream, rusqlite::Error> {
        if !self.streams.contains_key(name) {
            let declared = self.manifest.as_ref().and_then(|manifest| manifest.stream(name.as_str()).ok());
            let cursor_field = declared.and_then(|declared| declared.cursor_field.clone());
            let stream = OpenStream::open(transaction, self.connection, name, cursor_field)?;
            self.streams.insert(name.clone(), stream);
        }
        self.streams.get_mut(name).ok_or(rusqlite::Error::QueryReturnedNoRows)
    }
}

impl ChangedRecord {
    /// Returns the change of the index.
    pub(super) fn into_change(self, incoming: IncomingRecord, connection: i64) -> IndexChange {
        let Self { record, stream, is_new } = self;
        let (data, emitted_at) = match incoming.change {
            Change::Put { data, emitted_at } => (Some(data), emitted_at),
            Change::Delete { .. } => (None, None),
        };
        IndexChange { rows: Rows { record, stream, connection }, key: incoming.key, data, emitted_at, is_new }
    }
}
