//! Writes records in batches.
//!
//! A batch is one transaction, so it is written completely or not at all. The search index follows each batch and is
//! committed less often. Writing an unchanged record is a no-op, so an import can be repeated, and an interrupted one
//! continues when it is run again.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use super::change::{Change, Incoming};
use super::open_stream::{OpenStream, WriteOutcome};
use crate::handle::{ConnectionId, StreamName};
use crate::source::store::database::{Database, identity};
use crate::source::store::documents::is_project;
use crate::source::store::error::StoreError;
use crate::source::store::fulltext::index::{Entry, Fields, IndexFollower, RecordText, Rows};
use crate::source::store::manifest::Manifest;
use crate::source::store::write_lock::WriteLock;

/// Maximum number of records per transaction.
const BATCH_RECORDS: usize = 2_000;

/// Maximum bytes of record text per transaction.
const BATCH_BYTES: usize = 8_000_000;

/// Bytes of record text between commits of the index during one import. Uncommitted text is buffered in memory.
const INDEX_COMMIT_BYTES: usize = 128_000_000;

/// Connection that an import writes to.
#[derive(Debug, Clone)]
pub struct NewConnection {
    /// Id of the connection.
    pub connection_id: ConnectionId,
    /// Key of the connector, used if the connection is new.
    pub connector_key: String,
    /// New display name; `None` keeps the existing one.
    pub display_name: Option<String>,
    /// New manifest as JSON text; `None` keeps the existing one.
    pub manifest: Option<String>,
}

/// Number of records by effect of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Records that are new.
    pub added: u64,
    /// Records that existed and changed.
    pub changed: u64,
    /// Records that existed without a difference, and deletions of unknown records.
    pub unchanged: u64,
    /// Records that were deleted.
    pub deleted: u64,
}

/// Result of an import.
#[derive(Debug)]
pub struct Imported {
    /// Number of records written, by effect.
    pub tally: Tally,
    /// Error that prevents use of the search index, if there is one. The records are written all the same.
    pub index_problem: Option<StoreError>,
}

/// Writer for one connection of a store. Holds the store's write lock.
#[derive(Debug)]
pub struct StoreWriter {
    database: Database,
    sqlite: Connection,
    index: IndexFollower,
    _lock: WriteLock,
    connection: i64,
    manifest: Option<Manifest>,
    streams: HashMap<StreamName, OpenStream>,
    batch: Vec<Incoming>,
    batch_bytes: usize,
    version: i64,
    /// Bytes of text added to the index since its last commit.
    uncommitted: usize,
    tally: Tally,
}

impl StoreWriter {
    /// Opens the store and the connection, creating either if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be used or another process is writing to it.
    pub fn open(path: &Path, connection: &NewConnection) -> Result<Self, StoreError> {
        let (database, lock) = Database::open_or_create(path)?;
        let index = IndexFollower::open(&database);
        let sqlite = database.writer()?;
        if database.read(|sqlite| is_project(sqlite, &connection.connection_id))? {
            return Err(StoreError::IsProject(connection.connection_id.to_string()));
        }
        let (row, manifest) = put_connection(&sqlite, connection).map_err(|error| database.error(&error))?;
        let manifest = manifest.and_then(|manifest| Manifest::from_stored(&manifest));
        let version = database.read(identity)?.1;
        Ok(Self {
            database,
            sqlite,
            index,
            _lock: lock,
            connection: row,
            manifest,
            streams: HashMap::new(),
            batch: Vec::with_capacity(BATCH_RECORDS),
            batch_bytes: 0,
            version,
            uncommitted: 0,
            tally: Tally::default(),
        })
    }

