//! Writes records in batches.
//!
//! A batch is one transaction under the write lock of the store, which is free between two batches, so it is written
//! completely or not at all. The search index follows each batch and is committed less often. Writing an unchanged record is a no-op, so an import can be repeated, and an interrupted one
//! continues when it is run again.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use super::open_stream::{OpenStream, WriteOutcome};
use crate::handle::StreamName;
use crate::source::contract::{
    BATCH_BYTES, BATCH_RECORDS, Change, ImportResult, IncomingRecord, NewConnection, StoreError, Tally,
};
use crate::source::documents::ChunkIds;
use crate::source::manifest::Manifest;
use crate::source::sqlite::database::{Database, identity};
use crate::source::sqlite::documents::{DocumentWriter, is_project};
use crate::source::sqlite::fulltext::index::{IndexBatch, IndexChange, IndexFollower, IndexProgress, Rows};
use crate::source::sqlite::write_lock::{ConnectionLock, LOCK_TIMEOUT, WriteLock};

/// Writer for one connection of a store. Holds the lock of the connection, and the write lock of the store for each batch.
#[derive(Debug)]
pub struct SqliteWriter {
    database: Database,
    sqlite: Connection,
    index: IndexFollower,
    _lock: ConnectionLock,
    connection: i64,
    /// Id of the store. A removal of records or a restored backup gives it another one, and other row ids.
    uuid: String,
    manifest: Option<Manifest>,
    streams: HashMap<StreamName, OpenStream>,
    /// Writer of the documents of a project that is copied.
    documents: Option<DocumentWriter>,
    batch: Vec<IncomingRecord>,
    batch_bytes: usize,
    /// Version of the store after the last batch.
    version: i64,
    tally: Tally,
}

impl SqliteWriter {
    /// Opens the store and the connection, creating either if it does not exist. Adds to the search index what it lacks, and
    /// calls `progress` with the numbers of added and of missing changes.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be used or another import writes to the connection.
    pub fn open(
        path: &Path,
        connection: &NewConnection,
        progress: IndexProgress<'_>,
    ) -> Result<Self, StoreError> {
        Self::open_with(path, connection, None, progress)
    }

