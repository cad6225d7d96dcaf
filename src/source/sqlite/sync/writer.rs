//! Writes the records of items in batches.
//!
//! A batch is one transaction under the write lock of the store, which is free between two batches. It has the records of
//! items together with their relation to the items, so both are written or none.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::imports::has_tables;
use super::items::{keep_stale, save_state};
use super::store::SqliteSyncStore;
use crate::handle::{RecordId, StreamName};
use crate::source::contract::{
    BATCH_BYTES, BATCH_RECORDS, Change, ImportId, ImportResult, IncomingRecord, ItemId, ItemState,
    RememberedImport, Role, StoreError, Tally,
};
use crate::source::documents::is_document;
use crate::source::manifest::Manifest;
use crate::source::sqlite::database::identity;
use crate::source::sqlite::documents::DocumentWriter;
use crate::source::sqlite::fulltext::index::IndexFollower;
use crate::source::sqlite::import::{OpenStream, WriteOutcome};
use crate::source::sqlite::{IndexProgress, no_progress};

/// Number of changed records after which a thread of its own adds them to the search index, instead of the end.
const FOLLOW_AFTER: i64 = 2_000;

/// A step of a batch.
#[derive(Debug)]
enum Step {
    /// Begins an item: all of its records become stale.
    Begin { path: String },
    /// Writes a record of the current item.
    Write(IncomingRecord),
    /// The current item has a record with the key of another one, and does not give it.
    Depend { stream: StreamName, key: RecordId },
    /// Ends the current item.
    End(ItemState),
    /// Deletes a record that no item gives.
    Remove(Removal),
}

/// The result of a batch.
#[derive(Debug)]
enum Batch {
    Written,
    /// The import was removed from the store. Nothing was written.
    ImportRemoved,
    /// Records were removed from the store, or it was restored from a backup. Nothing was written.
    StoreReplaced,
}

/// A record to delete, as it was when no item gave it.
#[derive(Debug)]
pub(super) struct Removal {
    /// Row id of the record.
    pub(super) record: i64,
    /// Version of the record.
    pub(super) version: i64,
    /// Deletion to be written.
    pub(super) incoming: IncomingRecord,
}

/// Writer for one import of a store.
#[derive(Debug)]
pub struct SqliteSyncWriter<'s> {
    store: &'s SqliteSyncStore,
    sqlite: Connection,
    state: State,
    steps: Vec<Step>,
    bytes: usize,
    /// Version of the store when the writer was opened.
    opened_at: i64,
    /// Search index, after many changes.
    index: Option<IndexFollower>,
}

/// State that the steps of a batch change.
#[derive(Debug)]
struct State {
    import: ImportId,
    connection: i64,
    /// Id of the store. A removal of records or a restored backup gives it another one, and other row ids.
    uuid: String,
    manifest: Option<Manifest>,
    /// Writer of the documents, if the connection is a project.
    documents: Option<DocumentWriter>,
    streams: HashMap<StreamName, OpenStream>,
    /// Version of the store after the last batch.
    version: i64,
    /// Item that is being read.
    item: Option<ItemId>,
    /// Items of this pass, and those that are missing. Others keep their records.
    scheduled: BTreeSet<ItemId>,
    /// True if there are items that are not scheduled.
    has_others: bool,
    /// Items that share a key, of which one is not scheduled.
    conflicts: BTreeSet<ItemId>,
    /// Changes of the number of records by stream, in this batch.
    counts: HashMap<i64, i64>,
    tally: Tally,
}

impl<'s> SqliteSyncWriter<'s> {
    /// Opens the writer of an import.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or the import was removed.
    pub fn open(store: &'s SqliteSyncStore, import: &RememberedImport) -> Result<Self, StoreError> {
        store.finish_removal()?;
        let sqlite = store.database.writer()?;
        let sql = "SELECT connection FROM imports WHERE id = ?1";
        let connection =
            sqlite.query_row(sql, [import.id.0], |row| row.get(0)).map_err(|error| match error {
                rusqlite::Error::QueryReturnedNoRows => StoreError::ImportRemoved(store.path().to_owned()),
                error => store.database.error(&error),
            })?;
        let (uuid, version) = store.database.read(identity)?;
        let documents = store.database.read(|sqlite| DocumentWriter::find(sqlite, connection))?;
        let state = State {
            import: import.id,
            connection,
            uuid,
            manifest: import.manifest.as_deref().and_then(Manifest::from_stored),
            documents,
            streams: HashMap::new(),
            version,
            item: None,
            scheduled: BTreeSet::new(),
            has_others: false,
            conflicts: BTreeSet::new(),
            counts: HashMap::new(),
            tally: Tally::default(),
        };
        Ok(Self { store, sqlite, state, steps: Vec::new(), bytes: 0, opened_at: version, index: None })
    }

