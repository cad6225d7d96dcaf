//! Writes the batches of an import, and has the search index follow them.
//!
//! A batch is one transaction under the write lock of the store, which is free between two batches.

use std::path::Path;
use std::sync::Arc;

use fetchwell_source::contract::{
    Change, Fingerprint, IncomingRecord, IndexProgress, ItemId, ItemState, NewConnection, RememberedImport,
    StoreError, Tally, no_progress,
};
use fetchwell_source::documents::ChunkIds;
use fetchwell_source::manifest::Manifest;
use fetchwell_source::sync::{
    ImportTables, ImportWriter, ItemChange, ItemSql, RecordBatch, Removal, TableNames, WrittenBatch,
};
use fetchwell_state::LockedFile;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::batch::{BatchError, BatchState};
use super::items::{save_state, sharing_items};
use super::shared::SharedStore;
use crate::database::{Database, identity};
use crate::documents::{DocumentWriter, is_project};
use crate::fulltext::index::{IndexBatch, IndexFollower};
use crate::import::put_connection;
use crate::write_lock::ConnectionLock;

/// Number of changed records after which a thread of its own adds those of a synchronization to the search index, instead of
/// the end.
const FOLLOW_AFTER: i64 = 2_000;

/// Names in the SQL about items.
const NAMES: TableNames = TableNames { schema: "", record: &["record"], row: &["id"], listed: "= ?1" };

/// Tables of a file as one import writes them.
#[derive(Debug)]
pub(super) struct SqliteImportTables {
    store: Arc<SharedStore>,
    sqlite: Connection,
    state: BatchState,
    /// Version of the store when it was opened.
    opened_at: i64,
    /// Search index. That of a synchronization follows after many changes.
    index: Option<IndexFollower>,
    _locks: Locks,
}

/// Locks that are held until the import ends.
#[derive(Debug)]
struct Locks {
    /// Of an import that is synchronized.
    _import: Option<Arc<LockedFile>>,
    /// Of the connection of an import to its end.
    _connection: Option<ConnectionLock>,
}

impl SqliteImportTables {
    /// Opens the tables for a synchronization.
    pub(super) fn open_import(
        store: &Arc<SharedStore>,
        import: &RememberedImport,
        lock: Option<Arc<LockedFile>>,
    ) -> Result<Self, StoreError> {
        store.finish_removal()?;
        let database = &store.database;
        let sqlite = database.writer()?;
        let sql = "SELECT connection FROM imports WHERE id = ?1";
        let connection =
            sqlite.query_row(sql, [import.id.0], |row| row.get(0)).map_err(|error| match error {
                rusqlite::Error::QueryReturnedNoRows => StoreError::ImportRemoved(store.path().to_owned()),
                error => database.error(&error),
            })?;
        let (uuid, version) = database.read(identity)?;
        let state = BatchState {
            import: Some(import.id),
            manifest: import.manifest.as_deref().and_then(Manifest::from_stored),
            documents: database.read(|sqlite| DocumentWriter::find(sqlite, connection))?,
            ..BatchState::new(connection, uuid, version)
        };
        let store = Arc::clone(store);
        let locks = Locks { _import: lock, _connection: None };
        Ok(Self { store, sqlite, state, opened_at: version, index: None, _locks: locks })
    }

    /// Opens the store and the connection for an import to its end, creating either if it does not exist. Adds to the search
    /// index what it lacks.
    pub(super) fn open_connection(
        path: &Path,
        connection: &NewConnection,
        chunks: Option<ChunkIds>,
        progress: IndexProgress<'_>,
    ) -> Result<Self, StoreError> {
        let (database, lock) = Database::open_or_create(path)?;
        let id = &connection.connection_id;
        let connection_lock = ConnectionLock::try_take(path, id)?;
        let connection_lock = connection_lock.ok_or_else(|| StoreError::Importing(id.to_string()))?;
        let sqlite = database.writer()?;
        if chunks.is_none() && database.read(|sqlite| is_project(sqlite, id))? {
            return Err(StoreError::IsProject(id.to_string()));
        }
        let (row, manifest) = put_connection(&sqlite, connection).map_err(|error| database.error(&error))?;
        let documents = match chunks {
            None => None,
            Some(chunks) => {
                let writer = database.read(|sqlite| DocumentWriter::find(sqlite, row))?;
                writer.map(|writer| writer.with_chunk_ids(chunks))
            }
        };
        let (uuid, version) = database.read(identity)?;
        drop(lock);
        let index = Some(IndexFollower::open(&database, progress));
        let manifest = manifest.and_then(|manifest| Manifest::from_stored(&manifest));
        let state = BatchState { manifest, documents, ..BatchState::new(row, uuid, version) };
        let store = Arc::new(database.into());
        Ok(Self {
            store,
            sqlite,
            state,
            opened_at: version,
            index,
            _locks: Locks { _import: None, _connection: Some(connection_lock) },
        })
    }

    /// Returns the writer into these tables.
    pub(super) fn into_writer(self) -> ImportWriter {
        let import = self.state.import;
        let has_documents_only = import.is_some() && self.state.documents.is_some();
        ImportWriter::new(Box::new(self), ItemSql::new(&NAMES, import), has_documents_only)
    }

