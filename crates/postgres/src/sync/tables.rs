//! The tables of a database as one import writes them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use deadpool_postgres::Object;
use fetchwell_source::contract::{
    Change, Fingerprint, IncomingRecord, IndexProgress, ItemId, ItemState, NewConnection, PostgresError,
    RememberedImport, StoreError, Tally,
};
use fetchwell_source::documents::ChunkIds;
use fetchwell_source::manifest::Manifest;
use fetchwell_source::sync::{
    ImportTables, ImportWriter, ItemChange, ItemSql, RecordBatch, Removal, TableNames, WrittenBatch,
};
use tokio_postgres::Row;

use super::batch_writer::{BatchWriter, State, is_full};
use super::behind::Behind;
use super::bulk_import::BulkImport;
use super::imports::put_connection;
use super::items::save_states;
use super::waiter::Waiter;
use crate::administration::{Lease, import_lease};
use crate::columns::{BuildLimits, build_columns, warn_not_built};
use crate::document_rows::{DocumentRows, is_project};
use crate::search::backfill::add_missing_words;
use crate::tables::text;
use crate::terms::{merge_terms, warn_unmerged};
use crate::vectors::index::{create_index_after_import, drop_empty_index};

/// Number of changes after which a synchronization builds columns. Servers build those of fewer from time to time.
const MANY_CHANGES: u64 = 1_000;

/// Names in the SQL about items.
const NAMES: TableNames = TableNames {
    schema: "fetchwell.",
    record: &["stream", "key"],
    row: &["stream", "key"],
    listed: "= ANY ($1)",
};

/// Tables of a database as one import writes them.
pub(super) struct PostgresImportTables {
    /// Writer of the batches; `None` only after a thread was lost.
    writer: Option<Place>,
    waiter: Waiter,
}

/// Place of the writer of batches.
enum Place {
    Here(Box<BatchWriter>),
    /// A large import to its end has it on a thread.
    Behind(Behind),
}

impl fmt::Debug for PostgresImportTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresImportTables").field("waiter", &self.waiter).finish_non_exhaustive()
    }
}

impl PostgresImportTables {
    /// Opens the tables for a synchronization, which writes while its lease lasts.
    pub(super) fn open_import(
        waiter: Waiter,
        import: &RememberedImport,
        lease: Arc<Lease>,
    ) -> Result<Self, StoreError> {
        let mut database = waiter.connection()?;
        complete_words(&waiter, &mut database)?;
        let sql = "SELECT connection FROM fetchwell.imports WHERE id = $1";
        let found = waiter.wait(waiter.transact(&mut database, async |transaction| {
            let Some(row) = transaction.query_opt(sql, &[&import.id.0]).await? else { return Ok(None) };
            let connection: i64 = row.get(0);
            Ok(Some((connection, DocumentRows::find(transaction, connection).await?)))
        }));
        let (connection, documents) = found?.ok_or_else(|| StoreError::ImportRemoved(waiter.place()))?;
        let manifest = import.manifest.as_deref().and_then(Manifest::from_stored);
        let streams = HashMap::new();
        let state = State { import: Some(import.id), connection, manifest, streams, documents };
        let writer = BatchWriter { database, state, lease, bulk: BulkImport::default(), waiter };
        Self::open(writer)
    }