    /// Saves the states of items with unchanged content.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub fn save_states(&self, states: &[(ItemId, ItemState)]) -> Result<(), StoreError> {
        if states.is_empty() {
            return Ok(());
        }
        self.change(|sqlite| states.iter().try_for_each(|(item, state)| save_state(sqlite, *item, state)))
    }

    /// Begins a pass over items. `scheduled` are the known ones among them, and those that are missing; `has_others` is
    /// true if there are known items beside these.
    pub fn begin_pass(&mut self, scheduled: BTreeSet<ItemId>, has_others: bool) {
        (self.state.scheduled, self.state.has_others) = (scheduled, has_others);
    }

    /// Returns and clears the items that share keys with items outside of the pass. They have to be read together.
    #[must_use]
    pub fn take_conflicts(&mut self) -> BTreeSet<ItemId> {
        std::mem::take(&mut self.state.conflicts)
    }

    /// Begins an item. Its earlier records stay until it has been read and [`Self::remove_missing`] is called.
    pub fn begin_item(&mut self, path: &str) {
        self.steps.push(Step::Begin { path: path.to_owned() });
    }

    /// Adds a record of the current item to the next batch.
    ///
    /// # Errors
    ///
    /// The batch was full and could not be written, or a project got a record that is no document. Earlier batches stay
    /// written.
    pub fn write(&mut self, record: IncomingRecord, bytes: usize) -> Result<(), StoreError> {
        if self.state.documents.is_some() && !is_document(&record) {
            return Err(StoreError::NoDocument(record.key.to_string()));
        }
        self.bytes += bytes;
        self.push(Step::Write(record))
    }

    /// Notes that the current item has another record with the key of this one. The caller writes or calls
    /// [`Self::flush_full`] next.
    pub fn depend(&mut self, stream: StreamName, key: RecordId) {
        self.steps.push(Step::Depend { stream, key });
    }

    /// Ends the current item. With a problem, its earlier records are kept.
    ///
    /// # Errors
    ///
    /// The batch was full and could not be written.
    pub fn end_item(&mut self, state: ItemState) -> Result<(), StoreError> {
        self.push(Step::End(state))
    }

    pub(super) fn remove(&mut self, removal: Removal) -> Result<(), StoreError> {
        self.push(Step::Remove(removal))
    }

    /// Runs a small change in a transaction, unless row ids may have changed since the writer was opened.
    pub(super) fn change(
        &self,
        change: impl Fn(&Connection) -> Result<(), rusqlite::Error>,
    ) -> Result<(), StoreError> {
        let is_same = Cell::new(true);
        self.store.write(|sqlite| {
            is_same.set(identity(sqlite)?.0 == self.state.uuid);
            if is_same.get() { change(sqlite) } else { Ok(()) }
        })?;
        if is_same.get() { Ok(()) } else { Err(StoreError::Replaced(self.store.path().to_owned())) }
    }

    /// Returns the number of steps that wait to be written.
    #[cfg(test)]
    pub(super) fn pending_steps(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn store(&self) -> &'s SqliteSyncStore {
        self.store
    }

    pub(super) fn import(&self) -> ImportId {
        self.state.import
    }

    /// Returns the number of records written, by effect.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.state.tally
    }

    /// Writes the last batch and completes the search index. Calls `progress` with the numbers of added and missing changes.
    ///
    /// # Errors
    ///
    /// The last batch could not be written.
    pub fn finish(mut self, progress: IndexProgress<'_>) -> Result<ImportResult, StoreError> {
        self.flush()?;
        let index_problem = match self.index {
            Some(index) => index.finish(progress),
            None if self.state.version > self.opened_at => self.store.complete_index(progress).err(),
            None => None,
        };
        Ok(ImportResult { tally: self.state.tally, index_problem })
    }

    fn push(&mut self, step: Step) -> Result<(), StoreError> {
        self.steps.push(step);
        self.flush_full()
    }

    /// Writes the steps that were added, if they are a full batch.
    ///
    /// # Errors
    ///
    /// They could not be written. Earlier batches stay written.
    pub fn flush_full(&mut self) -> Result<(), StoreError> {
        if self.steps.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the steps that were added and not yet written.
    ///
    /// # Errors
    ///
    /// They could not be written. Earlier batches stay written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        let steps = std::mem::take(&mut self.steps);
        let bytes = std::mem::take(&mut self.bytes);
        if steps.is_empty() {
            return Ok(());
        }
        let (store, tally) = (self.store, self.state.tally);
        let lock = store.write_lock()?;
        let (sqlite, state) = (&mut self.sqlite, &mut self.state);
        let write_batch = || -> Result<Batch, rusqlite::Error> {
            let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let batch = state.run(&transaction, steps)?;
            transaction.commit()?;
            Ok(batch)
        };
        let written = write_batch();
        drop(lock);
        match written {
            Ok(Batch::Written) => {}
            Ok(Batch::ImportRemoved) => return Err(StoreError::ImportRemoved(store.path().to_owned())),
            Ok(Batch::StoreReplaced) => return Err(StoreError::Replaced(store.path().to_owned())),
            Err(error) => {
                self.state.tally = tally;
                return Err(store.database.error(&error));
            }
        }
        if let Some(index) = &self.index {
            index.add_written(bytes);
        } else if self.state.version - self.opened_at >= FOLLOW_AFTER {
            self.index = Some(IndexFollower::open(&store.database, &no_progress));
        }
        Ok(())
    }
}