    /// Runs a batch of records in a transaction under the write lock.
    fn batch<Answer>(
        &mut self,
        records: Vec<IncomingRecord>,
        bytes: usize,
        run: impl FnOnce(&mut BatchState, &Transaction<'_>, &[IncomingRecord]) -> Result<Answer, rusqlite::Error>,
    ) -> Result<Answer, StoreError> {
        let lock = self.store.write_lock()?;
        let (sqlite, state) = (&mut self.sqlite, &mut self.state);
        let write = || -> Result<Answer, BatchError> {
            let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
            state.begin(&transaction)?;
            let answer = run(state, &transaction, &records)?;
            state.end(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        };
        let written = write();
        drop(lock);
        let answer = written.map_err(|error| {
            // A stream created in this transaction is rolled back with it.
            self.state.streams.clear();
            match error {
                BatchError::Sqlite(error) => self.store.database.error(&error),
                BatchError::ImportRemoved => StoreError::ImportRemoved(self.store.path().to_owned()),
                BatchError::StoreReplaced => StoreError::Replaced(self.store.path().to_owned()),
            }
        })?;
        self.follow(records, bytes);
        Ok(answer)
    }

    /// Has the index follow a batch that was written. That of a synchronization reads the records from the store.
    fn follow(&mut self, records: Vec<IncomingRecord>, bytes: usize) {
        let BatchState { import, connection, before, version, changed, .. } = &mut self.state;
        match &self.index {
            Some(index) if import.is_none() => {
                let changes = records.into_iter().zip(changed.drain(..));
                let changes = changes
                    .filter_map(|(incoming, changed)| Some(changed?.into_change(incoming, *connection)));
                index.add(IndexBatch { changes: changes.collect(), before: *before, after: *version, bytes });
            }
            Some(index) => index.add_written(bytes),
            None if *version - self.opened_at >= FOLLOW_AFTER => {
                self.index = Some(IndexFollower::open(&self.store.database, &no_progress));
            }
            None => {}
        }
    }

    /// Runs a small change in a transaction, unless row ids may have changed since the tables were opened.
    fn change_rows(
        &self,
        change: impl FnOnce(&Connection) -> Result<(), rusqlite::Error>,
    ) -> Result<(), StoreError> {
        let is_same = self.store.write(|sqlite| {
            let is_same = identity(sqlite)?.0 == self.state.uuid;
            if is_same {
                change(sqlite)?;
            }
            Ok(is_same)
        })?;
        if is_same { Ok(()) } else { Err(StoreError::Replaced(self.store.path().to_owned())) }
    }
}

impl ImportTables for SqliteImportTables {
    fn write(&mut self, batch: RecordBatch) -> Result<WrittenBatch, StoreError> {
        let RecordBatch { records, bytes, items, finds_sharing } = batch;
        self.batch(records, bytes, |state, transaction, records| {
            let mut written = WrittenBatch::default();
            let rows = records.iter().map(|incoming| state.put(transaction, incoming));
            let rows = rows.collect::<Result<Vec<Option<i64>>, _>>()?;
            for part in &items {
                let (item, related) = state.put_part(transaction, part, &rows)?;
                written.items.push(item);
                for record in related.into_iter().filter(|_| finds_sharing) {
                    let others = sharing_items(transaction, state.import, item, record)?;
                    written.sharing.extend(others.into_iter().map(|other| (item, other)));
                }
            }
            written.tally = state.tally;
            Ok(written)
        })
    }

    fn remove(&mut self, removals: Vec<Removal>) -> Result<Tally, StoreError> {
        self.batch(Vec::new(), 0, |state, transaction, _records| {
            removals.iter().try_for_each(|removal| state.remove(transaction, removal))?;
            Ok(state.tally)
        })
    }

    fn save_states(&self, states: &[(ItemId, ItemState)]) -> Result<(), StoreError> {
        self.change_rows(|sqlite| {
            states.iter().try_for_each(|(item, state)| save_state(sqlite, *item, state))
        })
    }

    fn count(&self, sql: &str, numbers: usize) -> Result<Vec<u64>, StoreError> {
        self.store.database.read(|sqlite| {
            sqlite.prepare_cached(sql)?.query_row((), |row| {
                (0..numbers).map(|column| row.get(column).map(i64::unsigned_abs)).collect()
            })
        })
    }

    fn fingerprints(&self, sql: &str) -> Result<Vec<(ItemId, Fingerprint)>, StoreError> {
        self.store.database.read(|sqlite| {
            let mut statement = sqlite.prepare_cached(sql)?;
            statement.query_map((), |row| Ok((ItemId(row.get(0)?), row.get(1)?)))?.collect()
        })
    }

    fn removals(&self, sql: &str) -> Result<Vec<Removal>, StoreError> {
        self.store.database.read(|sqlite| {
            let mut statement = sqlite.prepare_cached(sql)?;
            let removals = statement.query_map((), |row| {
                let names = (row.get_ref(0)?.as_str()?.parse(), row.get_ref(1)?.as_str()?.parse());
                let (Ok(stream), Ok(key)) = names else { return Ok(None) };
                let incoming = IncomingRecord { stream, key, change: Change::Delete { deleted_at: None } };
                Ok(Some(Removal { record: row.get(3)?, version: row.get(2)?, incoming }))
            })?;
            removals.filter_map(Result::transpose).collect()
        })
    }

    fn change(&self, changes: &[ItemChange<'_>]) -> Result<(), StoreError> {
        self.change_rows(|sqlite| {
            for ItemChange { sql, items } in changes {
                let mut statement = sqlite.prepare_cached(sql)?;
                match items {
                    None => drop(statement.execute(())?),
                    Some(items) => items.iter().try_for_each(|item| statement.execute([item.0]).map(drop))?,
                }
            }
            Ok(())
        })
    }

    fn finish(self: Box<Self>, _tally: Tally, progress: IndexProgress<'_>) -> Option<StoreError> {
        match self.index {
            Some(index) => index.finish(progress),
            None if self.state.version > self.opened_at => self.store.complete_index(progress).err(),
            None => None,
        }
    }
}
