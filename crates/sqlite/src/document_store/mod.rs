//! The embedded store as a store of documents.
//!
//! * `commit`: writes projects and documents
//! * `copy`: projects that are copied between stores
//! * `retention`: deletion of old searches

mod commit;
mod copy;
mod retention;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_core::handle::SourceName;
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_source::contract::StoreError;
use fetchwell_source::documents::{
    Candidates, CategoryCount, CommitSummary, Document, DocumentChange, DocumentChunk, DocumentList,
    DocumentQuery, DocumentRef, DocumentSearch, DocumentStore, Feedback, NewProject, NewSearch, Passage,
    Project, ProjectChange, ProjectRef, SearchGroup, SearchGrouping, SearchRecord, StageSender, Uuid,
    by_words_only, search_embedded,
};
use fetchwell_source::{SearchQuery, SearchText, SourceError};
use rusqlite::Connection;
use tokio::task::spawn_blocking;

pub(crate) use self::copy::copied_project;
pub use self::copy::put_copied_project;
pub use self::retention::delete_expired_searches;
use super::blocking::{ReadLength, spawn_read};
use super::documents::{self, DIALECT, chunks_of, rows};
use super::history_queue::{QueuePlace, check_writable};
use super::meaning::{SearchMeaning, compared};
use super::{Inner, SqliteStore};

/// Maximum time that queued searches wait for other writers.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time that feedback waits for other writers.
const FEEDBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes the searches that wait to be remembered.
fn write_history(inner: &Inner) {
    inner.history.write(|queued| {
        commit::write(&inner.database, HISTORY_TIMEOUT, |sqlite| {
            queued.iter().try_for_each(|(project, search)| documents::add_search(sqlite, *project, search))
        })
    });
}

impl SqliteStore {
    /// Embeds the query of a search, if a model is configured.
    pub(crate) async fn meaning_of(&self, query: &SearchQuery) -> SearchMeaning {
        match &self.meaning {
            Some(meaning) => meaning.for_search(query).await,
            None => SearchMeaning::default(),
        }
    }

    /// Runs a read of documents on a blocking thread.
    async fn read_documents<Answer: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, rusqlite::Error> + Send + 'static,
    ) -> Result<Answer, SourceError> {
        self.blocking(move |inner, _| Ok(inner.database.read(read)?)).await
    }

    /// Returns the rows of a query.
    async fn rows<Item: Send + 'static>(&self, query: DocumentQuery<Item>) -> Result<Vec<Item>, SourceError> {
        self.read_documents(move |sqlite| rows(sqlite, &query)).await
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
impl DocumentStore for SqliteStore {
    fn source_name(&self) -> &SourceName {
        &self.name
    }

    async fn projects(&self) -> Result<Vec<Project>, SourceError> {
        self.rows(DIALECT.projects()).await
    }

    async fn project(&self, named: &ProjectRef) -> Result<Option<Project>, SourceError> {
        Ok(self.rows(DIALECT.project(named)).await?.pop())
    }

    async fn change_project(
        &self,
        project: Uuid,
        change: &ProjectChange,
    ) -> Result<Option<Project>, SourceError> {
        let change = change.clone();
        self.writing(move |inner| {
            write_history(inner);
            commit::change_project(&inner.database, project, &change)
        })
        .await
    }

    async fn create_project(&self, new: &NewProject) -> Result<Option<Project>, SourceError> {
        let new = new.clone();
        self.writing(move |inner| commit::create_project(&inner.database, &new)).await
    }

    async fn commit(
        &self,
        project: Uuid,
        changes: Vec<DocumentChange>,
    ) -> Result<Option<CommitSummary>, SourceError> {
        self.writing(move |inner| commit::commit(&inner.database, project, changes)).await
    }

    async fn documents(&self, project: Uuid, list: &DocumentList) -> Result<Vec<Document>, SourceError> {
        self.rows(DIALECT.documents(project, list)).await
    }

    async fn document(&self, project: Uuid, named: &DocumentRef) -> Result<Option<Document>, SourceError> {
        Ok(self.rows(DIALECT.document(project, named)).await?.pop())
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
        self.rows(DIALECT.categories(project)).await
    }

