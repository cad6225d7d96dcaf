//! The embedded store: a record server in one SQLite file.
//!
//! SQLite holds the truth: connections, streams, records and the version of every change. Beside it
//! lies a search index (`STORE-index/`) that is derived from it and can be deleted at any time: it
//! carries the version up to which it is complete, and an import or the next search that finds it behind
//! brings it up to date from the records changed since. That is also how it recovers from a crash, from
//! damage and from a backup that is copied over it.
//!
//! One process writes at a time ([`StoreWriter`] holds a lock); any number read meanwhile.

mod aggregate;
mod allowance;
mod backup;
mod changes;
mod clauses;
mod database;
mod declaration;
mod error;
mod expand;
mod group_key;
mod index;
mod interrupt;
mod kinds;
mod list;
mod lock_holder;
mod manifest;
mod matching;
mod pick;
mod predicate;
mod put;
mod read;
mod routes;
mod scope;
mod search;
mod selection;
mod sieve;
mod sort_value;
mod streams;
mod terms;
mod time_bucket;
mod window;
mod words;
mod write;
mod write_lock;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

pub use backup::{BackupError, Contents, RestoreReport, back_up_store, restore_store};
pub use declaration::StreamDeclaration;
pub use error::StoreError;
pub use index::IndexState;
pub use manifest::{Manifest, ManifestError};
pub use write::{Change, Imported, Incoming, NewConnection, StoreWriter, Tally};

use self::allowance::Allowance;
use self::database::{Database, READERS};
use self::interrupt::{Interrupt, InterruptOnDrop};
use self::search::Searching;
use super::{
    AggregateAnswer, AggregateQuery, RecordQuery, RecordsPage, RecordsQuery, SearchPage, SearchQuery, Source,
    SourceError, Start, StreamAnswer, StreamQuery, WindowQuery,
};
use crate::handle::{RecordAddress, SourceName};
use crate::memory::{MemoryPermit, UNCOUNTED_BYTES};
use crate::record::{Record, Schema, Unavailable, Window};

/// How long a read waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(2);

/// The longest time that a read of long records waits for memory. Shorter than a source's deadline when nothing else is configured.
const MEMORY_WITHIN: Duration = Duration::from_secs(4);

/// An open store, to read from.
#[derive(Debug, Clone)]
pub struct Store {
    name: SourceName,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    database: Database,
    searching: Searching,
    /// Each read has a connection: one that had to be opened for it, and its statements made anew, would cost several reads.
    turns: Arc<Semaphore>,
}

impl Store {
    /// Opens an existing store. Takes well under a millisecond: the index is opened by the first search.
    ///
    /// # Errors
    ///
    /// The file is missing, unreadable, foreign, damaged, or of a newer format.
    pub fn open(name: SourceName, path: &Path) -> Result<Self, StoreError> {
        let database = Database::open(path)?;
        let (searching, turns) = (Searching::default(), Arc::new(Semaphore::new(READERS)));
        Ok(Self { name, inner: Arc::new(Inner { database, searching, turns }) })
    }

    /// What a store at this place is identified by, open or not.
    #[must_use]
    pub fn identity_at(name: &SourceName, path: &Path) -> String {
        format!("{name} store {}", path.display())
    }

