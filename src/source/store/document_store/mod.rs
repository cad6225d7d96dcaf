//! The embedded store as a store of documents.
//!
//! * `commit`: writes projects and documents

mod commit;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::Connection;

use super::blocking::spawn_read;
use super::documents::{self, chunks_of};
use super::meaning::SearchMeaning;
use super::read::interrupt::ReadBounds;
use super::removal::{RemovalError, remove_records};
use super::{Inner, Store, StoreError};
use crate::handle::{RecordScope, SourceName};
use crate::record::Scalar;
use crate::source::documents::{
    Candidates, CategoryCount, Committed, DOCUMENTS_STREAM, Document, DocumentChange, DocumentChunk,
    DocumentList, DocumentRef, DocumentSearch, DocumentStore, EMBEDDING_DIMENSIONS, EmbeddingStage, Feedback,
    NewProject, NewSearch, Passage, Project, ProjectRef, SearchRecord, Uuid, WrongDimensions, whole_millis,
};
use crate::source::{Condition, Filter, SearchQuery, SearchText, SourceError, Test};

/// Maximum time that a search waits to be remembered. During a large import, some are not.
const HISTORY_PATIENCE: Duration = Duration::from_millis(250);

/// Maximum time that feedback waits for other writers.
const FEEDBACK_PATIENCE: Duration = Duration::from_secs(5);

/// Returns the query by which the records of a project are ranked.
fn ranking_query(project: &Project, search: &DocumentSearch) -> SearchQuery {
    let category = search.category.as_ref().map(|category| Condition {
        field: "category".to_owned(),
        test: Test::Equal(Scalar::Text(category.to_string())),
    });
    SearchQuery {
        text: SearchText::plain(&search.topic),
        connection: Some(project.slug.connection().clone()),
        streams: DOCUMENTS_STREAM.parse().into_iter().collect(),
        filter: Filter(category.into_iter().collect()),
        mode: search.mode,
        ..SearchQuery::new("", search.depth)
    }
}

impl Store {
    /// Runs a read of documents on a blocking thread.
    async fn read_documents<Answer: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, rusqlite::Error> + Send + 'static,
    ) -> Result<Answer, SourceError> {
        self.blocking(move |inner, _| Ok(inner.database.read(read)?)).await
    }

    /// Runs a write of documents on a blocking thread.
    async fn writing<Answer: Send + 'static>(
        &self,
        write: impl FnOnce(&Inner) -> Result<Answer, StoreError> + Send + 'static,
    ) -> Result<Answer, SourceError> {
        let inner = Arc::clone(&self.inner);
        Ok(spawn_read(move || write(&inner)).await?)
    }
}

#[async_trait]
impl DocumentStore for Store {
    fn source_name(&self) -> &SourceName {
        &self.name
    }

    async fn projects(&self) -> Result<Vec<Project>, SourceError> {
        self.read_documents(documents::projects).await
    }

    async fn project(&self, named: &ProjectRef) -> Result<Option<Project>, SourceError> {
        let named = named.clone();
        self.read_documents(move |sqlite| documents::project(sqlite, &named)).await
    }

    async fn create_project(&self, new: &NewProject) -> Result<Option<Project>, SourceError> {
        let new = new.clone();
        self.writing(move |inner| commit::create_project(&inner.database, &new)).await
    }

    async fn remove_project(&self, project: Uuid) -> Result<bool, SourceError> {
        let Some(project) = self.project(&ProjectRef::Id(project)).await? else { return Ok(false) };
        let connection = project.slug.connection().clone();
        let scope = RecordScope { connection, stream: None, record: None };
        match remove_records(self.inner.database.path(), &scope).await {
            Ok(_removed) => Ok(true),
            Err(RemovalError::Scope(error)) => match error {
                super::ScopeError::Store(error) => Err(error.into()),
                _missing => Ok(false),
            },
            Err(error @ RemovalError::Vectors(_)) => {
                Err(SourceError::Unreachable { problem: error.to_string() })
            }
        }
    }