    /// Opens the connection of a project that is copied, with the ids of its chunks.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_copy(
        path: &Path,
        connection: &NewConnection,
        chunks: ChunkIds,
        progress: IndexProgress<'_>,
    ) -> Result<Self, StoreError> {
        Self::open_with(path, connection, Some(chunks), progress)
    }

    fn open_with(
        path: &Path,
        connection: &NewConnection,
        chunks: Option<ChunkIds>,
        progress: IndexProgress<'_>,
    ) -> Result<Self, StoreError> {
        let (database, lock) = Database::open_or_create(path)?;
        let connection_lock = ConnectionLock::try_take(path, &connection.connection_id)?
            .ok_or_else(|| StoreError::Importing(connection.connection_id.to_string()))?;
        let sqlite = database.writer()?;
        let is_project = database.read(|sqlite| is_project(sqlite, &connection.connection_id))?;
        if is_project && chunks.is_none() {
            return Err(StoreError::IsProject(connection.connection_id.to_string()));
        }
        let (row, manifest) = put_connection(&sqlite, connection).map_err(|error| database.error(&error))?;
        let documents = match chunks {
            None => None,
            Some(chunks) => {
                let writer = database.read(|sqlite| DocumentWriter::find(sqlite, row))?;
                writer.map(|writer| writer.with_chunk_ids(chunks))
            }
        };
        let manifest = manifest.and_then(|manifest| Manifest::from_stored(&manifest));
        let (uuid, version) = database.read(identity)?;
        drop(lock);
        let index = IndexFollower::open(&database, progress);
        Ok(Self {
            database,
            sqlite,
            index,
            _lock: connection_lock,
            connection: row,
            uuid,
            manifest,
            streams: HashMap::new(),
            documents,
            batch: Vec::with_capacity(BATCH_RECORDS),
            batch_bytes: 0,
            version,
            tally: Tally::default(),
        })
    }

    /// Adds a record to the next batch.
    ///
    /// # Errors
    ///
    /// Returns an error if the batch was full and could not be written. Earlier batches stay written.
    pub fn write(&mut self, record: IncomingRecord, bytes: usize) -> Result<(), StoreError> {
        self.batch.push(record);
        self.batch_bytes += bytes;
        if self.batch.len() >= BATCH_RECORDS || self.batch_bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the last batch and commits the index. Calls `progress` with the numbers of changes that were added to the
    /// index, and of those that it lacks.
    ///
    /// # Errors
    ///
    /// Returns an error if the last batch could not be written. Earlier batches stay written, and the next import or
    /// search completes the index.
    pub fn finish(mut self, progress: IndexProgress<'_>) -> Result<ImportResult, StoreError> {
        self.flush()?;
        Ok(ImportResult { tally: self.tally, index_problem: self.index.finish(progress) })
    }

    /// Writes the records that were added and not yet written.
    ///
    /// # Errors
    ///
    /// Returns an error if they could not be written; they are dropped. Earlier batches stay written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        let batch = std::mem::take(&mut self.batch);
        let bytes = std::mem::take(&mut self.batch_bytes);
        if batch.is_empty() {
            return Ok(());
        }
        let lock = WriteLock::take_within(self.database.path(), LOCK_TIMEOUT)?;
        let batch_written = self.write_batch(&batch);
        drop(lock);
        let WrittenBatch { tally, before, after, written } = match batch_written {
            Ok(Some(written)) => written,
            Ok(None) => return Err(StoreError::Replaced(self.database.path().to_owned())),
            Err(error) => {
                // A stream created in this transaction is rolled back with it.
                self.streams.clear();
                return Err(self.database.error(&error));
            }
        };
        (self.tally, self.version) = (tally, after);
        let changes = batch.into_iter().zip(written);
        let changes =
            changes.filter_map(|(incoming, written)| Some(written?.into_change(incoming, self.connection)));
        self.index.add(IndexBatch { changes: changes.collect(), before, after, bytes });
        Ok(())
    }

    /// Writes records in one transaction. Returns `None` and writes nothing if the rows of the store may be others.
    fn write_batch(&mut self, batch: &[IncomingRecord]) -> Result<Option<WrittenBatch>, rusqlite::Error> {
        let transaction = self.sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (uuid, before) = identity(&transaction)?;
        if uuid != self.uuid {
            return Ok(None);
        }
        if before != self.version {
            // Another process may have seen other fields.
            self.streams.clear();
        }
        let (mut tally, mut version) = (self.tally, before);
        let mut written: Vec<Option<RecordChange>> = Vec::with_capacity(batch.len());
        let mut counts: HashMap<i64, i64> = HashMap::new();
        for incoming in batch {
            let known = match self.streams.get_mut(&incoming.stream) {
                Some(known) => known,
                None => {
                    let declared =
                        self.manifest.as_ref().and_then(|m| m.stream(incoming.stream.as_str()).ok());
                    let cursor_field = declared.and_then(|declared| declared.cursor_field.clone());
                    let known =
                        OpenStream::open(&transaction, self.connection, &incoming.stream, cursor_field)?;
                    self.streams.entry(incoming.stream.clone()).or_insert(known)
                }
            };
            let stream = known.row;
            let outcome = known.put(&transaction, incoming.key.as_str(), &incoming.change, version + 1)?;
            outcome.count_in(&mut tally);
            if let Some(documents) = &mut self.documents {
                match (&outcome, &incoming.change) {
                    (WriteOutcome::Added(row) | WriteOutcome::Changed(row), Change::Put { data, .. }) => {
                        documents.put(&transaction, *row, incoming.key.as_str(), data)?;
                    }
                    (WriteOutcome::Deleted(row), _) => documents.delete(&transaction, *row)?,
                    _ => {}
                }
            }
            match outcome {
                WriteOutcome::Added(_) => *counts.entry(stream).or_default() += 1,
                WriteOutcome::Deleted(_) => *counts.entry(stream).or_default() -= 1,
                WriteOutcome::Changed(_) | WriteOutcome::Unchanged(_) => {}
            }
            let change = RecordChange::new(stream, &outcome);
            version += i64::from(change.is_some());
            written.push(change);
        }
        for known in self.streams.values_mut() {
            known.save_fields(&transaction)?;
        }
        for (stream, by) in &counts {
            let sql = "UPDATE streams SET record_count = record_count + ?2 WHERE id = ?1";
            transaction.execute(sql, (stream, by))?;
        }
        transaction.execute("UPDATE store SET version = ?1 WHERE id = 1", [version])?;
        if let Some(documents) = &mut self.documents {
            documents.commit(&transaction)?;
        }
        transaction.commit()?;
        Ok(Some(WrittenBatch { tally, before, after: version, written }))
    }
}

/// A batch that was written.
struct WrittenBatch {
    tally: Tally,
    /// Version of the store before the batch.
    before: i64,
    /// Version of the store after the batch.
    after: i64,
    /// Each record of the batch, if it was changed.
    written: Vec<Option<RecordChange>>,
}

/// A record that was changed.
struct RecordChange {
    record: i64,
    stream: i64,
    is_new: bool,
}

impl RecordChange {
    fn new(stream: i64, outcome: &WriteOutcome) -> Option<Self> {
        let (record, is_new) = match outcome {
            WriteOutcome::Added(record) => (*record, true),
            WriteOutcome::Changed(record) | WriteOutcome::Deleted(record) => (*record, false),
            WriteOutcome::Unchanged(_) => return None,
        };
        Some(Self { record, stream, is_new })
    }

    /// Returns the change of the index.
    fn into_change(self, incoming: IncomingRecord, connection: i64) -> IndexChange {
        let Self { record, stream, is_new } = self;
        let (data, emitted_at) = match incoming.change {
            Change::Put { data, emitted_at } => (Some(data), emitted_at),
            Change::Delete { .. } => (None, None),
        };
        IndexChange { rows: Rows { record, stream, connection }, key: incoming.key, data, emitted_at, is_new }
    }
}

/// Inserts or updates a connection. Returns its row id and manifest.
pub(in crate::source::sqlite) fn put_connection(
    sqlite: &Connection,
    connection: &NewConnection,
) -> Result<(i64, Option<String>), rusqlite::Error> {
    let NewConnection { connection_id, connector_key, display_name, manifest } = connection;
    sqlite.query_row(
        "INSERT INTO connections (connection_id, connector_key, display_name, manifest)
         VALUES (?1, ?2, coalesce(?3, ?1), ?4)
         ON CONFLICT (connection_id) DO UPDATE SET
             display_name = coalesce(?3, display_name), manifest = coalesce(?4, manifest)
         RETURNING id, manifest",
        params![connection_id.as_str(), connector_key, display_name, manifest],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}