    /// Opens the connection for an import to its end, creating it and the tables if they do not exist.
    pub(super) fn open_connection(
        waiter: Waiter,
        connection: &NewConnection,
        chunks: Option<ChunkIds>,
    ) -> Result<Self, StoreError> {
        let id = &connection.connection_id;
        let lease = Arc::new(import_lease(waiter.pool(), waiter.runtime(), id)?);
        let mut database = waiter.connection()?;
        let opened = waiter.wait(waiter.transact(&mut database, async |transaction| {
            if chunks.is_none() && is_project(transaction.client(), id).await? {
                return Ok(None);
            }
            let (connection, manifest) = put_connection(transaction, connection).await?;
            let documents = match chunks {
                None => None,
                Some(chunks) => {
                    let rows = DocumentRows::find(transaction, connection).await?;
                    rows.map(|rows| rows.with_chunk_ids(chunks))
                }
            };
            Ok(Some((connection, manifest, documents)))
        }));
        let opened = opened?.ok_or_else(|| StoreError::IsProject(id.to_string()));
        let (connection, manifest, documents) = opened?;
        let manifest = manifest.and_then(|manifest| Manifest::from_stored(&manifest));
        let state = State { import: None, connection, manifest, streams: HashMap::new(), documents };
        complete_words(&waiter, &mut database)?;
        Self::open(BatchWriter { database, state, lease, bulk: BulkImport::default(), waiter })
    }

    /// Returns the tables with a writer. Drops the index of vectors before the first documents.
    fn open(mut writer: BatchWriter) -> Result<Self, StoreError> {
        let BatchWriter { database, state, waiter, .. } = &mut writer;
        let pool = waiter.pool();
        if state.documents.is_some() {
            waiter.wait(async {
                drop_empty_index(database, pool.url()).await.map_err(|error| pool.failure(&error))
            })?;
        }
        let waiter = waiter.clone();
        Ok(Self { writer: Some(Place::Here(Box::new(writer))), waiter })
    }

    /// Returns the writer into these tables.
    pub(super) fn into_writer(self) -> ImportWriter {
        let (import, has_documents) = match &self.writer {
            Some(Place::Here(writer)) => (writer.state.import, writer.state.documents.is_some()),
            Some(Place::Behind(_)) | None => (None, false),
        };
        let has_documents_only = import.is_some() && has_documents;
        ImportWriter::new(Box::new(self), ItemSql::new(&NAMES, import), has_documents_only)
    }

    /// Waits until all batches are written. Returns the records of those that a thread wrote, by effect.
    fn end_thread(&mut self) -> Result<Tally, StoreError> {
        let behind = match self.writer.take() {
            Some(Place::Behind(behind)) => behind,
            other => {
                self.writer = other;
                return Ok(Tally::default());
            }
        };
        let ended = behind.end().ok_or_else(|| self.lost())?;
        self.writer = Some(Place::Here(ended.writer));
        ended.error.map_or(Ok(ended.tally), Err)
    }

    /// Returns the error of an import that has lost its writer.
    fn lost(&self) -> StoreError {
        PostgresError::LeaseLost { database: self.waiter.address() }.into()
    }
}

/// Builds the indexes that are missing.
fn build_indexes(writer: &mut BatchWriter) -> Result<(), StoreError> {
    let BatchWriter { database, state, bulk, waiter, .. } = writer;
    let pool = waiter.pool();
    if state.documents.is_some() {
        waiter.wait_long(async {
            create_index_after_import(database, pool.url()).await.map_err(|error| pool.failure(&error))
        })?;
    }
    if state.import.is_some() { Ok(()) } else { bulk.build_indexes(waiter, database) }
}

/// Adds words that records lack and merges those that wait. Each step is a transaction of its own, so that an import can be
/// interrupted.
fn complete_words(waiter: &Waiter, database: &mut Object) -> Result<(), StoreError> {
    let pool = waiter.pool();
    while waiter
        .wait(async { add_missing_words(database, pool.url()).await.map_err(|error| pool.failure(&error)) })?
    {
    }
    warn_unmerged(waiter.wait_long(merge_terms(database, pool)));
    Ok(())
}

