//! A store in PostgreSQL as a store of documents.

use std::ops::Range;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use fetchwell_core::handle::SourceName;
use fetchwell_ranking::relational::allowance::{MeasuredRead, with_memory};
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_source::contract::{EMBEDDING_DIMENSIONS, PostgresError, StoreError};
use fetchwell_source::documents::{
    Candidates, CategoryCount, CommitSummary, Document, DocumentChange, DocumentChunk, DocumentList,
    DocumentQuery, DocumentRef, DocumentSearch, DocumentStore, Feedback, NewProject, NewSearch, Passage,
    Project, ProjectChange, ProjectRef, SearchGroup, SearchGrouping, SearchRecord, StageSender, Uuid,
    search_embedded,
};
use fetchwell_source::{SearchMode, SourceError};
use futures_util::future::BoxFuture;
use tokio::time::timeout;
use tokio_postgres::Error;

use super::read::{DIALECT, rows};
use super::{commit, history, project, read, search};
use crate::extension::{migrate_documents, problem};
use crate::read::read as read_tables;
use crate::store::PostgresStore;
use crate::tables::PostgresTables;
use crate::terms::{merge_terms, warn_unmerged};
use crate::transaction::{begin_read, begin_write};
use crate::vectors::embedder::{QueryMeaning, embed_query};
use crate::vectors::models::StoredModel;

impl PostgresStore {
    /// Checks once that the database has the tables of documents. Creates them if pgvector was created since the store was
    /// opened.
    pub(crate) async fn check_documents(&self) -> Result<(), PostgresError> {
        let check = async || {
            let mut connection = self.pool.connection().await?;
            migrate_documents(&mut connection, self.pool.url()).await?;
            let read = async {
                let transaction = begin_read(&mut connection, self.pool.url()).await?;
                problem(transaction.client()).await
            };
            let problem = read.await.map_err(|error| self.pool.failure(&error))?;
            match problem {
                None => Ok(()),
                Some(problem) => {
                    Err(PostgresError::NoPgvector { database: self.pool.url().to_string(), problem })
                }
            }
        };
        self.documents.get_or_try_init(check).await.map(drop)
    }

    /// Runs a read of documents.
    async fn read_documents<Answer: Send + 'static>(
        &self,
        run: impl Fn(&PostgresTables<'_>) -> Result<Answer, SourceError> + Send + 'static,
    ) -> Result<Answer, SourceError> {
        self.check_documents().await?;
        read_tables(&self.pool, self.deadline, move |tables, _| run(tables)).await
    }

    /// Returns the rows of a query.
    async fn rows<Item: Send + 'static>(&self, query: DocumentQuery<Item>) -> Result<Vec<Item>, SourceError> {
        self.read_documents(move |tables| rows(tables, &query)).await
    }

    /// Runs a write of documents in one transaction, within the deadline of the source.
    async fn write_documents<Answer>(
        &self,
        run: impl for<'t> FnOnce(&'t Transaction<'t>) -> BoxFuture<'t, Result<Answer, Error>>,
    ) -> Result<Answer, SourceError> {
        self.check_documents().await?;
        let write = async {
            let mut connection = self.pool.connection().await?;
            let written = async {
                let transaction = begin_write(&mut connection, self.pool.url()).await?;
                let answer = run(&transaction).await?;
                transaction.commit().await?;
                Ok(answer)
            };
            written.await.map_err(|error| self.pool.failure(&error))
        };
        let written = timeout(self.deadline, write).await;
        Ok(written.map_err(|_elapsed| SourceError::Timeout { after: self.deadline })??)
    }

    /// Merges the pending changes of the number of records with each word.
    async fn merge_terms(&self) -> Result<(), SourceError> {
        let merge = async {
            let mut connection = self.pool.connection().await?;
            merge_terms(&mut connection, &self.pool).await
        };
        let merged = timeout(self.deadline, merge).await;
        Ok(merged.map_err(|_elapsed| SourceError::Timeout { after: self.deadline })??)
    }

    /// Embeds the query of a search, if its mode wants that and a model is configured.
    async fn meaning_of(&self, search: &DocumentSearch) -> Result<QueryMeaning, SourceError> {
        let Some(embedder) = &self.embedder else { return Ok(QueryMeaning::default()) };
        if search.mode == SearchMode::Lexical || search.text.trim().is_empty() {
            return Ok(QueryMeaning::default());
        }
        let stored = self.read_documents(StoredModel::read_searched).await?;
        let stored = stored.into_iter().filter(|model| model.dimensions == EMBEDDING_DIMENSIONS);
        let stored: Vec<StoredModel> = stored.collect();
        Ok(embed_query(embedder, &search.text, search.mode, &stored).await)
    }
}

#[async_trait]
impl DocumentStore for PostgresStore {
    fn source_name(&self) -> &SourceName {
        &self.name
    }

    async fn projects(&self) -> Result<Vec<Project>, SourceError> {
        match self.rows(DIALECT.projects()).await {
            // Records of such a database are searched, and it can have no project.
            Err(SourceError::Store(StoreError::Postgres(PostgresError::NoPgvector { .. }))) => Ok(Vec::new()),
            projects => projects,
        }
    }

