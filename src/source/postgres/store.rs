//! The source that reads a store in PostgreSQL.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::extension::state::{PGVECTOR_COLUMNS, PgvectorState};
use super::pool::PostgresPool;
use super::read::read;
use super::search::run::search;
use super::tables::PostgresTables;
use super::url::PostgresUrl;
use super::vectors::embedder::StoreEmbedder;
use crate::callers::CallContext;
use crate::embedding::QueryEmbedder;
use crate::handle::{RecordAddress, SourceName};
use crate::memory::MemoryPermit;
use crate::record::{Record, Schema, Unavailable, Window};
use crate::source::documents::DocumentStores;
use crate::source::postgres_error::PostgresError;
use crate::source::relational::allowance::{Allowance, MeasuredRead, with_memory};
use crate::source::relational::interrupt::{Interrupt, ReadBounds};
use crate::source::relational::tables::Tables as _;
use crate::source::relational::{aggregate, changes, list, record, streams, window};
use crate::source::{
    AggregateAnswer, AggregateQuery, RecordQuery, RecordsPage, RecordsQuery, SearchPage, SearchQuery, Source,
    SourceError, Start, StreamAnswer, StreamQuery, WindowQuery,
};

/// Maximum time of a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

/// Store in PostgreSQL. Clones share the connections.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pub(super) name: SourceName,
    pub(super) pool: PostgresPool,
    pub(super) deadline: Duration,
    /// Embedder of queries, if an embedding model is configured.
    pub(super) embedder: Option<StoreEmbedder>,
    /// Set when the tables of documents are known to exist.
    pub(super) documents: Arc<OnceCell<()>>,
}

/// State of a database, for checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresState {
    /// Version of the server, such as `16.14`.
    pub server: String,
    /// True if the connection is encrypted.
    pub is_encrypted: bool,
    /// True if the database, its server or the role only reads.
    pub is_read_only: bool,
    /// Version of the tables.
    pub tables: i32,
    /// State of the extension `vector`.
    pub pgvector: PgvectorState,
}

impl fmt::Display for PostgresState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, is_encrypted, is_read_only, tables, pgvector } = self;
        let encryption = if *is_encrypted { "encrypted" } else { "not encrypted" };
        let access = if *is_read_only { ", read-only" } else { "" };
        write!(f, "PostgreSQL {server}, {encryption}{access}, tables of version {tables}, {pgvector}")
    }
}

impl PostgresStore {
    /// Creates a store whose reads take at most `deadline`. The first read connects.
    #[must_use]
    pub fn new(name: SourceName, pool: PostgresPool, deadline: Duration) -> Self {
        Self { name, pool, deadline, embedder: None, documents: Arc::default() }
    }

    /// Returns the store with searches by meaning, for which queries are embedded within `deadline`.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<QueryEmbedder>, deadline: Duration) -> Self {
        Self { embedder: Some(StoreEmbedder { embedder, deadline }), ..self }
    }

    /// Returns the identity of a store, whether the database can be reached or not.
    #[must_use]
    pub fn identity_at(name: &SourceName, url: &PostgresUrl) -> String {
        format!("{name} store {url}")
    }

    /// Connects and returns the state of the database.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub async fn state(&self) -> Result<PostgresState, PostgresError> {
        let connection = self.pool.connection().await?;
        let sql = format!(
            "SELECT current_setting('server_version'),
                coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
                pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean
                    OR NOT has_table_privilege('fetchwell.records', 'INSERT'),
                (SELECT max(version) FROM fetchwell.migrations),
                {PGVECTOR_COLUMNS}"
        );
        let row = connection.query_one(&sql, &[]).await.map_err(|error| self.pool.failure(&error))?;
        let server: String = row.get(0);
        Ok(PostgresState {
            // Debian adds the version of its package.
            server: server.split(' ').next().unwrap_or_default().to_owned(),
            is_encrypted: row.get(1),
            is_read_only: row.get(2),
            tables: row.get(3),
            pgvector: PgvectorState::from_row(&row, 4),
        })
    }

    async fn read<Answer: Send + 'static>(
        &self,
        run: impl FnOnce(&PostgresTables<'_>, &Interrupt) -> Result<Answer, SourceError> + Send + 'static,
    ) -> Result<Answer, SourceError> {
        read(&self.pool, self.deadline, run).await
    }

    /// Runs a read of record text and repeats it with a larger memory permit if it needs one. Returns the permit for
    /// the text in the result.
    async fn reading<Answer: Send + 'static>(
        &self,
        run: impl Fn(&PostgresTables<'_>, ReadBounds<'_>) -> Result<Answer, SourceError>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Result<(Answer, MemoryPermit), SourceError> {
        with_memory(|granted| {
            let run = run.clone();
            self.read(move |tables, interrupt| {
                Ok(MeasuredRead::new(granted, |allowance| run(tables, ReadBounds { interrupt, allowance })))
            })
        })
        .await
    }
}