    async fn commit(
        &self,
        project: Uuid,
        changes: Vec<DocumentChange>,
    ) -> Result<Option<Committed>, SourceError> {
        self.writing(move |inner| commit::commit(&inner.database, project, changes)).await
    }

    async fn documents(&self, project: Uuid, list: &DocumentList) -> Result<Vec<Document>, SourceError> {
        let list = list.clone();
        self.read_documents(move |sqlite| documents::documents(sqlite, project, &list)).await
    }

    async fn document(&self, project: Uuid, named: &DocumentRef) -> Result<Option<Document>, SourceError> {
        let named = named.clone();
        self.read_documents(move |sqlite| documents::document(sqlite, project, &named)).await
    }

    async fn text(&self, project: Uuid, document: Uuid) -> Result<Option<String>, SourceError> {
        self.read_documents(move |sqlite| documents::document_text(sqlite, project, document)).await
    }

    async fn chunks(
        &self,
        project: Uuid,
        document: Uuid,
        numbers: Range<u32>,
    ) -> Result<Vec<DocumentChunk>, SourceError> {
        self.read_documents(move |sqlite| documents::chunks(sqlite, project, document, &numbers)).await
    }

    async fn passages(&self, project: Uuid, chunks: &[Uuid]) -> Result<Vec<Passage>, SourceError> {
        let chunks = chunks.to_vec();
        self.read_documents(move |sqlite| documents::passages(sqlite, project, &chunks)).await
    }

    async fn categories(&self, project: Uuid) -> Result<Vec<CategoryCount>, SourceError> {
        self.read_documents(move |sqlite| documents::categories(sqlite, project)).await
    }

