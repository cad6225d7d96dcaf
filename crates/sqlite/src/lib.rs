//! The embedded store: a record server in one SQLite file.
//!
//! SQLite is the source of truth: connections, streams, records and the version of every change. The search index
//! beside it (`STORE-index/`) is derived from it and can be deleted at any time. The index contains the version up to
//! which it is complete; an import, or the next search, adds the records that changed since. The same mechanism
//! recovers from a crash, from damage and from a restored backup.
//!
//! One process at a time writes a batch, under the write lock; any number of processes read meanwhile.
//!
//! * `database`, `write_lock`, `lock_holder`, `error`: the SQLite file
//! * `blocking`: reads on threads of their own
//! * `backup`: backups of the file
//! * `read`: the tables as reads see them
//! * `fulltext`: full-text search and its index
//! * `import`: the rows that imports write, `sync`: imports to their end and imports that stay current
//! * `documents`: the tables of projects, `document_store`: the store as one of documents
//! * `history_queue`: searches to be remembered
//! * `vectors`: vectors of records, for search by meaning
//! * `place`, `info`, `export`, `removal`: the names of a command as rows; description, export and removal of records,
//!   which `record_store` passes to commands
//! * `traces`: text of removed records in free pages, `tables`: the tables that there are, and SQL that they share
//! * `meaning`: the use of vectors by one search
//!
//! Uses `callers`, `core`, `embedding`, `ranking`, `source` and `state`.

mod backup;
mod blocking;
mod database;
mod document_store;
mod documents;
mod error;
mod export;
mod fulltext;
mod history_queue;
mod import;
mod info;
mod lock_holder;
mod meaning;
mod place;
mod read;
mod record_store;
mod removal;
mod sync;
mod tables;
mod traces;
mod vectors;
mod write_lock;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::memory::{MemoryPermit, UNCOUNTED_BYTES};
use fetchwell_core::record::{Record, Schema, Unavailable, Window};
use fetchwell_embedding::QueryEmbedder;
use fetchwell_ranking::relational::allowance::{Allowance, MeasuredRead, with_memory};
use fetchwell_ranking::relational::interrupt::{Interrupt, InterruptOnDrop, ReadBounds};
use fetchwell_ranking::relational::{aggregate, changes, list, record, streams, window};
use fetchwell_source::contract::StoreError;
use fetchwell_source::contract::no_progress;
use fetchwell_source::documents::DocumentStores;
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, BackendKind, BackendStatus, RecordQuery, RecordsPage, RecordsQuery,
    SearchPage, SearchQuery, Source, SourceError, StageClock, Start, StreamAnswer, StreamQuery, WindowQuery,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub use backup::{BackupError, Contents, RestoreReport, back_up_store, restore_store};
pub use document_store::{delete_expired_searches, put_copied_project};
pub use fulltext::index::IndexState;
pub use lock_holder::is_store_locked;
pub use record_store::SqliteFile;
pub use sync::{SqliteSyncStore, SqliteTarget};
pub use vectors::{
    SqliteVectors, StoredModel, VectorBuilder, VectorHits, VectorIndex, VectorScope,
    check_document_dimensions, check_vectors, vector_status,
};

use self::blocking::{ReadLength, run_read, spawn_read};
use self::database::{Database, READERS};
use self::fulltext::SqliteSearch;
use self::fulltext::columns::IndexColumns;
use self::fulltext::index::Verification;
use self::history_queue::HistoryQueue;
use self::meaning::{Meaning, SearchMeaning, compared};
use self::read::tables::{SqliteTables, schema};

/// Maximum time that a read waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Open store for reading. Clones share the connections and the search index.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    name: SourceName,
    inner: Arc<Inner>,
    /// Embedder and vectors for searches by meaning, if an embedding model is configured.
    meaning: Option<Arc<Meaning>>,
}

#[derive(Debug)]
struct Inner {
    database: Database,
    searching: SqliteSearch,
    /// Permits for concurrent reads, one per pooled connection: opening a connection and preparing its statements
    /// takes as long as several reads.
    permits: Arc<Semaphore>,
    /// Searches of documents that are not written yet.
    history: HistoryQueue,
}

impl Inner {
    fn columns(&self) -> IndexColumns<'_> {
        IndexColumns::new(&self.database, &self.searching.index)
    }
}

impl SqliteStore {
    /// Opens an existing store. Takes well under a millisecond, because the first search opens the index.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is missing, unreadable, damaged, of another program or of a newer format.
    pub fn open(name: SourceName, path: &Path) -> Result<Self, StoreError> {
        let database = Database::open(path)?;
        let (searching, permits) = (SqliteSearch::default(), Arc::new(Semaphore::new(READERS)));
        Ok(Self {
            name,
            inner: Arc::new(Inner { database, searching, permits, history: HistoryQueue::default() }),
            meaning: None,
        })
    }