    async fn search(
        &self,
        project: &Project,
        search: &DocumentSearch,
        stages: &StageSender,
    ) -> Result<Candidates, SourceError> {
        let query = search.ranking_query(project);
        // The model gets the whole question.
        let whole = SearchQuery { text: SearchText::plain(&search.text), ..query.clone() };
        let embedded = async { Ok(self.meaning_of(&whole).await) };
        let (id, search) = (project.id, search.clone());
        search_embedded(embedded, stages, |vector| async move {
            let read = move |inner: &Inner, bounds: ReadBounds<'_>| {
                let database = &inner.database;
                // The version is read first: what is committed meanwhile belongs to a later one.
                let known = database.read(|sqlite| documents::project(sqlite, &ProjectRef::Id(id)))?;
                let corpus_version = known.map_or(0, |project| project.corpus_version);
                let nothing = Candidates { corpus_version, ..Candidates::default() };
                if !search.has_documents(&database.read(|sqlite| rows(sqlite, &DIALECT.categories(id)))?) {
                    return Ok(nothing);
                }
                let meaning = compared(vector.as_ref(), query.mode);
                let ranked = inner.searching.ranked_records(database, &query, meaning, bounds.allowance)?;
                let chunks =
                    database.read(|sqlite| chunks_of(sqlite, &ranked, search.depth, bounds.allowance))?;
                let by_words = ranked.problems.iter().map(|problem| by_words_only(problem));
                Ok(Candidates { chunks, problems: by_words.chain(ranked.notes).collect(), ..nothing })
            };
            Ok(self.reading(ReadLength::Any, read).await?.0)
        })
        .await
    }

    async fn vectors_identity(&self) -> Result<Option<String>, SourceError> {
        let Some(meaning) = self.meaning.clone() else { return Ok(None) };
        // Vectors that cannot be read change nothing: the search itself says so.
        Ok(spawn_read(move || meaning.vectors_identity()).await.unwrap_or_default())
    }

    async fn remember_search(&self, project: Uuid, search: &NewSearch) -> Result<(), SourceError> {
        self.writing(|inner| check_writable(&inner.database)).await?;
        match self.inner.history.push(project, search.clone()) {
            QueuePlace::First => {
                let inner = Arc::clone(&self.inner);
                // The answer to the search does not wait for it.
                drop(spawn_blocking(move || write_history(&inner)));
                Ok(())
            }
            QueuePlace::Behind => Ok(()),
            QueuePlace::Full => Err(SourceError::Busy),
        }
    }

    async fn set_feedback(
        &self,
        search: Uuid,
        caller: Option<&str>,
        feedback: Option<Feedback>,
    ) -> Result<bool, SourceError> {
        let caller = caller.map(str::to_owned);
        self.writing(move |inner| {
            write_history(inner);
            commit::write(&inner.database, FEEDBACK_TIMEOUT, |sqlite| {
                documents::set_feedback(sqlite, search, caller.as_deref(), feedback)
            })
        })
        .await
    }

    async fn history(&self, project: Uuid, limit: usize) -> Result<Vec<SearchRecord>, SourceError> {
        self.writing(|inner| {
            write_history(inner);
            Ok(())
        })
        .await?;
        self.read_documents(move |sqlite| documents::searches(sqlite, project, limit)).await
    }

    async fn search_groups(
        &self,
        project: Uuid,
        by: SearchGrouping,
    ) -> Result<Vec<SearchGroup>, SourceError> {
        self.writing(|inner| {
            write_history(inner);
            Ok(())
        })
        .await?;
        self.read_documents(move |sqlite| documents::grouped_searches(sqlite, project, by)).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::database::Database;
    use fetchwell_conformance::documents::{self as conformance, TestedStore};
    use fetchwell_core::handle::RecordScope;

    #[async_trait]
    impl TestedStore for SqliteStore {
        async fn remove_project(&self, project: Uuid) -> bool {
            let Some(project) = self.project(&ProjectRef::Id(project)).await.unwrap() else { return false };
            let connection = project.slug.connection().clone();
            let scope = RecordScope { connection, stream: None, record: None };
            crate::removal::remove_records(self.inner.database.path(), &scope).await.unwrap();
            true
        }
    }

    fn new_store(folder: &Path) -> SqliteStore {
        let path = folder.join("store.db");
        drop(Database::open_or_create(&path).unwrap());
        SqliteStore::open("store".parse().unwrap(), &path).unwrap()
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
        let project = conformance::project(&store, "one").await;
        let text = "# Ä\r\n\r\nOne two three four five six seven 😀.\r\n".repeat(100);
        conformance::put(&store, &project, "a.md", &text).await;
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
        let project = conformance::project(&store, "one").await;
        let sqlite = store.inner.database.writer().unwrap();
        let remember = async || {
            store.remember_search(project.id, &conformance::new_search("q")).await.unwrap();
            store.history(project.id, 10).await.unwrap().len()
        };
        assert_eq!((remember().await, remember().await), (1, 2));
        let age = "UPDATE search_history SET created_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-91 days')";
        sqlite.execute(age, ()).unwrap();
        assert!(store.history(project.id, 10).await.unwrap().is_empty(), "old searches are not shown");
        assert_eq!(remember().await, 1);
        sqlite.execute(age, ()).unwrap();
        let path = folder.path().join("store.db");
        assert_eq!(
            (delete_expired_searches(&path).unwrap(), delete_expired_searches(&path).unwrap()),
            (1, 0)
        );
        assert_eq!(remember().await, 1);
        sqlite.execute("UPDATE projects SET settings = '{\"history_days\": 100}'", ()).unwrap();
        sqlite.execute(age, ()).unwrap();
        assert_eq!(remember().await, 2);
    }

    #[tokio::test]
    async fn a_locked_store_delays_no_search() {
        let folder = tempfile::tempdir().unwrap();
        let store = new_store(folder.path());
        let project = conformance::project(&store, "one").await;
        let searches: Vec<NewSearch> =
            (0..70).map(|number| conformance::new_search(&format!("q{number}"))).collect();
        let sqlite = store.inner.database.writer().unwrap();
        sqlite.execute_batch("BEGIN IMMEDIATE").unwrap();
        for (number, search) in searches.iter().enumerate() {
            // The first is taken to be written, and 64 wait behind it.
            let queued = store.remember_search(project.id, search).await;
            assert!(queued.is_ok() || number >= 64, "{number}");
        }
        assert!(store.remember_search(project.id, &conformance::new_search("one more")).await.is_err());
        sqlite.execute_batch("ROLLBACK").unwrap();
        let last = searches.get(60).unwrap();
        assert!(store.set_feedback(last.id, None, Some(Feedback::Helpful)).await.unwrap());
        let history = store.history(project.id, 100).await.unwrap();
        assert!(history.len() >= 64, "{}", history.len());
        assert_eq!(history.iter().filter(|search| search.feedback.is_some()).count(), 1);
    }

    #[tokio::test]
    async fn a_changed_project_keeps_its_ids() {
        let folder = tempfile::tempdir().unwrap();
        let store = new_store(folder.path());
        let before = conformance::project(&store, "one").await;
        store.remember_search(before.id, &conformance::new_search("q")).await.unwrap();
        assert_eq!(store.history(before.id, 10).await.unwrap().len(), 1);
        let change = ProjectChange { name: Some("Two".parse().unwrap()), ..ProjectChange::default() };
        let named = store.change_project(before.id, &change).await.unwrap().unwrap();
        assert_eq!((named.id, &named.slug, named.name.as_str()), (before.id, &before.slug, "Two"));
        assert_eq!((named.corpus_version, named.settings.kept_days()), (before.corpus_version + 1, 7));
        let change = ProjectChange { history_days: Some(0), ..ProjectChange::default() };
        let quiet = store.change_project(before.id, &change).await.unwrap().unwrap();
        assert_eq!((quiet.name.as_str(), quiet.settings.kept_days()), ("Two", 0));
        store.remember_search(before.id, &conformance::new_search("q")).await.unwrap();
        let longer = ProjectChange { history_days: Some(9), ..ProjectChange::default() };
        store.change_project(before.id, &longer).await.unwrap().unwrap();
        assert!(store.history(before.id, 10).await.unwrap().is_empty(), "nothing was kept");
        let none = store.change_project(Uuid::random().unwrap(), &change).await.unwrap();
        assert_eq!(none, None);
    }

    #[tokio::test]
    async fn a_store_without_projects_has_no_tables_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let store = new_store(folder.path());
        assert!(store.projects().await.unwrap().is_empty());
        assert_eq!(store.project(&"a".parse().unwrap()).await.unwrap(), None);
        let id = Uuid::random().unwrap();
        assert_eq!(store.commit(id, Vec::new()).await.unwrap(), None);
        assert!(!store.set_feedback(id, None, None).await.unwrap());
        assert!(!store.inner.database.read(documents::has_tables).unwrap());
    }
}
