//! Writes the records of items in batches.
//!
//! A batch is one transaction, which locks the row of the store's version like every import. It has the records of items
//! together with their relation to the items, so both are written or none.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Error;

use super::items::{keep_stale, role, save_state};
use super::relations::{Pass, Relations};
use super::store::PostgresSyncStore;
use crate::handle::{RecordId, StreamName};
use crate::source::contract::{
    BATCH_BYTES, BATCH_RECORDS, Change, ImportId, ImportResult, IncomingRecord, ItemId, ItemState,
    PostgresError, RememberedImport, Role, StoreError, Tally,
};
use crate::source::documents::is_document;
use crate::source::manifest::Manifest;
use crate::source::postgres::administration::Lease;
use crate::source::postgres::batch::RecordPlace;
use crate::source::postgres::document_rows::DocumentRows;
use crate::source::postgres::search::backfill::add_missing_words;
use crate::source::postgres::search::terms::{merge_many_terms, merge_terms, warn_unmerged};
use crate::source::postgres::transaction::{begin_write, lock_version};
use crate::source::postgres::vectors::index::{create_index, drop_empty_index};
use crate::source::postgres::writer::OpenBatch;

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
}

/// Writer for one import of a database.
pub struct PostgresSyncWriter<'s> {
    pub(super) store: &'s PostgresSyncStore,
    database: Object,
    /// Right to import into the connection.
    lease: &'s Lease,
    state: State,
    steps: Vec<Step>,
    bytes: usize,
}

/// State that the steps of a batch change.
struct State {
    import: ImportId,
    connection: i64,
    manifest: Option<Manifest>,
    is_project: bool,
    /// Item that is being read.
    item: Option<ItemId>,
    scheduled: BTreeSet<ItemId>,
    has_others: bool,
    /// Items that share a key, of which one is not scheduled.
    conflicts: BTreeSet<ItemId>,
    tally: Tally,
}

impl fmt::Debug for PostgresSyncWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSyncWriter").field("store", &self.store).finish_non_exhaustive()
    }
}

impl<'s> PostgresSyncWriter<'s> {
    /// Opens the writer of an import, which writes while its lease lasts.
    ///
    /// # Errors
    ///
    /// The database cannot be used, or the import was removed.
    pub fn open(
        store: &'s PostgresSyncStore,
        import: &RememberedImport,
        lease: &'s Lease,
    ) -> Result<Self, StoreError> {
        let mut database = store.connection()?;
        // Each step is a transaction of its own, so that an import can be interrupted.
        while store.wait(async {
            add_missing_words(&mut database, store.url()).await.map_err(|error| store.failure(&error))
        })? {}
        warn_unmerged(store.wait_long(merge_terms(&mut database, store.pool())));
        let sql = "SELECT connection FROM fetchwell.imports WHERE id = $1";
        let found = store.wait(async {
            let found = async {
                let transaction = begin_write(&mut database, store.url()).await?;
                let Some(row) = transaction.query_opt(sql, &[&import.id.0]).await? else { return Ok(None) };
                let connection: i64 = row.get(0);
                let is_project = DocumentRows::find(&transaction, connection).await?.is_some();
                Ok(Some((connection, is_project)))
            };
            found.await.map_err(|error| store.failure(&error))
        });
        let (connection, is_project) = found?.ok_or_else(|| StoreError::ImportRemoved(store.place()))?;
        if is_project {
            store.wait(async {
                drop_empty_index(&mut database, store.url()).await.map_err(|error| store.failure(&error))
            })?;
        }
        let state = State {
            import: import.id,
            connection,
            manifest: import.manifest.as_deref().and_then(Manifest::from_stored),
            is_project,
            item: None,
            scheduled: BTreeSet::new(),
            has_others: false,
            conflicts: BTreeSet::new(),
            tally: Tally::default(),
        };
        Ok(Self { store, database, lease, state, steps: Vec::new(), bytes: 0 })
    }