impl State {
    /// Runs the steps of a batch, unless the store was changed so that they do not apply to it.
    fn run(&mut self, transaction: &Transaction<'_>, steps: Vec<Step>) -> Result<Batch, rusqlite::Error> {
        let (uuid, newest) = identity(transaction)?;
        // A backup of a store without imports has no such table.
        let has_imports = uuid == self.uuid || has_tables(transaction)?;
        let sql = "SELECT 1 FROM imports WHERE id = ?1 AND connection = ?2";
        if !has_imports || !transaction.prepare_cached(sql)?.exists((self.import.0, self.connection))? {
            return Ok(Batch::ImportRemoved);
        }
        // Items and records may have other row ids.
        if uuid != self.uuid {
            return Ok(Batch::StoreReplaced);
        }
        if newest != self.version {
            // Another process may have seen other fields, or removed a stream.
            self.streams.clear();
            self.version = newest;
        }
        self.counts.clear();
        for step in steps {
            match step {
                Step::Begin { path } => self.begin_item(transaction, &path)?,
                Step::Write(incoming) => self.write(transaction, &incoming)?,
                Step::Depend { stream, key } => self.depend(transaction, &stream, &key)?,
                Step::End(state) => self.end_item(transaction, &state)?,
                Step::Remove(removal) => self.remove(transaction, &removal)?,
            }
        }
        for known in self.streams.values_mut() {
            known.save_fields(transaction)?;
        }
        for (stream, by) in &self.counts {
            let sql = "UPDATE streams SET record_count = record_count + ?2 WHERE id = ?1";
            transaction.execute(sql, (stream, by))?;
        }
        transaction.execute("UPDATE store SET version = ?1 WHERE id = 1", [self.version])?;
        if let Some(documents) = &mut self.documents {
            documents.commit(transaction)?;
        }
        Ok(Batch::Written)
    }

