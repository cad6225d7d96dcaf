//! The projects that a caller may read.

use std::sync::Arc;

use super::error::DocsError;
use crate::source::documents::{DocumentStore, Feedback, Project, Uuid};
use crate::source::{BoundSource, Reranking, SourceError};

/// The stores of projects in the sources of one caller.
#[derive(Debug, Clone)]
pub struct ReadableProjects {
    stores: Vec<Arc<dyn DocumentStore>>,
    reranking: Option<Reranking>,
}

/// A project with its store.
#[derive(Debug, Clone)]
pub struct FoundProject {
    /// Store of the project.
    pub store: Arc<dyn DocumentStore>,
    /// Project as it was found.
    pub project: Project,
    /// Reranker of searches, if one is configured.
    pub reranking: Option<Reranking>,
}

impl ReadableProjects {
    /// Returns the stores that a source has.
    ///
    /// # Errors
    ///
    /// No source is available.
    pub async fn in_source(source: &BoundSource) -> Result<Self, SourceError> {
        let reranking = source.shared().reranking().cloned();
        Ok(Self { stores: source.document_stores().await?, reranking })
    }

    /// Returns all projects with their stores, in the order of the sources.
    ///
    /// # Errors
    ///
    /// A store cannot be read.
    pub async fn all(&self) -> Result<Vec<FoundProject>, SourceError> {
        let mut found = Vec::new();
        for store in &self.stores {
            let projects = store.projects().await?;
            found.extend(projects.into_iter().map(|project| self.found(store, project)));
        }
        Ok(found)
    }

    /// Returns a project by its slug or id.
    ///
    /// # Errors
    ///
    /// No store has the project, or one cannot be read.
    pub async fn find(&self, named: &str) -> Result<FoundProject, DocsError> {
        if let Ok(reference) = named.parse() {
            for store in &self.stores {
                if let Some(project) = store.project(&reference).await? {
                    return Ok(self.found(store, project));
                }
            }
        }
        let known = self.all().await?.into_iter().map(|found| found.project.slug.to_string()).collect();
        Err(DocsError::ProjectNotFound { named: named.to_owned(), known })
    }

    /// Sets or withdraws the feedback on a search. Returns false if no store has the search.
    ///
    /// # Errors
    ///
    /// A store cannot be written.
    pub async fn set_feedback(&self, search: Uuid, feedback: Option<Feedback>) -> Result<bool, SourceError> {
        for store in &self.stores {
            if store.set_feedback(search, feedback).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn found(&self, store: &Arc<dyn DocumentStore>, project: Project) -> FoundProject {
        FoundProject { store: Arc::clone(store), project, reranking: self.reranking.clone() }
    }
}