impl ImportTables for PostgresImportTables {
    fn write(&mut self, batch: RecordBatch) -> Result<WrittenBatch, StoreError> {
        let is_large = is_full(&batch);
        match self.writer.take().ok_or_else(|| self.lost())? {
            Place::Here(mut writer) => {
                let written = writer.write(batch, Vec::new());
                let ends = writer.state.import.is_none() && writer.state.documents.is_none();
                self.writer = Some(if ends && is_large && written.is_ok() {
                    Behind::start(writer).map_or_else(Place::Here, Place::Behind)
                } else {
                    Place::Here(writer)
                });
                written
            }
            Place::Behind(behind) => {
                let is_given = behind.write(batch);
                self.writer = Some(Place::Behind(behind));
                // An earlier batch failed.
                let tally = if is_given { Tally::default() } else { self.end_thread()? };
                Ok(WrittenBatch { tally, ..WrittenBatch::default() })
            }
        }
    }

    fn complete(&mut self) -> Result<Tally, StoreError> {
        self.end_thread()
    }

    /// No other process writes to the connection meanwhile, so the records are as they were.
    fn remove(&mut self, removals: Vec<Removal>) -> Result<Tally, StoreError> {
        let records = removals.into_iter().map(|removal| removal.incoming).collect();
        Ok(self.write(RecordBatch { records, ..RecordBatch::default() })?.tally)
    }

    fn save_states(&self, states: &[(ItemId, ItemState)]) -> Result<(), StoreError> {
        let states: Vec<(ItemId, &ItemState)> = states.iter().map(|(item, state)| (*item, state)).collect();
        self.waiter.run(async |database| save_states(database.client(), &states).await)
    }

    fn count(&self, sql: &str, numbers: usize) -> Result<Vec<u64>, StoreError> {
        self.waiter.run(async |database| {
            let row = database.query_one(sql, &[]).await?;
            (0..numbers).map(|column| row.try_get(column).map(i64::unsigned_abs)).collect()
        })
    }

    fn fingerprints(&self, sql: &str) -> Result<Vec<(ItemId, Fingerprint)>, StoreError> {
        let fingerprint = |row: &Row| Some((ItemId(row.get(0)), row.get::<_, &[u8]>(1).try_into().ok()?));
        self.waiter.run(async |database| {
            Ok(database.query(sql, &[]).await?.iter().filter_map(fingerprint).collect())
        })
    }

    fn removals(&self, sql: &str) -> Result<Vec<Removal>, StoreError> {
        let removal = |row: &Row| {
            let (stream, key) = (text(row, 0).parse().ok()?, text(row, 1).parse().ok()?);
            let incoming = IncomingRecord { stream, key, change: Change::Delete { deleted_at: None } };
            Some(Removal { record: row.get(3), version: row.get(2), incoming })
        };
        self.waiter
            .run(async |database| Ok(database.query(sql, &[]).await?.iter().filter_map(removal).collect()))
    }

    fn change(&self, changes: &[ItemChange<'_>]) -> Result<(), StoreError> {
        self.waiter.run(async |database| {
            for ItemChange { sql, items } in changes {
                match items {
                    None => database.execute(sql, &[]).await?,
                    Some([]) => 0,
                    Some(items) => {
                        let items: Vec<i64> = items.iter().map(|item| item.0).collect();
                        database.execute(sql, &[&items]).await?
                    }
                };
            }
            Ok(())
        })
    }

    fn finish(mut self: Box<Self>, tally: Tally, _progress: IndexProgress<'_>) -> Option<StoreError> {
        if let Err(error) = self.end_thread() {
            return Some(error);
        }
        let Some(Place::Here(mut writer)) = self.writer.take() else { return Some(self.lost()) };
        let BatchWriter { database, waiter, .. } = &mut *writer;
        let merged = waiter.wait_long(merge_terms(database, waiter.pool()));
        let built = build_indexes(&mut writer);
        if writer.state.import.is_none() {
            BulkImport::update_statistics(&writer.waiter, &writer.database, tally);
        }
        let BatchWriter { database, state, waiter, .. } = &mut *writer;
        // Synchronizations can follow each other every second.
        if state.import.is_none() || tally.added + tally.changed + tally.deleted >= MANY_CHANGES {
            warn_not_built(waiter.wait_long(build_columns(database, waiter.pool(), BuildLimits::default())));
        }
        built.and(merged).err()
    }
}
