//! The source that reads a store in PostgreSQL.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::memory::MemoryPermit;
use fetchwell_core::record::{Record, Schema, Unavailable, Window};
use fetchwell_embedding::QueryEmbedder;
use fetchwell_ranking::relational::allowance::{Allowance, MeasuredRead, with_memory};
use fetchwell_ranking::relational::interrupt::{Interrupt, ReadBounds};
use fetchwell_ranking::relational::tables::Tables as _;
use fetchwell_ranking::relational::{aggregate, changes, list, record, streams, window};
use fetchwell_source::contract::{PostgresError, StoreError};
use fetchwell_source::documents::DocumentStores;
use fetchwell_source::vectors::StoreEmbedder;
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, BackendKind, BackendStatus, QueryFault, RecordQuery, RecordsPage,
    RecordsQuery, ReplicaStatus, SearchPage, SearchQuery, Source, SourceError, Start, StreamAnswer,
    StreamQuery, WindowQuery,
};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::bulk::indexes::missing_sql;
use super::columns::{BuildLimits, build_columns};
use super::extension::state::{PGVECTOR_COLUMNS, PgvectorState};
use super::pool::PostgresPool;
use super::read::read;
use super::replicas::ReadReplicas;
use super::tables::PostgresTables;
use super::transaction::begin_read;
use super::url::PostgresUrl;

/// Maximum time of a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum time of reading the state of the extension.
const EXTENSION_TIMEOUT: Duration = Duration::from_secs(1);

/// Store in PostgreSQL. Clones share the connections.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pub(crate) name: SourceName,
    pub(crate) pool: PostgresPool,
    pub(crate) replicas: Option<ReadReplicas>,
    pub(crate) deadline: Duration,
    /// Embedder of queries, if an embedding model is configured.
    pub(crate) embedder: Option<StoreEmbedder>,
    /// Set when the tables of documents are known to exist.
    pub(crate) documents: Arc<OnceCell<()>>,
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
    /// Number of indexes that an interrupted import left missing. Answers are right, and slow.
    pub missing_indexes: i32,
}

impl fmt::Display for PostgresState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, is_encrypted, is_read_only, tables, pgvector, missing_indexes } = self;
        let encryption = if *is_encrypted { "encrypted" } else { "not encrypted" };
        let access = if *is_read_only { ", read-only" } else { "" };
        write!(f, "PostgreSQL {server}, {encryption}{access}, tables of version {tables}, {pgvector}")?;
        if *missing_indexes > 0 {
            f.write_str(", indexes are missing: run `fetchwell store migrate`")?;
        }
        Ok(())
    }
}

impl PostgresStore {
    /// Creates a store with a `deadline` for each read. The first read connects.
    #[must_use]
    pub fn new(name: SourceName, pool: PostgresPool, deadline: Duration) -> Self {
        Self { name, pool, replicas: None, deadline, embedder: None, documents: Arc::default() }
    }

    /// Returns the store with replicas that it may read from.
    #[must_use]
    pub fn with_replicas(self, replicas: ReadReplicas) -> Self {
        Self { replicas: Some(replicas), ..self }
    }

