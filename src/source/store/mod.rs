//! The embedded store: a record server in one SQLite file.
//!
//! SQLite is the source of truth: connections, streams, records and the version of every change. The search index
//! beside it (`STORE-index/`) is derived from it and can be deleted at any time. The index contains the version up to
//! which it is complete; an import, or the next search, adds the records that changed since. The same mechanism
//! recovers from a crash, from damage and from a restored backup.
//!
//! One process writes at a time (`StoreWriter` holds a lock); any number of processes read meanwhile.
//!
//! * `database`, `write_lock`, `lock_holder`, `error`: the SQLite file
//! * `blocking`: reads on threads of their own
//! * `backup`: backups of the file
//! * `manifest`: manifests of connectors
//! * `read`: reads of records and of the schema
//! * `fulltext`: full-text search and its index
//! * `import`: imports, `sync`: imports that stay current
//! * `documents`: the tables of projects, `document_store`: the store as one of documents
//! * `vectors`: vectors of records, for search by meaning
//! * `place`, `info`, `export`, `removal`: the names of a command as rows; description, export and removal of records
//! * `traces`: text of removed records in free pages, `tables`: the tables that there are
//! * `meaning`: the use of vectors by one search

mod backup;
mod blocking;
mod database;
mod document_store;
mod documents;
mod error;
mod export;
mod fulltext;
mod import;
mod info;
mod lock_holder;
mod manifest;
mod meaning;
mod place;
mod read;
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
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub use backup::{BackupError, Contents, RestoreReport, back_up_store, restore_store};
pub use documents::KnownDocument;
pub use error::StoreError;
pub use export::{ExportError, ExportedRecord, ExportedStream, MAX_EXPORTED_FIELDS, StoreExport};
pub use fulltext::index::IndexState;
pub use import::{Change, Imported, Incoming, NewConnection, StoreWriter, Tally};
pub use info::{ConnectionInfo, StoreBytes, StoreInfo, StreamInfo, store_info};
pub use manifest::{Manifest, ManifestError, StreamDeclaration};
pub use place::ScopeError;
pub use removal::{RemovalCounts, RemovalError, Removed, count_removal, finish_removal, remove_records};
pub use sync::{
    Fingerprint, ImportId, ImportStatus, ItemId, ItemState, KnownItem, Missing, NewImport, RememberedImport,
    SyncLock, SyncStore, SyncWriter,
};
pub use vectors::{
    BackgroundBuild, BuildMode, BuildProgress, EmbeddedStreams, GenerationStatus, ScoreSpread, StoreVersion,
    VectorBuilder, VectorError, VectorHit, VectorHits, VectorIndex, VectorScope, VectorStatus,
    estimate_build, remove_vectors, vector_status,
};

use self::blocking::spawn_read;
use self::database::{Database, READERS};
use self::fulltext::StoreSearch;
use self::fulltext::index::Verification;
use self::meaning::{Meaning, SearchMeaning};
use self::read::allowance::Allowance;
use self::read::interrupt::{Interrupt, InterruptOnDrop, ReadBounds};
use self::read::{aggregate, changes, list, record, schema, streams, window};
use super::documents::DocumentStore;
use super::{
    AggregateAnswer, AggregateQuery, RecordQuery, RecordsPage, RecordsQuery, SearchPage, SearchQuery, Source,
    SourceError, Start, StreamAnswer, StreamQuery, WindowQuery,
};
use crate::callers::CallContext;
use crate::embedding::QueryEmbedder;
use crate::handle::{RecordAddress, SourceName};
use crate::memory::{MemoryPermit, UNCOUNTED_BYTES};
use crate::record::{Record, Schema, Unavailable, Window};

/// Maximum time that a read waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time that a read of large records waits for memory. Shorter than the default deadline of a source.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(4);

/// Returns true if the application id of a SQLite database is that of a store or of its vectors.
pub(crate) fn is_store_application(id: i64) -> bool {
    [database::APPLICATION_ID, vectors::VECTORS_APPLICATION_ID].contains(&id)
}

/// Open store for reading. Clones share the connections and the search index.
#[derive(Debug, Clone)]
pub struct Store {
    name: SourceName,
    inner: Arc<Inner>,
    /// Embedder and vectors for searches by meaning, if an embedding model is configured.
    meaning: Option<Arc<Meaning>>,
}

#[derive(Debug)]
struct Inner {
    database: Database,
    searching: StoreSearch,
    /// Permits for concurrent reads, one per pooled connection: opening a connection and preparing its statements
    /// takes as long as several reads.
    permits: Arc<Semaphore>,
}

impl Store {
    /// Opens an existing store. Takes well under a millisecond, because the first search opens the index.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is missing, unreadable, damaged, of another program or of a newer format.
    pub fn open(name: SourceName, path: &Path) -> Result<Self, StoreError> {
        let database = Database::open(path)?;
        let (searching, permits) = (StoreSearch::default(), Arc::new(Semaphore::new(READERS)));
        Ok(Self { name, inner: Arc::new(Inner { database, searching, permits }), meaning: None })
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
        self.inner.searching.index.complete(&self.inner.database, Verification::Quick)
    }

