//! Documents for search: projects, documents, chunks that tile their text, and the history of searches.
//!
//! [`DocumentStore`] is the interface of every store that has projects. A project is a connection of its store, and its
//! documents are the records of the connection's stream `documents`, so that all reads of a [`Source`](super::Source) work
//! on them.
//!
//! * `slug`, `uuid`, `category`: the names of projects, identifiers, categories
//! * `project`, `document`, `history`: the rows of the contract as values, `search_groups`: the history in groups
//! * `record`: documents as records, `tiles`: the chunks of a text
//! * `search`: searches for chunks, `stages`: their stages as events
//! * `queries`: what every store asks of its tables of projects
//! * `copy`: a project to be copied into another store
//!
//! **Invariant:** the chunks of a document, in their order, are its text, byte for byte.

mod category;
mod copy;
pub mod document;
mod history;
mod project;
mod queries;
mod record;
pub mod search;
mod search_groups;
mod slug;
mod stages;
pub mod tiles;
pub mod uuid;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_core::handle::SourceName;
use fetchwell_core::record::Unavailable;

pub use category::{Category, InvalidCategory};
pub use copy::{ChunkIds, CopiedDocument, ProjectCopy};
pub use document::{
    CategoryCount, ChunkMetadata, DOCUMENTS_STREAM, Document, DocumentChange, DocumentChunk, DocumentPath,
    InvalidDocumentPath, KnownDocument, NewDocument, TEXT_FIELD, bounded_title, content_hash,
};
pub use history::{Feedback, InvalidFeedback, NewSearch, SearchRecord, vector_bytes};
pub use project::{InvalidProjectName, NewProject, Project, ProjectChange, ProjectName, ProjectSettings};
pub use queries::{
    Dialect, DocumentQuery, DocumentRow, QueryValue, by_words_only, document_of, search_embedded,
};
pub use record::incoming_documents;
pub(crate) use record::is_document;
pub use search::{Candidate, Candidates, DocumentSearch, EmbeddingStage, MAX_CANDIDATES, whole_millis};
pub use search_groups::{
    CountedSearches, GroupValue, InvalidGrouping, Latencies, SearchGroup, SearchGrouping, search_groups,
};
pub use slug::{InvalidSlug, ProjectRef, ProjectSlug};
pub use stages::{CacheStage, RerankStage, ResultsStage, SearchStage, StageSender};
pub use tiles::{Tile, tiles};
pub use uuid::{InvalidUuid, Uuid};

use super::SourceError;

/// Kind of the imports into projects, and the key of the connector of projects.
pub const DOCS_KIND: &str = "docs";

/// A document as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentRef {
    /// Path of the document in its project.
    Path(DocumentPath),
    /// Id of the document.
    Id(Uuid),
}

/// A page of a project's documents, in the order of their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentList {
    /// Category of the documents; `None` lists all.
    pub category: Option<Category>,
    /// Path behind which the page begins; `None` begins with the first.
    pub after: Option<DocumentPath>,
    /// Maximum number of documents.
    pub limit: usize,
}

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitSummary {
    /// Documents that are new.
    pub added: u64,
    /// Documents that changed.
    pub changed: u64,
    /// Documents that were deleted.
    pub deleted: u64,
    /// Version of the corpus afterwards. It rises by one if something changed.
    pub corpus_version: i64,
}

/// The stores of projects in a source.
#[derive(Debug, Clone, Default)]
pub struct DocumentStores {
    /// Stores that are open.
    pub stores: Vec<Arc<dyn DocumentStore>>,
    /// Sources that may have a store and do not answer.
    pub unavailable: Vec<Unavailable>,
}

/// A store that has projects. A project that does not exist is `None`, or has nothing.
#[async_trait]
pub trait DocumentStore: Send + Sync + fmt::Debug {
    /// Returns the name of the source that has the documents as records.
    fn source_name(&self) -> &SourceName;

    /// Returns all projects in the order of their slugs.
    async fn projects(&self) -> Result<Vec<Project>, SourceError>;

    /// Returns a project.
    async fn project(&self, named: &ProjectRef) -> Result<Option<Project>, SourceError>;

    /// Creates a project. Returns `None` if its slug is the id of another project or connection.
    async fn create_project(&self, new: &NewProject) -> Result<Option<Project>, SourceError>;

    /// Changes a project and raises its version. Its id and its slug stay. Returns `None` if there is no such project.
    async fn change_project(
        &self,
        project: Uuid,
        change: &ProjectChange,
    ) -> Result<Option<Project>, SourceError>;

    /// Writes changes of documents in one transaction. Returns `None` if there is no such project. Imports write batches of
    /// their own, which also have the states of files.
    async fn commit(
        &self,
        project: Uuid,
        changes: Vec<DocumentChange>,
    ) -> Result<Option<CommitSummary>, SourceError>;

    /// Returns a page of documents.
    async fn documents(&self, project: Uuid, list: &DocumentList) -> Result<Vec<Document>, SourceError>;

    /// Returns a document.
    async fn document(&self, project: Uuid, named: &DocumentRef) -> Result<Option<Document>, SourceError>;

    /// Returns the whole text of a document.
    async fn text(&self, project: Uuid, document: Uuid) -> Result<Option<String>, SourceError>;

    /// Returns the chunks of a document with numbers in a range.
    async fn chunks(
        &self,
        project: Uuid,
        document: Uuid,
        numbers: Range<u32>,
    ) -> Result<Vec<DocumentChunk>, SourceError>;

    /// Returns chunks with their documents, in the given order. Chunks that do not exist are left out.
    async fn passages(&self, project: Uuid, chunks: &[Uuid]) -> Result<Vec<Passage>, SourceError>;

    /// Returns the number of documents of each category that has any.
    async fn categories(&self, project: Uuid) -> Result<Vec<CategoryCount>, SourceError>;

    /// Searches for chunks. Sends the stage of the embedding as soon as the query is embedded.
    async fn search(
        &self,
        project: &Project,
        search: &DocumentSearch,
        stages: &StageSender,
    ) -> Result<Candidates, SourceError>;

    /// Returns the identity of the vectors that searches are compared with. It changes with the model and with each build.
    async fn vectors_identity(&self) -> Result<Option<String>, SourceError> {
        Ok(None)
    }

    /// Queues a search to be remembered. It is written before later feedback and reads of the history.
    async fn remember_search(&self, project: Uuid, search: &NewSearch) -> Result<(), SourceError>;

    /// Sets or withdraws the feedback on a search. Returns false if there is no such search, or if it is of another caller.
    /// A search that was remembered without a caller takes the feedback of every caller.
    async fn set_feedback(
        &self,
        search: Uuid,
        caller: Option<&str>,
        feedback: Option<Feedback>,
    ) -> Result<bool, SourceError>;

    /// Returns the last searches of a project, the newest first.
    async fn history(&self, project: Uuid, limit: usize) -> Result<Vec<SearchRecord>, SourceError>;

    /// Returns the searches of a project that are kept, in groups.
    async fn search_groups(&self, project: Uuid, by: SearchGrouping)
    -> Result<Vec<SearchGroup>, SourceError>;
}

/// A chunk with its document.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// Chunk of the document.
    pub chunk: DocumentChunk,
    /// Document of the chunk.
    pub document: Document,
}
