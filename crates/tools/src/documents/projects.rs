//! The projects that a caller may read.
//!
//! Two sources can have a project of one slug. It is then named `SLUG@SOURCE`, like a connection that several sources have.

use std::sync::Arc;

use fetchwell_callers::GrantId;
use fetchwell_core::handle::{ConnectionId, SourceName};
use fetchwell_core::record::Unavailable;
use fetchwell_source::documents::{
    Document, DocumentRef, DocumentStore, DocumentStores, Feedback, Project, ProjectRef, ProjectSlug, Uuid,
};
use fetchwell_source::{BoundSource, ConnectionChoice, RecordReads, Reranking, SourceError};
use fetchwell_telemetry::ReadKind;
use futures_util::future::join_all;

use super::caller_hash::caller_hash;
use super::error::DocsError;

/// The stores of projects in the sources of one caller.
#[derive(Debug, Clone)]
pub struct ReadableProjects {
    source: BoundSource,
    stores: Vec<Arc<dyn DocumentStore>>,
    /// Sources that may have projects and do not answer.
    unavailable: Vec<Unavailable>,
}

/// A project with its store.
#[derive(Debug, Clone)]
pub struct FoundProject {
    /// Store of the project.
    pub store: Arc<dyn DocumentStore>,
    /// Project as it was found.
    pub project: Project,
    /// Connection of the documents in handles: the slug, or `SLUG@SOURCE` if several sources have it.
    pub connection: ConnectionId,
    /// Reranker of searches, if one is configured.
    pub reranking: Option<Reranking>,
    /// False if the server remembers no searches of any project.
    pub keeps_history: bool,
    /// Reports of the call about the documents that it read.
    pub reads: RecordReads,
}

impl FoundProject {
    /// Reports documents that the call read to the audit log.
    pub fn report(&self, kind: ReadKind, documents: impl IntoIterator<Item = Uuid>) {
        let ids = documents.into_iter().map(|id| id.to_string());
        self.reads.documents(kind, self.store.source_name(), &self.connection, ids);
    }

    /// Returns true if a handle with this connection can be of this project.
    #[must_use]
    pub fn has_connection(&self, connection: &ConnectionId) -> bool {
        let slug = &self.project.slug;
        connection == slug.connection() || *connection == qualified(self.store.source_name(), slug)
    }
}

/// A project as a request names it: by its slug or id, with the source if several have it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedProject {
    project: ProjectRef,
    source: Option<SourceName>,
}

impl NamedProject {
    fn parse(text: &str) -> Option<Self> {
        match text.split_once('@') {
            None => Some(Self { project: text.parse().ok()?, source: None }),
            Some((project, source)) => {
                Some(Self { project: project.parse().ok()?, source: Some(source.parse().ok()?) })
            }
        }
    }
}

/// Returns the connection `SLUG@SOURCE`.
fn qualified(source: &SourceName, slug: &ProjectSlug) -> ConnectionId {
    // A slug and the name of a source have no dot segments, and neither has the text of both.
    format!("{slug}@{source}").parse().unwrap_or_else(|_invalid| slug.connection().clone())
}

impl ReadableProjects {
    /// Returns the stores that a source has.
    ///
    /// # Errors
    ///
    /// No source is available.
    pub async fn in_source(source: &BoundSource) -> Result<Self, SourceError> {
        let DocumentStores { stores, unavailable } = source.document_stores().await?;
        Ok(Self { stores, unavailable, source: source.clone() })
    }

    /// Returns the projects of all stores that can be read, in the order of the sources.
    ///
    /// # Errors
    ///
    /// No store can be read.
    pub async fn all(&self) -> Result<Vec<FoundProject>, SourceError> {
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for store in &self.stores {
            match store.projects().await {
                Ok(projects) => {
                    for project in projects {
                        found.push(self.found(store, project).await);
                    }
                }
                Err(error) => failed.push(error),
            }
        }
        match failed.pop() {
            Some(error) if failed.len() + 1 == self.stores.len() => Err(error),
            _ => Ok(found),
        }
    }

    /// Returns an error if a source does not answer, which may have what was not found. `named` is the only source that can.
    fn check_complete(&self, named: Option<&SourceName>) -> Result<(), SourceError> {
        let is_named = |known: &&Unavailable| named.is_none_or(|named| *named == known.source);
        let failed: Vec<Unavailable> = self.unavailable.iter().filter(is_named).cloned().collect();
        if failed.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = failed.iter().map(|failed| format!("`{}`", failed.source)).collect();
        let what =
            format!("it was not found, and a source that may have it is not available: {}", names.join(", "));
        Err(SourceError::AllFailed { what, failed })
    }

