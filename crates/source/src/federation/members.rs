//! The members of a federation, and the choice of those that a call reads.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, SourceName, StreamName};
use tokio::time::{Instant, timeout_at};

use super::failures::{Failures, is_missing_stream};
use super::guarded::GuardedSource;
use super::names::Names;
use super::routes::Routes;
use crate::unknown_place::unknown_stream;
use crate::{Source, SourceError};

/// Default time limit for one page, below the deadline of a tool call.
const PAGE_TIMEOUT: Duration = Duration::from_secs(15);

/// Minimum number of rows or hits requested from a source at a time.
const MIN_SHARE: usize = 5;

/// Source to be federated.
#[derive(Debug, Clone)]
pub struct Member {
    /// The source. Its name must be unique in the federation.
    pub source: Arc<dyn Source>,
    /// Deadline of one call of the source.
    pub deadline: Duration,
}

/// The members of a federation with the routes to their connections and streams.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) name: SourceName,
    pub(super) sources: Vec<Arc<GuardedSource>>,
    pub(super) routes: Routes,
    /// Time limit of a page.
    pub(super) page_timeout: Duration,
}

impl Members {
    /// Guards each member with its deadline, concurrency limit and circuit breaker.
    pub(super) fn new(name: SourceName, members: Vec<Member>) -> Self {
        let names: Arc<Names> = Arc::default();
        let guarded =
            |Member { source, deadline }| Arc::new(GuardedSource::new(source, deadline, Arc::clone(&names)));
        let sources: Vec<Arc<GuardedSource>> = members.into_iter().map(guarded).collect();
        Self { name, routes: Routes::new(&sources, Arc::clone(&names)), sources, page_timeout: PAGE_TIMEOUT }
    }

    /// Waits for an answer until the time limit of the page.
    pub(super) async fn before<Answer>(
        &self,
        until: Instant,
        answer: impl Future<Output = Result<Answer, SourceError>>,
    ) -> Result<Answer, SourceError> {
        timeout_at(until, answer).await.unwrap_or(Err(SourceError::Timeout { after: self.page_timeout }))
    }

    /// Returns the one source that has a connection.
    pub(super) async fn source_of(
        &self,
        context: &CallContext,
        connection: &ConnectionId,
    ) -> Result<&Arc<GuardedSource>, SourceError> {
        let number = self.routes.source_of(context, connection).await?;
        let gone = || SourceError::NotFound { what: format!("there is no connection `{connection}`") };
        self.sources.get(number).ok_or_else(gone)
    }

    /// Returns the member of a name.
    pub(super) fn named(&self, name: &SourceName) -> Option<&Arc<GuardedSource>> {
        self.sources.iter().find(|source| source.name() == name)
    }

    /// Returns the sources that may have one of these streams, or all sources if none is named or known.
    pub(super) fn with_any_stream(
        &self,
        streams: &[StreamName],
    ) -> impl Iterator<Item = &Arc<GuardedSource>> {
        let can_have = move |number: usize| {
            streams.is_empty()
                || streams.iter().any(|stream| self.routes.has_stream(number, stream) != Some(false))
        };
        let is_unknown = (0..self.sources.len()).all(|number| !can_have(number));
        let sources = self.sources.iter().enumerate();
        sources.filter(move |(number, _)| is_unknown || can_have(*number)).map(|(_, source)| source)
    }

    /// Returns the sources that may have a stream, or all sources if it is unknown.
    pub(super) fn with_stream(&self, stream: &StreamName) -> impl Iterator<Item = &Arc<GuardedSource>> {
        self.with_any_stream(std::slice::from_ref(stream))
    }

    /// Returns the number of rows or hits to request from each source at a time. Rows that do not fit on the page are
    /// kept or read again, so many sources are asked for few each.
    pub(super) fn share_of(&self, limit: usize) -> usize {
        (2 * limit).div_ceil(self.sources.len().max(1)).clamp(MIN_SHARE.min(limit), limit)
    }

    /// Returns a note about counts if two sources have one connection, since a record that both have is counted
    /// twice.
    pub(super) fn counted_twice(&self) -> Option<String> {
        let connection = self.routes.collision()?;
        Some(format!(
            "connection `{connection}` is in more than one source; a record that both have is shown once and counted twice"
        ))
    }

    /// Returns the error of a call that no source answered. A stream that no source has is an error of its own.
    pub(super) fn no_answer_error(
        &self,
        failed: Failures,
        what: &str,
        stream: Option<&StreamName>,
    ) -> SourceError {
        match stream {
            Some(stream) if failed.are_all(is_missing_stream) => {
                let known = self.routes.streams();
                unknown_stream(stream, None, known.iter().map(StreamName::as_str).collect())
            }
            _ => failed.into_error(what),
        }
    }
}

/// Adds the name of the source to an error.
pub(super) fn from_source(source: &GuardedSource, error: SourceError) -> SourceError {
    SourceError::FromSource { source_name: source.name().clone(), error: Box::new(error) }
}