    /// Returns the store with searches by meaning, for which queries are embedded by a model within `deadline`. Its
    /// vectors take at most `vector_memory` bytes in memory.
    #[must_use]
    pub fn with_embedder(
        mut self,
        embedder: Arc<QueryEmbedder>,
        vector_memory: usize,
        deadline: Duration,
    ) -> Self {
        let vectors = VectorIndex::new(self.inner.database.path(), vector_memory);
        self.meaning = Some(Arc::new(Meaning::new(embedder, vectors, deadline)));
        self
    }

    /// Returns the identity of a store at a path, whether it is open or not.
    #[must_use]
    pub fn identity_at(name: &SourceName, path: &Path) -> String {
        format!("{name} store {}", path.display())
    }

    /// Brings the index up to date, however long that takes. For a command that searches once and exits, since no
    /// later search would complete the index.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read or its index cannot be written.
    pub fn complete_index(&self) -> Result<IndexState, StoreError> {
        self.inner.searching.index.complete(&self.inner.database, Verification::Quick, &no_progress)
    }

    /// Brings the index up to date like [`Self::complete_index`] and verifies every byte of it.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read or its index cannot be written.
    pub fn verify_index(&self) -> Result<IndexState, StoreError> {
        self.inner.searching.index.complete(&self.inner.database, Verification::Full, &no_progress)
    }

    /// Acquires a permit and runs a read on a blocking thread. Dropping the future interrupts the read.
    async fn blocking<Answer: Send + 'static>(
        &self,
        read: impl FnOnce(&Inner, &Interrupt) -> Result<Answer, SourceError> + Send + 'static,
    ) -> Result<Answer, SourceError> {
        self.run(ReadLength::Any, read).await
    }

    /// Acquires a permit and runs a read. Dropping the future interrupts a read on a blocking thread.
    async fn run<Answer: Send + 'static>(
        &self,
        length: ReadLength,
        read: impl FnOnce(&Inner, &Interrupt) -> Result<Answer, SourceError> + Send + 'static,
    ) -> Result<Answer, SourceError> {
        let inner = Arc::clone(&self.inner);
        let permit = timeout(PERMIT_TIMEOUT, Arc::clone(&inner.permits).acquire_owned());
        let permit = permit.await.ok().and_then(Result::ok).ok_or(SourceError::NoPermit)?;
        let interrupt = Interrupt::default();
        let _interrupt = InterruptOnDrop(interrupt.clone());
        run_read(length, move || {
            let _permit = permit;
            read(&inner, &interrupt)
        })
        .await
    }

    /// Runs a read of record text and repeats it with a larger memory permit if it needs one, which takes longer. Returns the
    /// permit for the text in the result.
    async fn reading<Answer: Send + 'static>(
        &self,
        length: ReadLength,
        read: impl Fn(&Inner, ReadBounds<'_>) -> Result<Answer, SourceError> + Send + Sync + 'static,
    ) -> Result<(Answer, MemoryPermit), SourceError> {
        let read = Arc::new(read);
        with_memory(|granted| {
            let read = Arc::clone(&read);
            let length = if granted > UNCOUNTED_BYTES { ReadLength::Any } else { length };
            self.run(length, move |inner, interrupt| {
                Ok(MeasuredRead::new(granted, |allowance| read(inner, ReadBounds { interrupt, allowance })))
            })
        })
        .await
    }
}