    /// Brings the index up to date like [`Self::complete_index`] and verifies every byte of it.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read or its index cannot be written.
    pub fn verify_index(&self) -> Result<IndexState, StoreError> {
        self.inner.searching.index.complete(&self.inner.database, Verification::Full)
    }

    /// Acquires a permit and runs a read on a blocking thread. Dropping the future interrupts the read.
    async fn blocking<Answer: Send + 'static>(
        &self,
        read: impl FnOnce(&Inner, &Interrupt) -> Result<Answer, SourceError> + Send + 'static,
    ) -> Result<Answer, SourceError> {
        let inner = Arc::clone(&self.inner);
        let permit = timeout(PERMIT_TIMEOUT, Arc::clone(&inner.permits).acquire_owned());
        let permit = permit.await.ok().and_then(Result::ok).ok_or(SourceError::NoPermit)?;
        let interrupt = Interrupt::default();
        let _interrupt = InterruptOnDrop(interrupt.clone());
        spawn_read(move || {
            let _permit = permit;
            read(&inner, &interrupt)
        })
        .await
    }

    /// Runs a read of record text and repeats it with a larger memory permit if it needs one. Returns the permit for
    /// the text in the result.
    async fn reading<Answer: Send + 'static>(
        &self,
        read: impl Fn(&Inner, ReadBounds<'_>) -> Result<Answer, SourceError> + Send + Sync + 'static,
    ) -> Result<(Answer, MemoryPermit), SourceError> {
        let read = Arc::new(read);
        let (mut permit, mut granted) = (MemoryPermit::default(), UNCOUNTED_BYTES);
        loop {
            let read = Arc::clone(&read);
            let (answer, needed, used) = self
                .blocking(move |inner, interrupt| {
                    let allowance = Allowance::new(granted);
                    let answer = read(inner, ReadBounds { interrupt, allowance: &allowance });
                    Ok((answer, allowance.needed(), allowance.used()))
                })
                .await?;
            let Some(needed) = needed else {
                permit.shrink_to(used);
                return Ok((answer?, permit));
            };
            // The first permit is released before the next one is acquired: two reads that each held one would
            // deadlock.
            drop((answer, permit));
            permit =
                MemoryPermit::acquire(needed, MEMORY_TIMEOUT).await.map_err(|_busy| SourceError::Busy)?;
            granted = needed;
        }
    }
}

#[async_trait]
impl Source for Store {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        Self::identity_at(&self.name, self.inner.database.path())
    }

    fn verifies_changes(&self) -> bool {
        true
    }

    async fn document_stores(&self) -> Result<Vec<Arc<dyn DocumentStore>>, SourceError> {
        Ok(vec![Arc::new(self.clone())])
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
        self.blocking(|inner, _| schema::schema(&inner.database)).await
    }

    async fn search(&self, _context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let query = query.clone();
        let mut meaning = match &self.meaning {
            Some(meaning) => meaning.for_search(&query).await,
            None => SearchMeaning::default(),
        };
        let problem = meaning.problem.take();
        let read = move |inner: &Inner, bounds: ReadBounds<'_>| {
            inner.searching.search(&inner.database, &query, meaning.query(), bounds.allowance)
        };
        let mut page = self.reading(read).await?.0;
        page.meaning_problems.extend(problem);
        Ok(page)
    }

    async fn record(&self, _context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        let query = query.clone();
        let read =
            move |inner: &Inner, bounds: ReadBounds<'_>| record::record(&inner.database, &query, bounds);
        let (record, memory) = self.reading(read).await?;
        Ok(Record { memory, ..record })
    }

    async fn version(
        &self,
        _context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        let address = address.clone();
        self.blocking(move |inner, _| record::version(&inner.database, &address)).await
    }

    async fn stream(&self, _context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        let query = query.clone();
        self.blocking(move |inner, _| streams::streams(&inner.database, &query).map(StreamAnswer::from)).await
    }

    async fn records(
        &self,
        _context: &CallContext,
        query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, bounds: ReadBounds<'_>| {
            let database = &inner.database;
            match &query.start {
                Start::First => list::page(database, &query, None, bounds),
                Start::After(position) => list::page(database, &query, Some(position), bounds),
                Start::Changes(since) => changes::changes(database, &query, since.as_ref(), bounds),
            }
        };
        let (page, memory) = self.reading(read).await?;
        Ok(page.with_memory(&memory))
    }

    async fn window(&self, _context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, bounds: ReadBounds<'_>| {
            window::window(&inner.database, &query, bounds.allowance)
        };
        Ok(self.reading(read).await?.0)
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        let query = query.clone();
        self.blocking(move |inner, interrupt| aggregate::aggregate(&inner.database, &query, interrupt)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn busy_store_returns_busy_and_stays_healthy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.db");
        drop(Database::open_or_create(&path).unwrap());
        let store = Store::open("notes".parse().unwrap(), &path).unwrap();
        let all = store.inner.permits.acquire_many(READERS.try_into().unwrap()).await.unwrap();
        assert!(store.health().await.unwrap().is_empty());
        assert_eq!(
            store.schema(&CallContext::default()).await.unwrap_err().code(),
            SourceError::NoPermit.code()
        );
        drop(all);
        assert!(store.schema(&CallContext::default()).await.unwrap().connections.is_empty());
    }
}