    /// Runs a read in its turn. Dropping the future interrupts it.
    async fn blocking<Answer: Send + 'static>(
        &self,
        read: impl FnOnce(&Inner, &Interrupt) -> Result<Answer, SourceError> + Send + 'static,
    ) -> Result<Answer, SourceError> {
        let inner = Arc::clone(&self.inner);
        let turn = timeout(TURN_WITHIN, Arc::clone(&inner.turns).acquire_owned());
        let turn = turn.await.ok().and_then(Result::ok).ok_or(SourceError::AskInTurn)?;
        let interrupt = Interrupt::default();
        let _interrupt = InterruptOnDrop(interrupt.clone());
        apart(move || {
            let _turn = turn;
            read(&inner, &interrupt)
        })
        .await
    }

    /// Runs a read of record text, and repeats it with more memory when it needs that. Returns the permit of the text that
    /// the answer has.
    async fn reading<Answer: Send + 'static>(
        &self,
        read: impl Fn(&Inner, &Interrupt, &Allowance) -> Result<Answer, SourceError> + Send + Sync + 'static,
    ) -> Result<(Answer, MemoryPermit), SourceError> {
        let read = Arc::new(read);
        let (mut permit, mut granted) = (MemoryPermit::default(), UNCOUNTED_BYTES);
        loop {
            let read = Arc::clone(&read);
            let (answer, needed, used) = self
                .blocking(move |inner, interrupt| {
                    let allowance = Allowance::new(granted);
                    let answer = read(inner, interrupt, &allowance);
                    Ok((answer, allowance.needed(), allowance.used()))
                })
                .await?;
            let Some(needed) = needed else {
                permit.shrink_to(used);
                return Ok((answer?, permit));
            };
            // The memory of the first try is released first: two reads that wait for each other would wait for ever.
            drop((answer, permit));
            permit = MemoryPermit::acquire(needed, MEMORY_WITHIN).await.map_err(|_busy| SourceError::Busy)?;
            granted = needed;
        }
    }
}

/// Runs a read where waiting for the disk holds up nobody else.
async fn apart<Answer: Send + 'static>(read: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    match spawn_blocking(read).await {
        Ok(answer) => answer,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
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

    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        // Without a turn: a store with much to do is not a sick one.
        let inner = Arc::clone(&self.inner);
        let found = apart(move || {
            inner.database.check()?;
            inner.searching.index.check(&inner.database)
        });
        let missing =
            |code: &str| Unavailable { source: self.name.clone(), code: code.to_owned(), hint: None };
        Ok(found.await?.map(missing).into_iter().collect())
    }

    async fn schema(&self) -> Result<Schema, SourceError> {
        self.blocking(|inner, _| read::schema(&inner.database)).await
    }

    async fn search(&self, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, _: &Interrupt, allowance: &Allowance| {
            inner.searching.search(&inner.database, &query, allowance)
        };
        Ok(self.reading(read).await?.0)
    }

    async fn record(&self, query: &RecordQuery) -> Result<Record, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, interrupt: &Interrupt, allowance: &Allowance| {
            read::record(&inner.database, &query, interrupt, allowance)
        };
        let (record, memory) = self.reading(read).await?;
        Ok(Record { memory, ..record })
    }

    async fn version(&self, address: &RecordAddress) -> Result<Option<String>, SourceError> {
        let address = address.clone();
        self.blocking(move |inner, _| read::version(&inner.database, &address)).await
    }

    async fn stream(&self, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        let query = query.clone();
        self.blocking(move |inner, _| streams::streams(&inner.database, &query).map(StreamAnswer::from)).await
    }

    async fn records(&self, query: &RecordsQuery) -> Result<RecordsPage, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, interrupt: &Interrupt, allowance: &Allowance| {
            let (database, bounds) = (&inner.database, (interrupt, allowance));
            match &query.start {
                Start::First => list::page(database, &query, None, bounds),
                Start::After(position) => list::page(database, &query, Some(position), bounds),
                Start::Changes(since) => changes::changes(database, &query, since.as_ref(), bounds),
            }
        };
        let (page, memory) = self.reading(read).await?;
        Ok(page.with_memory(&memory))
    }

    async fn window(&self, query: &WindowQuery) -> Result<Window, SourceError> {
        let query = query.clone();
        let read = move |inner: &Inner, _: &Interrupt, allowance: &Allowance| {
            window::window(&inner.database, &query, allowance)
        };
        Ok(self.reading(read).await?.0)
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
        let query = query.clone();
        self.blocking(move |inner, interrupt| aggregate::aggregate(&inner.database, &query, interrupt)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_with_much_to_do_says_so_and_is_not_sick() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.db");
        drop(Database::open_or_create(&path).unwrap());
        let store = Store::open("notes".parse().unwrap(), &path).unwrap();
        let all = store.inner.turns.acquire_many(READERS.try_into().unwrap()).await.unwrap();
        assert!(store.health().await.unwrap().is_empty());
        assert_eq!(store.schema().await.unwrap_err().code(), SourceError::AskInTurn.code());
        drop(all);
        assert!(store.schema().await.unwrap().connections.is_empty());
    }
}