    /// Returns the store with searches by meaning, for which queries are embedded within `deadline`.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<QueryEmbedder>, deadline: Duration) -> Self {
        Self { embedder: Some(StoreEmbedder::new(embedder, deadline)), ..self }
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
        let mut connection = self.pool.connection().await?;
        let failed = |error| self.pool.failure(&error);
        let transaction = begin_read(&mut connection, self.pool.url()).await.map_err(failed)?;
        let missing_indexes = missing_sql();
        let sql = format!(
            "SELECT current_setting('server_version'),
                coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
                pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean
                    OR NOT has_table_privilege('fetchwell.records', 'INSERT'),
                (SELECT max(version) FROM fetchwell.migrations),
                {missing_indexes}, {PGVECTOR_COLUMNS}"
        );
        let row = transaction.query_one(sql.as_str(), &[]).await.map_err(failed)?;
        let server: String = row.get(0);
        Ok(PostgresState {
            // Debian adds the version of its package.
            server: server.split(' ').next().unwrap_or_default().to_owned(),
            is_encrypted: row.get(1),
            is_read_only: row.get(2),
            tables: row.get(3),
            missing_indexes: row.get(4),
            pgvector: PgvectorState::from_row(&row, 5),
        })
    }

    /// Builds the columns that are missing, unless another process does or the role may not.
    ///
    /// # Errors
    ///
    /// The database cannot be written. Reads use the records instead.
    pub async fn build_columns(&self) -> Result<(), PostgresError> {
        let mut connection = self.pool.connection().await?;
        build_columns(&mut connection, &self.pool, BuildLimits::default()).await
    }

    /// Runs a read on a replica that is up to date, and otherwise on the primary.
    async fn read<Answer: Send + 'static>(
        &self,
        run: impl Fn(&PostgresTables<'_>, &Interrupt) -> Result<Answer, SourceError>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Result<Answer, SourceError> {
        self.on_replica_or_primary(|server| {
            let run = run.clone();
            async move { read(&server, self.deadline, run).await }
        })
        .await
    }

    /// Runs a read of record text as [`Self::read`] does, and repeats it with a larger memory permit if it needs one. Returns
    /// the permit for the text in the result.
    pub(crate) async fn reading<Answer: Send + 'static>(
        &self,
        run: impl MeasuredRun<Answer>,
    ) -> Result<(Answer, MemoryPermit), SourceError> {
        self.on_replica_or_primary(|server| self.reading_from(server, run.clone())).await
    }

    /// Runs a read of record text on one server.
    async fn reading_from<Answer: Send + 'static>(
        &self,
        server: PostgresPool,
        run: impl MeasuredRun<Answer>,
    ) -> Result<(Answer, MemoryPermit), SourceError> {
        with_memory(|granted| {
            let (server, run) = (server.clone(), run.clone());
            async move {
                read(&server, self.deadline, move |tables, interrupt| {
                    Ok(MeasuredRead::new(granted, |allowance| {
                        run(tables, ReadBounds { interrupt, allowance })
                    }))
                })
                .await
            }
        })
        .await
    }

    /// Asks a replica, if one is up to date, and the primary otherwise. A replica may not have a record yet that another process
    /// has shown, so what it does not have is read from the primary.
    async fn on_replica_or_primary<Answer, Asked>(
        &self,
        ask: impl Fn(PostgresPool) -> Asked,
    ) -> Result<Answer, SourceError>
    where
        Asked: Future<Output = Result<Answer, SourceError>>,
    {
        if let Some(replicas) = &self.replicas
            && let Some(replica) = replicas.choose(&self.pool).await
        {
            match ask(replica).await {
                Err(error) if is_missing(&error) => {}
                Err(SourceError::Store(StoreError::Postgres(_))) => replicas.give_up().await,
                answer => return answer,
            }
        }
        ask(self.pool.clone()).await
    }

    /// Returns what `/health` and `/metrics` tell of the database.
    async fn backend(&self) -> BackendStatus {
        BackendStatus {
            source: self.name.to_string(),
            kind: BackendKind::Postgres,
            database: Some(self.pool.url().to_string()),
            pool: Some(self.pool.usage()),
            replicas: self.replicas().await,
            pgvector: self.pgvector().await.map(|state| state.status()),
            session: None,
        }
    }

    /// Returns the state of pgvector, or `None` if the database does not answer soon.
    pub async fn pgvector(&self) -> Option<PgvectorState> {
        let read = async {
            let mut connection = self.pool.connection().await.ok()?;
            let transaction = begin_read(&mut connection, self.pool.url()).await.ok()?;
            let row = transaction.query_one(&format!("SELECT {PGVECTOR_COLUMNS}"), &[]).await.ok()?;
            Some(PgvectorState::from_row(&row, 0))
        };
        timeout(EXTENSION_TIMEOUT, read).await.ok().flatten()
    }

    /// Returns the states of the read replicas.
    pub async fn replicas(&self) -> Vec<ReplicaStatus> {
        match &self.replicas {
            Some(replicas) => replicas.status(&self.pool).await,
            None => Vec::new(),
        }
    }
}

/// Read of record text within bounds.
pub(crate) trait MeasuredRun<Answer>:
    Fn(&PostgresTables<'_>, ReadBounds<'_>) -> Result<Answer, SourceError> + Clone + Send + Sync + 'static
{
}

impl<Answer, Run> MeasuredRun<Answer> for Run where
    Run: Fn(&PostgresTables<'_>, ReadBounds<'_>) -> Result<Answer, SourceError>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Returns true if a replica may only lack what was asked for.
fn is_missing(error: &SourceError) -> bool {
    matches!(
        error,
        SourceError::NotFound { .. }
            | SourceError::ConnectionNotFound { .. }
            | SourceError::InvalidQuery { fault: QueryFault::UnknownStream, .. }
            | SourceError::Store(StoreError::Postgres(PostgresError::NoTables { .. }))
    ) || matches!(error, SourceError::Store(StoreError::Postgres(error)) if error.is_missing_table())
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

    async fn backends(&self) -> Vec<BackendStatus> {
        vec![self.backend().await]
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
        self.search_records(query).await
    }

    async fn records(
        &self,
        _context: &CallContext,
        query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        let (query, start) = (query.clone(), query.start.clone());
        let read = move |tables: &PostgresTables<'_>, bounds: ReadBounds<'_>| match &query.start {
            Start::First => list::page(tables, &query, None, bounds),
            Start::After(position) => list::page(tables, &query, Some(position), bounds),
            Start::Changes(since) => changes::changes(tables, &query, since.as_ref(), bounds),
        };
        // The next token of a list of changes must never be of an earlier state than the last one.
        let answer = match &start {
            Start::Changes(_) => self.reading_from(self.pool.clone(), read).await,
            Start::First | Start::After(_) => self.reading(read).await,
        };
        let (page, memory) = answer?;
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
