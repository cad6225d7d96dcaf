//! One source, or several as a federation.

use std::sync::Arc;

use super::federation::{CircuitReport, Federation};
use super::reranking::Reranking;
use super::{SearchPage, SearchQuery, Source, SourceError};
use crate::callers::CallContext;
use crate::handle::SourceName;

/// The source of a toolbox, with what only a federation has. Clones share the source.
#[derive(Debug, Clone)]
pub struct Sources {
    source: Arc<dyn Source>,
    federation: Option<Federation>,
    reranking: Option<Reranking>,
}

impl Sources {
    /// Reranks the searches of the source.
    #[must_use]
    pub fn reranked_by(self, reranking: Option<Reranking>) -> Self {
        Self { reranking, ..self }
    }

    /// Returns the reranking of searches, if a reranker is configured.
    #[must_use]
    pub fn reranking(&self) -> Option<&Reranking> {
        self.reranking.as_ref()
    }

    /// Searches the source, and reranks the first hits if a reranker is set.
    pub(super) async fn search(
        &self,
        context: &CallContext,
        query: &SearchQuery,
    ) -> Result<SearchPage, SourceError> {
        match &self.reranking {
            None => self.source.search(context, query).await,
            Some(reranking) => reranking.search(&*self.source, context, query).await,
        }
    }

    /// Returns the source, which may be a federation.
    #[must_use]
    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Returns true for a federation. Its own errors name no source.
    #[must_use]
    pub fn is_federation(&self) -> bool {
        self.federation.is_some()
    }

    /// Returns the state of the circuit breaker of each source in a federation, or an empty list for a single source.
    #[must_use]
    pub fn circuits(&self) -> Vec<CircuitReport> {
        self.federation.as_ref().map(Federation::circuits).unwrap_or_default()
    }

    /// Returns the source of a name: a member of the federation, or the single source itself.
    #[must_use]
    pub fn named(&self, name: &SourceName) -> Option<Self> {
        match &self.federation {
            Some(federation) => {
                let member = Self::from(federation.member(name)?);
                Some(member.reranked_by(self.reranking.clone()))
            }
            None => (self.source.name() == name).then(|| self.clone()),
        }
    }

    /// Returns true if both read the same open source.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source)
    }
}

impl From<Arc<dyn Source>> for Sources {
    fn from(source: Arc<dyn Source>) -> Self {
        Self { source, federation: None, reranking: None }
    }
}

impl<Read: Source + 'static> From<Arc<Read>> for Sources {
    fn from(source: Arc<Read>) -> Self {
        Self { source, federation: None, reranking: None }
    }
}

impl<Read: Source + 'static> From<Read> for Sources {
    fn from(source: Read) -> Self {
        Self { source: Arc::new(source), federation: None, reranking: None }
    }
}

impl From<Federation> for Sources {
    fn from(federation: Federation) -> Self {
        Self { source: federation.as_source(), federation: Some(federation), reranking: None }
    }
}