#[async_trait]
impl Source for SqliteStore {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        Self::identity_at(&self.name, self.inner.database.path())
    }

    fn verifies_changes(&self) -> bool {
        true
    }

    async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        Ok(DocumentStores { stores: vec![Arc::new(self.clone())], ..DocumentStores::default() })
    }

    async fn backends(&self) -> Vec<BackendStatus> {
        vec![BackendStatus::without_pool(&self.name, BackendKind::File)]
    }

    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        // Without a permit: a busy store is not an unhealthy one.
        let inner = Arc::clone(&self.inner);
        let found = spawn_read(move || {
            inner.database.check()?;
            inner.searching.index.check(&inner.database)
        });
        let missing =
            |code: &str| Unavailable { source: self.name.clone(), code: code.to_owned(), hint: None };
        Ok(found.await?.map(missing).into_iter().collect())
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        self.blocking(|inner, _| schema(&inner.database)).await
    }

    async fn search(&self, _context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let query = query.clone();
        let mut clock = StageClock::start(query.explains);
        let SearchMeaning { vector, problem, .. } = self.meaning_of(&query).await;
        clock.end("embedding");
        let length = match &vector {
            None => self.inner.searching.expected_length(&query),
            Some(_) => ReadLength::Any,
        };
        let read = move |inner: &Inner, bounds: ReadBounds<'_>| {
            let meaning = compared(vector.as_ref(), query.mode);
            inner.searching.search(&inner.database, &query, meaning, bounds.allowance)
        };
        let mut page = self.reading(length, read).await?.0;
        page.meaning_problems.extend(problem);
        page.stages.splice(..0, clock.into_stages());
        Ok(page)
    }

    async fn record(&self, _context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, bounds: ReadBounds<'_>| {
            inner.database.ask(|sqlite| record::record(&SqliteTables::new(sqlite), &query, bounds))
        };
        let (record, memory) = self.reading(ReadLength::Short, read).await?;
        Ok(Record { memory, ..record })
    }

    async fn version(
        &self,
        _context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        let address = address.clone();
        let read = move |inner: &Inner, _: &Interrupt| {
            inner.database.ask(|sqlite| record::version(&SqliteTables::new(sqlite), &address))
        };
        self.run(ReadLength::Short, read).await
    }

    async fn stream(&self, _context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, _: &Interrupt| {
            inner.database.ask(|sqlite| streams::streams(&SqliteTables::new(sqlite), &query))
        };
        self.blocking(read).await.map(StreamAnswer::from)
    }

    async fn records(
        &self,
        _context: &CallContext,
        query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, bounds: ReadBounds<'_>| {
            inner.database.ask(|sqlite| {
                let transaction = sqlite.unchecked_transaction()?;
                let columns = inner.columns();
                let tables = SqliteTables::with_columns(&transaction, &columns);
                match &query.start {
                    Start::First => list::page(&tables, &query, None, bounds),
                    Start::After(position) => list::page(&tables, &query, Some(position), bounds),
                    Start::Changes(since) => changes::changes(&tables, &query, since.as_ref(), bounds),
                }
            })
        };
        let (page, memory) = self.reading(ReadLength::Any, read).await?;
        Ok(page.with_memory(&memory))
    }

    async fn window(&self, _context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, bounds: ReadBounds<'_>| {
            inner.database.ask(|sqlite| window::window(&SqliteTables::new(sqlite), &query, bounds.allowance))
        };
        Ok(self.reading(ReadLength::Any, read).await?.0)
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, interrupt: &Interrupt| {
            // Each text is dropped before the next one is read, and the pass bounds its groups.
            let allowance = Allowance::unlimited();
            let bounds = ReadBounds { interrupt, allowance: &allowance };
            inner.database.ask(|sqlite| {
                let transaction = sqlite.unchecked_transaction()?;
                let columns = inner.columns();
                let tables = SqliteTables::with_columns(&transaction, &columns);
                aggregate::aggregate(&tables, &query, bounds)
            })
        };
        self.blocking(read).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use fetchwell_source::LazySource;
    use fetchwell_source::contract::NewConnection;
    use fetchwell_source::sync::ImportTarget;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn busy_store_returns_busy_and_stays_healthy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.db");
        drop(Database::open_or_create(&path).unwrap());
        let store = SqliteStore::open("notes".parse().unwrap(), &path).unwrap();
        let all = store.inner.permits.acquire_many(READERS.try_into().unwrap()).await.unwrap();
        assert!(store.health().await.unwrap().is_empty());
        assert_eq!(
            store.schema(&CallContext::default()).await.unwrap_err().code(),
            SourceError::NoPermit.code()
        );
        drop(all);
        assert!(store.schema(&CallContext::default()).await.unwrap().connections.is_empty());
    }

    #[tokio::test]
    async fn query_returns_the_error_until_the_source_opens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.db");
        let (times, counted) = (Arc::new(AtomicUsize::new(0)), path.clone());
        let tried = Arc::clone(&times);
        let source = LazySource::new("notes".parse().unwrap(), "notes store".to_owned(), move || {
            tried.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::new(SqliteStore::open("notes".parse().unwrap(), &counted)?))
        });
        for _ in 0..2 {
            let refused = source.schema(&CallContext::default()).await;
            assert!(matches!(refused, Err(SourceError::Store(StoreError::Missing(_)))), "{refused:?}");
        }
        let connection = NewConnection {
            connection_id: "c".parse().unwrap(),
            connector_key: "notes".to_owned(),
            display_name: None,
            manifest: None,
        };
        SqliteTarget::new(&path).open(&connection, None, &no_progress).unwrap().finish(&no_progress).unwrap();
        assert!(source.schema(&CallContext::default()).await.is_ok());
        assert!(source.search(&CallContext::default(), &SearchQuery::new("x", 1)).await.is_ok());
        assert_eq!(times.load(Ordering::SeqCst), 3);
        assert_eq!(source.identity(), "notes store");
    }
}
