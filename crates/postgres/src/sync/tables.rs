//! Writes the batches of an import.
//!
//! A batch is one transaction. It locks the row of the store's version, so the batches of several imports follow each other and
//! versions become visible in their order.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use deadpool_postgres::{Object, Transaction};
use fetchwell_core::handle::StreamName;
use fetchwell_source::contract::{
    BATCH_BYTES, BATCH_RECORDS, Change, Fingerprint, ImportId, IncomingRecord, IndexProgress, ItemId,
    ItemState, NewConnection, PostgresError, RememberedImport, Role, StoreError, Tally,
};
use fetchwell_source::documents::ChunkIds;
use fetchwell_source::manifest::Manifest;
use fetchwell_source::sync::{
    ImportTables, ImportWriter, ItemChange, ItemPart, ItemSql, ItemStart, RecordBatch, Relation, Removal,
    TableNames, WrittenBatch,
};
use tokio_postgres::{Error, Row};

use super::bulk_import::BulkImport;
use super::imports::put_connection;
use super::items::{begin_item, end_item, save_state};
use super::relations::Relations;
use super::waiter::{STEP_TIMEOUT, Waiter};
use crate::administration::{Lease, import_lease};
use crate::batch::RecordPlace;
use crate::document_rows::{DocumentRows, is_project};
use crate::search::backfill::add_missing_words;
use crate::search::terms::{merge_many_terms, merge_terms, warn_unmerged};
use crate::tables::text;
use crate::transaction::lock_version;
use crate::vectors::index::{create_index, drop_empty_index};
use crate::writer::{OpenBatch, OpenStream};

/// Names in the SQL about items.
const NAMES: TableNames = TableNames {
    schema: "fetchwell.",
    record: &["stream", "key"],
    row: &["stream", "key"],
    listed: "= ANY ($1)",
};

/// Tables of a database as one import writes them.
pub(super) struct PostgresImportTables {
    database: Object,
    state: State,
    /// Right to import into the connection.
    lease: Arc<Lease>,
    bulk: BulkImport,
    waiter: Waiter,
}

/// State of batches.
struct State {
    /// Import that is synchronized; `None` for an import to its end.
    import: Option<ImportId>,
    connection: i64,
    manifest: Option<Manifest>,
    streams: HashMap<StreamName, OpenStream>,
    /// Writer of the documents, if the connection is a project.
    documents: Option<DocumentRows>,
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
        let mut tables = Self { database, state, lease, bulk: BulkImport::default(), waiter };
        tables.drop_empty_index()?;
        Ok(tables)
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
        let mut tables = Self { database, state, lease, bulk: BulkImport::default(), waiter };
        tables.drop_empty_index()?;
        complete_words(&tables.waiter, &mut tables.database)?;
        Ok(tables)
    }

    /// Returns the writer into these tables.
    pub(super) fn into_writer(self) -> ImportWriter {
        let import = self.state.import;
        let has_documents_only = import.is_some() && self.state.documents.is_some();
        ImportWriter::new(Box::new(self), ItemSql::new(&NAMES, import), has_documents_only)
    }

    /// Drops the index of vectors before the first documents.
    fn drop_empty_index(&mut self) -> Result<(), StoreError> {
        let Self { database, state, waiter, .. } = self;
        if state.documents.is_none() {
            return Ok(());
        }
        let pool = waiter.pool();
        waiter.wait(async {
            drop_empty_index(database, pool.url()).await.map_err(|error| pool.failure(&error))
        })
    }

    /// Builds the indexes that are missing.
    fn build_indexes(&mut self) -> Result<(), StoreError> {
        let Self { database, state, bulk, waiter, .. } = self;
        let pool = waiter.pool();
        if state.documents.is_some() {
            waiter.wait_long(async {
                create_index(database, pool.url()).await.map_err(|error| pool.failure(&error))
            })?;
        }
        if state.import.is_some() { Ok(()) } else { bulk.build_indexes(waiter, database) }
    }
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
        let Self { database, state, lease, bulk, waiter } = self;
        let is_full = batch.records.len() >= BATCH_RECORDS || batch.bytes >= BATCH_BYTES;
        if is_full && state.import.is_none() {
            bulk.begin(waiter, database)?;
        }
        if !lease.is_held() {
            return Err(PostgresError::LeaseLost { database: waiter.address() }.into());
        }
        let written = waiter.wait(
            waiter.transact(database, async |transaction| Box::pin(state.write(transaction, batch)).await),
        );
        match written {
            Ok(Some(written)) => {
                warn_unmerged(waiter.wait_long(merge_many_terms(database, waiter.pool())));
                Ok(written)
            }
            Ok(None) => Err(StoreError::ImportRemoved(waiter.place())),
            Err(error) => {
                // A stream created in this transaction is rolled back with it.
                state.streams.clear();
                Err(error)
            }
        }
    }

    /// No other process writes to the connection meanwhile, so the records are as they were.
    fn remove(&mut self, removals: Vec<Removal>) -> Result<Tally, StoreError> {
        let records = removals.into_iter().map(|removal| removal.incoming).collect();
        Ok(self.write(RecordBatch { records, ..RecordBatch::default() })?.tally)
    }

    fn save_states(&self, states: &[(ItemId, ItemState)]) -> Result<(), StoreError> {
        self.waiter.run(async |database| {
            for (item, state) in states {
                save_state(database.client(), *item, state).await?;
            }
            Ok(())
        })
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
        let Self { database, waiter, .. } = &mut *self;
        let merged = waiter.wait_long(merge_terms(database, waiter.pool()));
        let built = self.build_indexes();
        if self.state.import.is_none() {
            BulkImport::update_statistics(&self.waiter, &self.database, tally);
        }
        built.and(merged).err()
    }
}

