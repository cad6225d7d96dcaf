//! One source, or several as a federation.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, SourceName};

use super::federation::{CircuitReport, Federation, SingleSource};
use super::reranking::Reranking;
use super::{SearchPage, SearchQuery, Source, SourceError};

/// The source of a toolbox, with what only a federation has. Clones share the source.
#[derive(Debug, Clone)]
pub struct Sources {
    source: Arc<dyn Source>,
    /// Source as it was opened, by which two are compared.
    opened: Arc<dyn Source>,
    federation: Option<Federation>,
    reranking: Option<Reranking>,
    keeps_search_history: bool,
}

impl Sources {
    /// Creates the sources of a configuration with one source. It also accepts the ids `ID@SOURCE` that were printed while
    /// another source had the same connection. A call with such an id has the deadline `deadline`.
    #[must_use]
    pub fn single(source: Arc<dyn Source>, deadline: Duration) -> Self {
        let single = SingleSource::new(Arc::clone(&source), deadline);
        Self { source: Arc::new(single), ..Self::from(source) }
    }

    /// Reranks the searches of the source.
    #[must_use]
    pub fn reranked_by(self, reranking: Option<Reranking>) -> Self {
        Self { reranking, ..self }
    }

    /// Sets whether searches of documents are remembered in the history of their project.
    #[must_use]
    pub fn with_search_history(self, keeps_search_history: bool) -> Self {
        Self { keeps_search_history, ..self }
    }

    /// Returns true if searches of documents are remembered, as long as their project says.
    #[must_use]
    pub fn keeps_search_history(&self) -> bool {
        self.keeps_search_history
    }

    /// Returns the reranking of searches, if a reranker is configured.
    #[must_use]
    pub fn reranking(&self) -> Option<&Reranking> {
        self.reranking.as_ref()
    }

    /// Searches the source, and reranks the first hits if a reranker is set.
    pub(crate) async fn search(
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

    /// Returns the id under which answers have a connection of one of the sources. Only a federation changes ids.
    pub(crate) async fn printed_connection(&self, source: &SourceName, own: &ConnectionId) -> ConnectionId {
        match &self.federation {
            Some(federation) => federation.printed_connection(source, own).await,
            None => own.clone(),
        }
    }

    /// Returns the name of the source with a printed connection. Returns `None` if a federation does not know it yet.
    pub(crate) fn source_of(&self, connection: Option<&ConnectionId>) -> Option<SourceName> {
        match &self.federation {
            Some(federation) => federation.source_of(connection?),
            None => Some(self.source.name().clone()),
        }
    }

    /// Returns the source of a name: a member of the federation, or the single source itself.
    #[must_use]
    pub fn named(&self, name: &SourceName) -> Option<Self> {
        match &self.federation {
            Some(federation) => {
                let member = Self::from(federation.member(name)?);
                let member = member.reranked_by(self.reranking.clone());
                Some(member.with_search_history(self.keeps_search_history))
            }
            None => (self.source.name() == name).then(|| self.clone()),
        }
    }

    /// Returns true if both read the same open source.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.opened, &other.opened)
    }
}

impl From<Arc<dyn Source>> for Sources {
    fn from(source: Arc<dyn Source>) -> Self {
        let opened = Arc::clone(&source);
        Self { opened, source, federation: None, reranking: None, keeps_search_history: true }
    }
}

impl<Read: Source + 'static> From<Arc<Read>> for Sources {
    fn from(source: Arc<Read>) -> Self {
        Self::from(source as Arc<dyn Source>)
    }
}

impl<Read: Source + 'static> From<Read> for Sources {
    fn from(source: Read) -> Self {
        Self::from(Arc::new(source))
    }
}

impl From<Federation> for Sources {
    fn from(federation: Federation) -> Self {
        Self { federation: Some(federation.clone()), ..Self::from(federation.as_source()) }
    }
}