#[async_trait]
impl Source for PostgresStore {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        Self::identity_at(&self.name, self.pool.url())
    }

    fn verifies_changes(&self) -> bool {
        true
    }

    async fn health(&self) -> Result<Vec<Unavailable>, SourceError> {
        let checked = timeout(HEALTH_TIMEOUT, async {
            let connection = self.pool.connection().await?;
            connection.simple_query("SELECT").await.map_err(|error| self.pool.failure(&error))?;
            Ok::<(), PostgresError>(())
        });
        match checked.await {
            Ok(Ok(())) => Ok(Vec::new()),
            Ok(Err(error)) => Err(error.into()),
            Err(_elapsed) => Err(SourceError::Timeout { after: HEALTH_TIMEOUT }),
        }
    }

    async fn document_stores(&self) -> Result<DocumentStores, SourceError> {
        Ok(DocumentStores { stores: vec![Arc::new(self.clone())], ..DocumentStores::default() })
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        self.read(|tables, _| tables.schema()).await
    }

    async fn stream(&self, _context: &CallContext, query: &StreamQuery) -> Result<StreamAnswer, SourceError> {
        let query = query.clone();
        self.read(move |tables, _| streams::streams(tables, &query)).await.map(StreamAnswer::from)
    }

    async fn search(&self, _context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let query = query.clone();
        let read =
            move |tables: &PostgresTables<'_>, bounds: ReadBounds<'_>| search(tables, &query, None, bounds);
        Ok(self.reading(read).await?.0)
    }

    async fn records(
        &self,
        _context: &CallContext,
        query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        let query = query.clone();
        let read = move |tables: &PostgresTables<'_>, bounds: ReadBounds<'_>| match &query.start {
            Start::First => list::page(tables, &query, None, bounds),
            Start::After(position) => list::page(tables, &query, Some(position), bounds),
            Start::Changes(since) => changes::changes(tables, &query, since.as_ref(), bounds),
        };
        let (page, memory) = self.reading(read).await?;
        Ok(page.with_memory(&memory))
    }

    async fn record(&self, _context: &CallContext, query: &RecordQuery) -> Result<Record, SourceError> {
        let query = query.clone();
        let read =
            move |tables: &PostgresTables<'_>, bounds: ReadBounds<'_>| record::record(tables, &query, bounds);
        let (record, memory) = self.reading(read).await?;
        Ok(Record { memory, ..record })
    }

    async fn version(
        &self,
        _context: &CallContext,
        address: &RecordAddress,
    ) -> Result<Option<String>, SourceError> {
        let address = address.clone();
        self.read(move |tables, _| record::version(tables, &address)).await
    }

    async fn window(&self, _context: &CallContext, query: &WindowQuery) -> Result<Window, SourceError> {
        let query = query.clone();
        let read = move |tables: &PostgresTables<'_>, bounds: ReadBounds<'_>| {
            window::window(tables, &query, bounds.allowance)
        };
        Ok(self.reading(read).await?.0)
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        let query = query.clone();
        let read = move |tables: &PostgresTables<'_>, interrupt: &Interrupt| {
            // Each text is dropped before the next one is read, and the pass bounds its groups.
            let allowance = Allowance::unlimited();
            aggregate::aggregate(tables, &query, ReadBounds { interrupt, allowance: &allowance })
        };
        self.read(read).await
    }
}
