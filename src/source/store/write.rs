//! Writing records, one batch at a time.
//!
//! A batch is one transaction, so nothing is ever half-written; the search index follows each batch and
//! is committed now and then. Writing a record that is already there as it is changes nothing, which
//! makes every import repeatable and an interrupted one resumable: run it again.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use super::StoreError;
use super::database::Database;
use super::index::{Entry, IndexFollower, Rows};
use super::manifest::Manifest;
use super::put::{OpenStream, Written};
use super::read::identity;
use super::write_lock::WriteLock;
use crate::handle::{ConnectionId, RecordId, StreamName};
use crate::record::RecordData;

/// Records per transaction.
const BATCH_RECORDS: usize = 2_000;

/// Bytes of record text per transaction, whichever comes first.
const BATCH_BYTES: usize = 8_000_000;

/// Bytes of record text between commits of the index during one import: what waits to be indexed waits in
/// memory.
const INDEX_COMMIT_BYTES: usize = 128_000_000;

/// The connection an import fills.
#[derive(Debug, Clone)]
pub struct NewConnection {
    /// Its id.
    pub connection_id: ConnectionId,
    /// Its connector, if this is a new connection.
    pub connector_key: String,
    /// A new label; an existing one stays when `None`.
    pub display_name: Option<String>,
    /// A new manifest, as it was given; an existing one stays when `None`.
    pub manifest: Option<String>,
}

/// A record on its way into the store.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Its table.
    pub stream: StreamName,
    /// Its key.
    pub key: RecordId,
    /// What happens to it.
    pub change: Change,
}

/// What an import does to a record.
#[derive(Debug, Clone)]
pub enum Change {
    /// It is now this.
    Put {
        /// Its fields.
        data: RecordData,
        /// When its connector emitted it. A record that is unchanged keeps the time it has.
        emitted_at: Option<String>,
    },
    /// It is gone.
    Delete {
        /// Since when, as far as known.
        deleted_at: Option<String>,
    },
}

/// What an import did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Records that were not there before.
    pub added: u64,
    /// Records that were there and changed.
    pub changed: u64,
    /// Records that were there as they are, and deletions of records that were not.
    pub unchanged: u64,
    /// Records that were deleted.
    pub deleted: u64,
}

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The records it wrote.
    pub tally: Tally,
    /// The error that keeps the search index from being used, if there is one. The records are written all the same.
    pub index_problem: Option<StoreError>,
}

/// Fills one connection of a store. Holds the store's write lock.
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
    /// Bytes given to the index since its last commit.
    uncommitted: usize,
    tally: Tally,
}

impl StoreWriter {
    /// Opens the store, creating it where there is none, and the connection likewise.
    ///
    /// # Errors
    ///
    /// The store cannot be used, or another process is writing to it.
    pub fn open(path: &Path, connection: &NewConnection) -> Result<Self, StoreError> {
        let (database, lock) = Database::open_or_create(path)?;
        let index = IndexFollower::open(&database);
        let sqlite = database.writer()?;
        let (row, manifest) = put_connection(&sqlite, connection).map_err(|error| database.error(&error))?;
        let manifest = manifest.and_then(|manifest| Manifest::kept(&manifest));
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

    /// Takes a record into the next batch.
    ///
    /// # Errors
    ///
    /// The batch was full and could not be written. Earlier batches stay.
    pub fn write(&mut self, record: Incoming, bytes: usize) -> Result<(), StoreError> {
        self.batch.push(record);
        self.batch_bytes += bytes;
        if self.batch.len() >= BATCH_RECORDS || self.batch_bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is left and makes everything searchable.
    ///
    /// # Errors
    ///
    /// The last batch could not be written. What was written stays, and the next import or search completes
    /// the index.
    pub fn finish(mut self) -> Result<Imported, StoreError> {
        self.flush()?;
        self.index.commit(self.version);
        Ok(Imported { tally: self.tally, index_problem: self.index.finish(&self.database) })
    }

    /// Writes the records that were taken and are not written yet.
    ///
    /// # Errors
    ///
    /// They could not be written, and are dropped. Earlier batches stay.
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
                    Written::Added(_) => *counts.entry(stream).or_default() += 1,
                    Written::Deleted(_) => *counts.entry(stream).or_default() -= 1,
                    Written::Changed(_) | Written::Unchanged => {}
                }
                let entry = |row: &i64, data| {
                    let rows = Rows { record: *row, stream, connection: self.connection };
                    Entry::new(self.index.fields, rows, incoming.key.as_str(), data)
                };
                let entry = match (&written, &incoming.change) {
                    (Written::Added(row), Change::Put { data, .. }) => entry(row, data).of_new_record(),
                    (Written::Changed(row), Change::Put { data, .. }) => entry(row, data),
                    (Written::Deleted(row), _) => Entry::removal(*row),
                    _ => continue,
                };
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
            // A stream made in this transaction is gone with it.
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

impl Tally {
    fn count(&mut self, written: &Written) {
        match written {
            Written::Added(_) => self.added += 1,
            Written::Changed(_) => self.changed += 1,
            Written::Deleted(_) => self.deleted += 1,
            Written::Unchanged => self.unchanged += 1,
        }
    }
}

/// The row of a connection, and its manifest.
fn put_connection(
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