    fn begin_item(&mut self, transaction: &Transaction<'_>, path: &str) -> Result<(), rusqlite::Error> {
        let mut put = transaction.prepare_cached(
            "INSERT INTO import_items (import, path) VALUES (?1, ?2)
             ON CONFLICT (import, path) DO UPDATE SET stamp = NULL, absence = 0 RETURNING id",
        )?;
        let item: i64 = put.query_row((self.import.0, path), |row| row.get(0))?;
        transaction
            .prepare_cached("UPDATE item_records SET role = ?2 WHERE item = ?1")?
            .execute((item, Role::Stale.number()))?;
        self.scheduled.insert(ItemId(item));
        self.item = Some(ItemId(item));
        Ok(())
    }

    fn end_item(&mut self, transaction: &Transaction<'_>, state: &ItemState) -> Result<(), rusqlite::Error> {
        let Some(item) = self.item.take() else { return Ok(()) };
        if state.problem.is_some() {
            keep_stale(transaction, item)?;
        }
        save_state(transaction, item, state)
    }

    /// Writes a record of the current item.
    fn write(
        &mut self,
        transaction: &Transaction<'_>,
        incoming: &IncomingRecord,
    ) -> Result<(), rusqlite::Error> {
        let written = self.put(transaction, incoming)?;
        let (row, role) = match (written, &incoming.change) {
            (WriteOutcome::Deleted(row), _) => (row, Role::Stale),
            (WriteOutcome::Added(row) | WriteOutcome::Changed(row), _) => (row, Role::Gives),
            (WriteOutcome::Unchanged(Some(row)), Change::Put { .. }) => (row, Role::Gives),
            (WriteOutcome::Unchanged(_), _) => return Ok(()),
        };
        self.relate(transaction, row, role)
    }

    fn depend(
        &mut self,
        transaction: &Transaction<'_>,
        stream: &StreamName,
        key: &RecordId,
    ) -> Result<(), rusqlite::Error> {
        let stream = self.stream(transaction, stream)?.row;
        let mut find = transaction.prepare_cached("SELECT id FROM records WHERE stream = ?1 AND key = ?2")?;
        let mut rows = find.query((stream, key.as_str()))?;
        match rows.next()? {
            Some(row) => self.relate(transaction, row.get(0)?, Role::Depends),
            None => Ok(()),
        }
    }

    /// Saves the relation of the current item to a record. Finds items outside of the pass with the same record.
    fn relate(
        &mut self,
        transaction: &Transaction<'_>,
        record: i64,
        role: Role,
    ) -> Result<(), rusqlite::Error> {
        let Some(item) = self.item else { return Ok(()) };
        // An item that gives a record may have another one with the same key.
        let sql = "INSERT INTO item_records (item, record, role) VALUES (?1, ?2, ?3)
             ON CONFLICT (item, record) DO UPDATE SET role = ?3 WHERE role <> ?4 OR ?3 <> ?5";
        let [role, gives, depends] = [role, Role::Gives, Role::Depends].map(Role::number);
        transaction.prepare_cached(sql)?.execute((item.0, record, role, gives, depends))?;
        if !self.has_others {
            return Ok(());
        }
        let mut others = transaction.prepare_cached(
            "SELECT o.item FROM item_records o JOIN import_items t ON t.id = o.item
             WHERE o.record = ?1 AND o.item <> ?2 AND o.role <> ?3 AND t.import = ?4",
        )?;
        let mut rows = others.query((record, item.0, Role::Stale.number(), self.import.0))?;
        while let Some(row) = rows.next()? {
            let other = ItemId(row.get(0)?);
            if !self.scheduled.contains(&other) {
                self.conflicts.extend([item, other]);
            }
        }
        Ok(())
    }

    /// Deletes a record that no item gives, unless another process wrote it since.
    fn remove(&mut self, transaction: &Transaction<'_>, removal: &Removal) -> Result<(), rusqlite::Error> {
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

    /// Writes a record and counts it.
    fn put(
        &mut self,
        transaction: &Transaction<'_>,
        incoming: &IncomingRecord,
    ) -> Result<WriteOutcome, rusqlite::Error> {
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
        let by = match &written {
            WriteOutcome::Added(_) => 1,
            WriteOutcome::Deleted(_) => -1,
            WriteOutcome::Changed(_) => 0,
            WriteOutcome::Unchanged(_) => return Ok(written),
        };
        self.version = version;
        *self.counts.entry(row).or_default() += by;
        Ok(written)
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