    /// Saves the states of items with unchanged content.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn save_states(&self, states: &[(ItemId, ItemState)]) -> Result<(), StoreError> {
        if states.is_empty() {
            return Ok(());
        }
        self.store.run(async |database| {
            for (item, state) in states {
                save_state(database.client(), *item, state).await?;
            }
            Ok(())
        })
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
    /// The batch was full and could not be written, or a project got a record that is no document.
    pub fn write(&mut self, record: IncomingRecord, bytes: usize) -> Result<(), StoreError> {
        if self.state.is_project && !is_document(&record) {
            return Err(StoreError::NoDocument(record.key.to_string()));
        }
        self.bytes += bytes;
        self.push(Step::Write(record))
    }

    /// Notes that the current item has another record with the key of this one.
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

    pub(super) fn import(&self) -> ImportId {
        self.state.import
    }

    /// Returns the number of records written, by effect.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.state.tally
    }

    /// Writes the last batch.
    ///
    /// # Errors
    ///
    /// The last batch could not be written.
    pub fn finish(mut self) -> Result<ImportResult, StoreError> {
        self.flush()?;
        let Self { store, database, state, .. } = &mut self;
        let merged = store.wait_long(merge_terms(database, store.pool()));
        let index =
            async { create_index(database, store.url()).await.map_err(|error| store.failure(&error)) };
        let built = if state.is_project { store.wait_long(index) } else { Ok(()) };
        Ok(ImportResult { tally: state.tally, index_problem: built.and(merged).err() })
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
        self.bytes = 0;
        if steps.is_empty() {
            Ok(())
        } else {
            self.batch(async |state, batch| Box::pin(state.run(batch, steps)).await)
        }
    }

    /// Deletes records that no item gives.
    pub(super) fn delete(&mut self, deleted: &[IncomingRecord]) -> Result<(), StoreError> {
        self.batch(async |state, batch| state.write(batch, deleted).await.map(drop))
    }

    /// Runs one batch in a transaction.
    fn batch(
        &mut self,
        run: impl AsyncFnOnce(&mut State, &Locked<'_>) -> Result<(), Error>,
    ) -> Result<(), StoreError> {
        let (store, tally, item) = (self.store, self.state.tally, self.state.item);
        if !self.lease.is_held() {
            return Err(PostgresError::LeaseLost { database: store.url().to_string() }.into());
        }
        let (database, state) = (&mut self.database, &mut self.state);
        let written = store.wait(async {
            let written = async {
                let transaction = begin_write(database, store.url()).await?;
                let version = lock_version(&transaction).await?;
                let sql = "SELECT 1 FROM fetchwell.imports WHERE id = $1 AND connection = $2";
                if transaction.query_opt(sql, &[&state.import.0, &state.connection]).await?.is_none() {
                    return Ok(false);
                }
                Box::pin(run(state, &Locked { transaction: &transaction, version })).await?;
                transaction.commit().await?;
                Ok(true)
            };
            written.await.map_err(|error| store.failure(&error))
        });
        match written {
            Ok(true) => {
                warn_unmerged(store.wait_long(merge_many_terms(database, store.pool())));
                Ok(())
            }
            Ok(false) => Err(StoreError::ImportRemoved(store.place())),
            Err(error) => {
                (self.state.tally, self.state.item) = (tally, item);
                Err(error)
            }
        }
    }
}

/// A transaction that has the lock of the store's version.
struct Locked<'t> {
    transaction: &'t Transaction<'t>,
    version: i64,
}