    /// Adds a record to the next batch.
    ///
    /// # Errors
    ///
    /// Returns an error if the batch was full and could not be written. Earlier batches stay written.
    pub fn write(&mut self, record: Incoming, bytes: usize) -> Result<(), StoreError> {
        self.batch.push(record);
        self.batch_bytes += bytes;
        if self.batch.len() >= BATCH_RECORDS || self.batch_bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the last batch and commits the index.
    ///
    /// # Errors
    ///
    /// Returns an error if the last batch could not be written. Earlier batches stay written, and the next import or
    /// search completes the index.
    pub fn finish(mut self) -> Result<Imported, StoreError> {
        self.flush()?;
        self.index.commit(self.version);
        Ok(Imported { tally: self.tally, index_problem: self.index.finish(&self.database) })
    }

    /// Writes the records that were added and not yet written.
    ///
    /// # Errors
    ///
    /// Returns an error if they could not be written; they are dropped. Earlier batches stay written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        let batch = std::mem::take(&mut self.batch);
        let batch_bytes = std::mem::take(&mut self.batch_bytes);
        if batch.is_empty() {
            return Ok(());
        }
        let mut tally = self.tally;
        let mut version = self.version;
        let mut entries: Vec<Entry> = Vec::with_capacity(batch.len());
        let mut counts: HashMap<i64, i64> = HashMap::new();
        let mut write_batch = || -> Result<(), rusqlite::Error> {
            let transaction = self.sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for incoming in &batch {
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
                let written =
                    known.put(&transaction, incoming.key.as_str(), &incoming.change, version + 1)?;
                tally.count(&written);
                match written {
                    WriteOutcome::Added(_) => *counts.entry(stream).or_default() += 1,
                    WriteOutcome::Deleted(_) => *counts.entry(stream).or_default() -= 1,
                    WriteOutcome::Changed(_) | WriteOutcome::Unchanged(_) => {}
                }
                let place = StreamPlace { stream, connection: self.connection };
                let Some(entry) = place.index_entry(self.index.fields, incoming, &written) else { continue };
                version += 1;
                entries.push(entry);
            }
            for known in self.streams.values_mut() {
                known.save_fields(&transaction)?;
            }
            for (stream, by) in &counts {
                transaction.execute(
                    "UPDATE streams SET record_count = record_count + ?2 WHERE id = ?1",
                    (stream, by),
                )?;
            }
            transaction.execute("UPDATE store SET version = ?1 WHERE id = 1", [version])?;
            transaction.commit()
        };
        if let Err(error) = write_batch() {
            // A stream created in this transaction is rolled back with it.
            self.streams.clear();
            return Err(self.database.error(&error));
        }
        self.tally = tally;
        self.version = version;
        self.index.add(entries);
        self.uncommitted += batch_bytes;
        if self.uncommitted >= INDEX_COMMIT_BYTES {
            self.index.commit(self.version);
            self.uncommitted = 0;
        }
        Ok(())
    }
}

/// Rows of a stream and its connection.
struct StreamPlace {
    stream: i64,
    connection: i64,
}

impl StreamPlace {
    /// Returns the index entry of a change; `None` if it changed nothing.
    fn index_entry(&self, fields: Fields, incoming: &Incoming, written: &WriteOutcome) -> Option<Entry> {
        let entry = |record: i64, data, emitted_at: &Option<String>| {
            let rows = Rows { record, stream: self.stream, connection: self.connection };
            let text = RecordText { key: incoming.key.as_str(), data, emitted_at: emitted_at.as_deref() };
            Entry::new(fields, rows, &text)
        };
        match (written, &incoming.change) {
            (WriteOutcome::Added(row), Change::Put { data, emitted_at }) => {
                Some(entry(*row, data, emitted_at).for_new_record())
            }
            (WriteOutcome::Changed(row), Change::Put { data, emitted_at }) => {
                Some(entry(*row, data, emitted_at))
            }
            (WriteOutcome::Deleted(row), _) => Some(Entry::removal(*row)),
            _ => None,
        }
    }
}

impl Tally {
    pub(in crate::source::store) fn count(&mut self, written: &WriteOutcome) {
        match written {
            WriteOutcome::Added(_) => self.added += 1,
            WriteOutcome::Changed(_) => self.changed += 1,
            WriteOutcome::Deleted(_) => self.deleted += 1,
            WriteOutcome::Unchanged(_) => self.unchanged += 1,
        }
    }
}

/// Inserts or updates a connection. Returns its row id and manifest.
pub(in crate::source::store) fn put_connection(
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