    async fn project(&self, named: &ProjectRef) -> Result<Option<Project>, SourceError> {
        Ok(self.rows(DIALECT.project(named)).await?.pop())
    }

    async fn create_project(&self, new: &NewProject) -> Result<Option<Project>, SourceError> {
        let new = new.clone();
        self.write_documents(move |transaction| {
            Box::pin(async move { project::create(transaction, &new).await })
        })
        .await
    }

    async fn change_project(&self, id: Uuid, change: &ProjectChange) -> Result<Option<Project>, SourceError> {
        let change = change.clone();
        self.write_documents(move |transaction| {
            Box::pin(async move { project::change(transaction, id, &change).await })
        })
        .await
    }

    async fn commit(
        &self,
        project: Uuid,
        changes: Vec<DocumentChange>,
    ) -> Result<Option<CommitSummary>, SourceError> {
        let summary = self.write_documents(move |transaction| {
            Box::pin(async move { commit::commit(transaction, project, changes).await })
        });
        let summary = summary.await?;
        // The changes of the words of large documents were appended.
        warn_unmerged(self.merge_terms().await);
        Ok(summary)
    }

    async fn documents(&self, project: Uuid, list: &DocumentList) -> Result<Vec<Document>, SourceError> {
        self.rows(DIALECT.documents(project, list)).await
    }

    async fn document(&self, project: Uuid, named: &DocumentRef) -> Result<Option<Document>, SourceError> {
        Ok(self.rows(DIALECT.document(project, named)).await?.pop())
    }

    async fn text(&self, project: Uuid, document: Uuid) -> Result<Option<String>, SourceError> {
        self.read_documents(move |tables| read::document_text(tables, project, document)).await
    }

    async fn chunks(
        &self,
        project: Uuid,
        document: Uuid,
        numbers: Range<u32>,
    ) -> Result<Vec<DocumentChunk>, SourceError> {
        self.read_documents(move |tables| read::chunks(tables, project, document, &numbers)).await
    }

    async fn passages(&self, project: Uuid, chunks: &[Uuid]) -> Result<Vec<Passage>, SourceError> {
        let chunks = chunks.to_vec();
        self.read_documents(move |tables| read::passages(tables, project, &chunks)).await
    }

    async fn categories(&self, project: Uuid) -> Result<Vec<CategoryCount>, SourceError> {
        self.rows(DIALECT.categories(project)).await
    }

    async fn search(
        &self,
        project: &Project,
        search: &DocumentSearch,
        stages: &StageSender,
    ) -> Result<Candidates, SourceError> {
        let (project, wanted) = (project.clone(), search.clone());
        search_embedded(self.meaning_of(search), stages, |vector| async move {
            let found = with_memory(|granted| {
                let (project, wanted, vector) = (project.clone(), wanted.clone(), vector.clone());
                read_tables(&self.pool, self.deadline, move |tables, interrupt| {
                    Ok(MeasuredRead::new(granted, |allowance| {
                        let bounds = ReadBounds { interrupt, allowance };
                        search::search(tables, &project, &wanted, vector.as_ref(), bounds)
                    }))
                })
            });
            self.check_documents().await?;
            Ok(found.await?.0)
        })
        .await
    }

    async fn vectors_identity(&self) -> Result<Option<String>, SourceError> {
        if self.embedder.is_none() {
            return Ok(None);
        }
        // Each build raises the versions of projects, which keys of cached answers have.
        let models = self.read_documents(StoredModel::read_searched).await?;
        Ok(models.last().map(|model| format!("{} {}", model.id, model.name)))
    }

    async fn remember_search(&self, project: Uuid, search: &NewSearch) -> Result<(), SourceError> {
        let search = search.clone();
        self.write_documents(move |transaction| {
            Box::pin(async move { history::remember(transaction, project, &search).await })
        })
        .await
    }

    async fn set_feedback(
        &self,
        search: Uuid,
        caller: Option<&str>,
        feedback: Option<Feedback>,
    ) -> Result<bool, SourceError> {
        let caller = caller.map(str::to_owned);
        self.write_documents(move |transaction| {
            Box::pin(async move {
                history::set_feedback(transaction.client(), search, caller.as_deref(), feedback).await
            })
        })
        .await
    }

    async fn history(&self, project: Uuid, limit: usize) -> Result<Vec<SearchRecord>, SourceError> {
        self.read_documents(move |tables| history::searches(tables, project, limit)).await
    }

    async fn search_groups(
        &self,
        project: Uuid,
        by: SearchGrouping,
    ) -> Result<Vec<SearchGroup>, SourceError> {
        self.read_documents(move |tables| history::grouped_searches(tables, project, by)).await
    }
}

impl PostgresStore {
    /// Removes a project with its documents, chunks, records, import and history. Returns false if there is none.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub async fn delete_project(&self, id: Uuid) -> Result<bool, SourceError> {
        self.write_documents(move |transaction| {
            Box::pin(async move { project::remove_project_rows(transaction, id).await })
        })
        .await
    }

    /// Deletes the searches that are older than their projects keep them. Returns their number.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub async fn delete_expired_searches(&self) -> Result<u64, SourceError> {
        self.write_documents(move |transaction| {
            Box::pin(async move { history::delete_expired(transaction.client()).await })
        })
        .await
    }
}