impl State {
    /// Writes a batch in a transaction. Returns `None` if the import was removed.
    async fn write(
        &mut self,
        transaction: &Transaction<'_>,
        batch: RecordBatch,
    ) -> Result<Option<WrittenBatch>, Error> {
        // A synchronization has the timeout of its role.
        if self.import.is_none() {
            let milliseconds = STEP_TIMEOUT.as_millis();
            transaction.batch_execute(&format!("SET LOCAL statement_timeout = {milliseconds}")).await?;
        }
        let version = lock_version(transaction).await?;
        if let Some(import) = self.import {
            let sql = "SELECT 1 FROM fetchwell.imports WHERE id = $1 AND connection = $2";
            if transaction.query_opt(sql, &[&import.0, &self.connection]).await?.is_none() {
                return Ok(None);
            }
            // Another process may have removed a stream.
            self.streams.clear();
        }
        let RecordBatch { records, items, finds_sharing, .. } = batch;
        let mut written = WrittenBatch::default();
        if !records.is_empty() {
            let mut open = OpenBatch {
                connection: self.connection,
                manifest: self.manifest.as_ref(),
                streams: &mut self.streams,
                documents: self.documents.as_mut(),
            };
            written.tally = Box::pin(open.apply(transaction, version, &records, Tally::default())).await?;
        }
        let mut rows: HashMap<&StreamName, i64> =
            self.streams.iter().map(|(name, stream)| (name, stream.row)).collect();
        let sharing_in = self.import.filter(|_| finds_sharing);
        for ItemPart { start, relations, end } in &items {
            let item = match start {
                ItemStart::Path(path) => begin_item(transaction, self.import, path).await?,
                ItemStart::Known(item) => *item,
            };
            let mut places = Relations::default();
            for relation in relations {
                let (stream, key, role) = match relation {
                    Relation::Depends { stream, key } => (stream, key, Role::Depends),
                    Relation::Written { at, role } => {
                        let Some(IncomingRecord { stream, key, .. }) = records.get(*at) else { continue };
                        (stream, key, *role)
                    }
                };
                if !rows.contains_key(stream) {
                    let sql = "SELECT id FROM fetchwell.streams WHERE connection = $1 AND name = $2";
                    let found = transaction.query_opt(sql, &[&self.connection, &stream.as_str()]).await?;
                    rows.extend(found.map(|row| (stream, row.get(0))));
                }
                let Some(row) = rows.get(stream) else { continue };
                places.add(RecordPlace { stream: *row, key: key.as_str().to_owned() }, role);
            }
            let others = places.write(transaction, item, sharing_in).await?;
            written.items.push(item);
            written.sharing.extend(others.into_iter().map(|other| (item, other)));
            if let Some(state) = end {
                end_item(transaction, item, state).await?;
            }
        }
        Ok(Some(written))
    }
}