    /// Returns a project by its slug or id, or by `SLUG@SOURCE`.
    ///
    /// # Errors
    ///
    /// No store has the project, several have it, or a store that may have it cannot be read.
    pub async fn find(&self, named: &str) -> Result<FoundProject, DocsError> {
        if let Some(NamedProject { project, source }) = NamedProject::parse(named) {
            let is_named = |store: &&Arc<dyn DocumentStore>| {
                source.as_ref().is_none_or(|source| store.source_name() == source)
            };
            let stores = self.stores.iter().filter(is_named);
            let project = &project;
            let reads = stores.map(|store| async move { (store, store.project(project).await) });
            let (mut found, mut failed) = (Vec::new(), None);
            for (store, read) in join_all(reads).await {
                match read {
                    Ok(project) => found.extend(project.map(|project| (store, project))),
                    Err(error) => failed = Some(error),
                }
            }
            if found.len() > 1 {
                return Err(ambiguous(named, &found));
            }
            if let Some((store, project)) = found.pop() {
                return Ok(self.found(store, project).await);
            }
            if let Some(error) = failed {
                return Err(error.into());
            }
            self.check_complete(source.as_ref())?;
        }
        let known = self.all().await?.into_iter().map(|found| found.connection.to_string()).collect();
        Err(DocsError::ProjectNotFound { named: named.to_owned(), known })
    }

    /// Returns a document by its id, with its project. Returns `None` if no project has it.
    ///
    /// # Errors
    ///
    /// A store cannot be read, or several have the document.
    pub async fn find_document(&self, id: Uuid) -> Result<Option<(FoundProject, Document)>, DocsError> {
        let (mut found, mut failed) = (Vec::new(), None);
        for store in &self.stores {
            match document_in(store, id).await {
                Ok(document) => {
                    found.extend(document.map(|(project, document)| (store, project, document)));
                }
                Err(error) => failed = Some(error),
            }
        }
        match found.pop() {
            None => match failed {
                Some(error) => Err(error.into()),
                None => Ok(self.check_complete(None).map(|()| None)?),
            },
            Some((store, project, document)) if found.is_empty() => {
                Ok(Some((self.found(store, project).await, document)))
            }
            Some((store, project, _)) => {
                let others = found.into_iter().map(|(store, project, _)| (store, project));
                let all: Vec<_> = others.chain([(store, project)]).collect();
                Err(ambiguous(&id.to_string(), &all))
            }
        }
    }

    /// Sets or withdraws the feedback on a search of a caller. Returns false if no store has such a search.
    ///
    /// # Errors
    ///
    /// A store cannot be written.
    pub async fn set_feedback(
        &self,
        search: Uuid,
        caller: Option<GrantId>,
        feedback: Option<Feedback>,
    ) -> Result<bool, SourceError> {
        let caller = caller.map(|caller| caller_hash(search, caller));
        let mut failed = None;
        for store in &self.stores {
            match store.set_feedback(search, caller.as_deref(), feedback).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => self.check_complete(None).map(|()| false),
        }
    }

    async fn found(&self, store: &Arc<dyn DocumentStore>, project: Project) -> FoundProject {
        let (source, slug) = (store.source_name(), &project.slug);
        let printed = self.source.printed_connection(source, slug.connection()).await;
        // The names of connections may be known from before the project was created.
        let is_shared = printed == *slug.connection() && self.is_shared(store, slug).await;
        let connection = if is_shared { qualified(source, slug) } else { printed };
        let (sources, reads) = (self.source.shared(), self.source.reads());
        let (reranking, keeps_history) = (sources.reranking().cloned(), sources.keeps_search_history());
        FoundProject { store: Arc::clone(store), project, connection, reranking, keeps_history, reads }
    }

    /// Returns true if another store has a project of this slug.
    async fn is_shared(&self, store: &Arc<dyn DocumentStore>, slug: &ProjectSlug) -> bool {
        let named = ProjectRef::Slug(slug.clone());
        for other in self.stores.iter().filter(|other| other.source_name() != store.source_name()) {
            if matches!(other.project(&named).await, Ok(Some(_))) {
                return true;
            }
        }
        false
    }
}

/// Returns a document of a store by its id, with its project.
async fn document_in(
    store: &Arc<dyn DocumentStore>,
    id: Uuid,
) -> Result<Option<(Project, Document)>, SourceError> {
    for project in store.projects().await? {
        if let Some(document) = store.document(project.id, &DocumentRef::Id(id)).await? {
            return Ok(Some((project, document)));
        }
    }
    Ok(None)
}

/// Returns the error for a name that several stores have.
fn ambiguous(named: &str, found: &[(&Arc<dyn DocumentStore>, Project)]) -> DocsError {
    let choices = found.iter().map(|(store, project)| ConnectionChoice {
        connection_id: qualified(store.source_name(), &project.slug),
        display_name: Some(project.name.clone()),
    });
    DocsError::AmbiguousProject { named: named.to_owned(), choices: choices.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_named_with_or_without_their_source() {
        let parse =
            |text: &str| NamedProject::parse(text).map(|name| (name.project.to_string(), name.source));
        let source = |name: &str| Some(name.parse().unwrap());
        assert_eq!(parse("docs"), Some(("docs".to_owned(), None)));
        assert_eq!(parse("docs@home"), Some(("docs".to_owned(), source("home"))));
        assert_eq!(parse("docs@me@home"), Some(("docs".to_owned(), source("me@home"))));
        let id = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(parse(&format!("{id}@home")), Some((id.to_owned(), source("home"))));
        for bad in ["", "@home", "docs@", "Docs@home", "a/b"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