    async fn search(&self, project: &Project, search: &DocumentSearch) -> Result<Candidates, SourceError> {
        let query = ranking_query(project, search);
        let started = Instant::now();
        // The model gets the whole question.
        let whole = SearchQuery { text: SearchText::plain(&search.text), ..query.clone() };
        let mut meaning = match &self.meaning {
            Some(meaning) => meaning.for_search(&whole).await,
            None => SearchMeaning::default(),
        };
        let dimensions = meaning.vector().map(|vector| vector.numbers.len());
        if let Some(found) = dimensions.filter(|found| *found != EMBEDDING_DIMENSIONS) {
            meaning = SearchMeaning::problem(&WrongDimensions(found));
        }
        let embedding = meaning.vector().map(|vector| EmbeddingStage {
            model: vector.model.to_string(),
            latency_ms: whole_millis(started.elapsed()),
        });
        let problem = meaning.problem.take();
        let (id, depth, category) = (project.id, search.depth, search.category.clone());
        let read = move |inner: &Inner, bounds: ReadBounds<'_>| {
            let database = &inner.database;
            // The version is read first: what is committed meanwhile belongs to a later one.
            let known = database.read(|sqlite| documents::project(sqlite, &ProjectRef::Id(id)))?;
            let corpus_version = known.map_or(0, |project| project.corpus_version);
            let nothing = Candidates { corpus_version, ..Candidates::default() };
            // A stream without records has no field to filter by.
            let categories = database.read(|sqlite| documents::categories(sqlite, id))?;
            let is_searched =
                |known: &CategoryCount| category.as_ref().is_none_or(|only| known.category == *only);
            if !categories.iter().any(is_searched) {
                return Ok(nothing);
            }
            let ranked =
                inner.searching.ranked_records(database, &query, meaning.query(), bounds.allowance)?;
            let chunks = database.read(|sqlite| chunks_of(sqlite, &ranked, depth, bounds.allowance))?;
            Ok(Candidates { chunks, problems: ranked.problems, ..nothing })
        };
        let mut candidates = self.reading(read).await?.0;
        candidates.problems.extend(problem);
        candidates.embedding = embedding;
        Ok(candidates)
    }

    async fn remember_search(&self, project: Uuid, search: &NewSearch) -> Result<(), SourceError> {
        let search = search.clone();
        self.writing(move |inner| {
            commit::write(&inner.database, HISTORY_PATIENCE, |sqlite| {
                documents::add_search(sqlite, project, &search)
            })
        })
        .await
    }

    async fn set_feedback(&self, search: Uuid, feedback: Option<Feedback>) -> Result<bool, SourceError> {
        self.writing(move |inner| {
            commit::write(&inner.database, FEEDBACK_PATIENCE, |sqlite| {
                documents::set_feedback(sqlite, search, feedback)
            })
        })
        .await
    }

    async fn history(&self, project: Uuid, limit: usize) -> Result<Vec<SearchRecord>, SourceError> {
        self.read_documents(move |sqlite| documents::searches(sqlite, project, limit)).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source::documents::conformance;
    use crate::source::store::database::Database;

    fn new_store(folder: &Path) -> Store {
        let path = folder.join("store.db");
        drop(Database::open_or_create(&path).unwrap());
        Store::open("store".parse().unwrap(), &path).unwrap()
    }

    #[tokio::test]
    async fn the_embedded_store_conforms() {
        let folder = tempfile::tempdir().unwrap();
        let store = new_store(folder.path());
        conformance::check(&store).await;
    }

    #[tokio::test]
    async fn a_chunk_belongs_to_the_project_of_its_document() {
        let folder = tempfile::tempdir().unwrap();
        let store = new_store(folder.path());
        let one = conformance::project(&store, "one").await;
        let other = conformance::project(&store, "other").await;
        conformance::put(&store, &one, "a.md", "text").await;
        let sqlite = store.inner.database.writer().unwrap();
        let moved = sqlite.execute("UPDATE chunk_ranges SET project_id = ?1", [other.id.to_string()]);
        assert!(moved.unwrap_err().to_string().contains("FOREIGN KEY"));
        for (column, value) in
            [("path", "x".repeat(1_001)), ("category", "x".repeat(51)), ("metadata", "{".into())]
        {
            let sql = format!("UPDATE documents SET {column} = ?1");
            assert!(sqlite.execute(&sql, [value]).unwrap_err().to_string().contains("CHECK"), "{column}");
        }
    }

    #[tokio::test]
    async fn the_view_of_chunks_has_their_content() {
        let folder = tempfile::tempdir().unwrap();
        let store = new_store(folder.path());
        let of = conformance::project(&store, "one").await;
        let text = "# Ä\r\n\r\nOne two three four five six seven 😀.\r\n".repeat(100);
        conformance::put(&store, &of, "a.md", &text).await;
        let read = store.inner.database.read(|sqlite| {
            let sql = "SELECT content FROM chunks ORDER BY chunk_index";
            sqlite.prepare(sql)?.query_map((), |row| row.get(0))?.collect::<Result<Vec<String>, _>>()
        });
        let contents = read.unwrap();
        assert!(contents.len() > 3 && contents.concat() == text, "{} chunks", contents.len());
    }

    #[tokio::test]
    async fn old_searches_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let store = new_store(folder.path());
        let of = conformance::project(&store, "one").await;
        let sqlite = store.inner.database.writer().unwrap();
        let remember = async || {
            store.remember_search(of.id, &conformance::new_search("q")).await.unwrap();
            store.history(of.id, 10).await.unwrap().len()
        };
        assert_eq!((remember().await, remember().await), (1, 2));
        let age = "UPDATE search_history SET created_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-91 days')";
        sqlite.execute(age, ()).unwrap();
        assert_eq!(remember().await, 1);
        sqlite.execute("UPDATE projects SET settings = '{\"history_days\": 100}'", ()).unwrap();
        sqlite.execute(age, ()).unwrap();
        assert_eq!(remember().await, 2);
    }

    #[tokio::test]
    async fn a_store_without_projects_has_no_tables_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let store = new_store(folder.path());
        assert!(store.projects().await.unwrap().is_empty());
        assert_eq!(store.project(&"a".parse().unwrap()).await.unwrap(), None);
        let id = Uuid::random().unwrap();
        assert_eq!(store.commit(id, Vec::new()).await.unwrap(), None);
        assert!(!store.set_feedback(id, None).await.unwrap());
        assert!(!store.inner.database.read(documents::has_tables).unwrap());
    }
}