impl State {
    /// Writes records. Returns the row ids of their streams.
    async fn write(
        &mut self,
        batch: &Locked<'_>,
        incoming: &[IncomingRecord],
    ) -> Result<HashMap<StreamName, i64>, Error> {
        if incoming.is_empty() {
            return Ok(HashMap::new());
        }
        let transaction = batch.transaction;
        let mut documents = DocumentRows::find(transaction, self.connection).await?;
        let mut streams = HashMap::new();
        let mut open = OpenBatch {
            connection: self.connection,
            manifest: self.manifest.as_ref(),
            streams: &mut streams,
            documents: documents.as_mut(),
        };
        let applied = open.apply(transaction, batch.version, incoming, self.tally);
        self.tally = Box::pin(applied).await?;
        Ok(streams.into_iter().map(|(name, stream)| (name, stream.row)).collect())
    }

    /// Runs the steps of a batch: writes their records first, and then the relations of the items to them.
    async fn run(&mut self, batch: &Locked<'_>, steps: Vec<Step>) -> Result<(), Error> {
        let incoming = steps.iter().filter_map(|step| match step {
            Step::Write(incoming) => Some(incoming.clone()),
            _ => None,
        });
        let incoming: Vec<IncomingRecord> = incoming.collect();
        let mut streams = self.write(batch, &incoming).await?;
        drop(incoming);
        let transaction = batch.transaction;
        let mut relations = Relations::default();
        for step in steps {
            match step {
                Step::Begin { path } => {
                    self.relate(transaction, &mut relations).await?;
                    self.begin(transaction, &path).await?;
                }
                Step::Write(IncomingRecord { stream, key, change }) => {
                    let Some(row) = streams.get(&stream) else { continue };
                    let place = RecordPlace { stream: *row, key: key.as_str().to_owned() };
                    let role = if matches!(change, Change::Put { .. }) { Role::Gives } else { Role::Stale };
                    relations.add(place, role);
                }
                Step::Depend { stream, key } => {
                    if !streams.contains_key(&stream) {
                        let sql = "SELECT id FROM fetchwell.streams WHERE connection = $1 AND name = $2";
                        let found = transaction.query_opt(sql, &[&self.connection, &stream.as_str()]).await?;
                        let Some(row) = found else { continue };
                        streams.insert(stream.clone(), row.get(0));
                    }
                    let Some(row) = streams.get(&stream) else { continue };
                    let place = RecordPlace { stream: *row, key: key.as_str().to_owned() };
                    relations.add(place, Role::Depends);
                }
                Step::End(state) => {
                    self.relate(transaction, &mut relations).await?;
                    let Some(item) = self.item.take() else { continue };
                    if state.problem.is_some() {
                        keep_stale(transaction.client(), &[item.0]).await?;
                    }
                    save_state(transaction.client(), item, &state).await?;
                }
            }
        }
        self.relate(transaction, &mut relations).await
    }

    async fn begin(&mut self, transaction: &Transaction<'_>, path: &str) -> Result<(), Error> {
        let sql = "INSERT INTO fetchwell.import_items (import, path) VALUES ($1, $2)
             ON CONFLICT (import, path) DO UPDATE SET stamp = NULL, absence = 0 RETURNING id";
        let statement = transaction.prepare_cached(sql).await?;
        let item = ItemId(transaction.query_one(&statement, &[&self.import.0, &path]).await?.get(0));
        let stale = "UPDATE fetchwell.item_records SET role = $2 WHERE item = $1";
        let statement = transaction.prepare_cached(stale).await?;
        transaction.execute(&statement, &[&item.0, &role(Role::Stale)]).await?;
        self.scheduled.insert(item);
        self.item = Some(item);
        Ok(())
    }

    /// Writes the relations of the current item. Finds items outside of the pass with the same records.
    async fn relate(
        &mut self,
        transaction: &Transaction<'_>,
        relations: &mut Relations,
    ) -> Result<(), Error> {
        let Some(item) = self.item else { return Ok(()) };
        let pass = Pass { import: self.import, scheduled: &self.scheduled, has_others: self.has_others };
        let others = relations.write(transaction, item, pass).await?;
        if !others.is_empty() {
            self.conflicts.extend(others);
            self.conflicts.insert(item);
        }
        Ok(())
    }
}
