//! The toolbox: what the calls of one grant share.
//!
//! A [`Toolbox`] has the source, settings and caches. No two grants share one, so nothing that one caller read can be in an
//! answer to another. A change of the configuration makes a new toolbox, which keeps the caches if the sources are the same.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_callers::{CallContext, GrantId, RecordPages};
use fetchwell_core::fit::{Limits, PageBudget, Protection};
use fetchwell_core::handle::SourceName;
use fetchwell_core::lru::Lookups;
use fetchwell_source::{BoundSource, Sources, StreamQuery};
use fetchwell_state::cursor::{Cursors, Skew};
use fetchwell_telemetry::Call;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::cache::{ChunkedTexts, KnownPreviews, Parts, Previews, SeenIds};
use super::error::ToolError;
use crate::documents::SearchCache;

/// Default deadline of a call.
pub const DEFAULT_CALL_DEADLINE: Duration = Duration::from_secs(20);

/// Source, settings and caches of the calls of one grant.
#[derive(Debug, Clone)]
pub struct Toolbox {
    pub(crate) source: BoundSource,
    /// Grant of the caller; `None` if callers are not authenticated.
    grant: Option<GrantId>,
    /// Positions of cursors.
    pub(crate) cursors: Arc<Cursors>,
    /// Search hits with an id of the source's own.
    pub(crate) seen_ids: SeenIds,
    /// Ends of the parts of long documents.
    pub(crate) parts: Parts,
    /// Texts divided into chunks.
    pub(crate) texts: ChunkedTexts,
    /// Declarations of streams.
    pub(crate) previews: KnownPreviews,
    /// Answers to document searches.
    pub(crate) searches: SearchCache,
    /// Record pages, if they are served.
    pages: Option<RecordPages>,
    call_deadline: Duration,
    protection: Arc<Protection>,
    /// Time zone of the days that a query names.
    time_zone: TimeZone,
}

impl Toolbox {
    /// Creates a toolbox with cursors that are kept in memory.
    ///
    /// # Errors
    ///
    /// The system has no random bytes for the key of cursors.
    pub fn new(sources: impl Into<Sources>, call_deadline: Duration) -> Result<Self, getrandom::Error> {
        let cursors = Arc::new(Cursors::in_memory(Skew::default())?);
        Ok(Self::with_cursors(sources, cursors, call_deadline))
    }

    /// Creates a toolbox that shares cursors with others.
    #[must_use]
    pub fn with_cursors(sources: impl Into<Sources>, cursors: Arc<Cursors>, call_deadline: Duration) -> Self {
        let searches = SearchCache::for_grant(&cursors, None);
        Self {
            source: BoundSource::new(sources, CallContext::default()),
            grant: None,
            cursors,
            seen_ids: SeenIds::default(),
            parts: Parts::default(),
            texts: ChunkedTexts::default(),
            previews: KnownPreviews::default(),
            searches,
            pages: None,
            call_deadline,
            protection: Arc::default(),
            time_zone: TimeZone::UTC,
        }
    }

    /// Sets the limits of answers.
    #[must_use]
    pub fn protected_by(self, protection: Arc<Protection>) -> Self {
        Self { protection, ..self }
    }

    /// Sets the time zone of the days that a query names. It is UTC for callers of which none is known.
    #[must_use]
    pub fn in_time_zone(self, time_zone: TimeZone) -> Self {
        Self { time_zone, ..self }
    }

    /// Sets the record pages.
    #[must_use]
    pub fn with_pages(self, pages: Option<RecordPages>) -> Self {
        Self { pages, ..self }
    }

    /// Sets the grant. Cursors of one grant are refused for another.
    #[must_use]
    pub fn granted_to(self, grant: GrantId) -> Self {
        let searches = SearchCache::for_grant(&self.cursors, Some(grant.to_string()));
        Self { grant: Some(grant), searches, ..self }
    }

    /// Creates a toolbox for a changed configuration. It keeps the caches if the sources are the same.
    #[must_use]
    pub fn succeeded_by(
        &self,
        sources: impl Into<Sources>,
        call_deadline: Duration,
        protection: Arc<Protection>,
    ) -> Self {
        // Records of sources that are no longer configured must not be in an answer.
        let sources = sources.into();
        let is_same = sources.source().identity() == self.source.identity();
        Self {
            seen_ids: if is_same { self.seen_ids.clone() } else { SeenIds::default() },
            source: BoundSource::new(sources, CallContext::default()),
            grant: self.grant,
            cursors: Arc::clone(&self.cursors),
            parts: self.parts.clone(),
            texts: if is_same { self.texts.clone() } else { ChunkedTexts::default() },
            pages: self.pages.clone(),
            previews: if is_same { self.previews.clone() } else { KnownPreviews::default() },
            searches: SearchCache::for_grant(&self.cursors, self.caller()),
            call_deadline,
            protection,
            time_zone: self.time_zone.clone(),
        }
    }

    /// Returns the toolbox for one call. It shares the caches, and reads its source in the context of the call.
    #[must_use]
    pub(crate) fn for_call(&self, context: CallContext) -> Self {
        Self { source: self.source.with_context(context), ..self.clone() }
    }

    /// Returns the toolbox for a call that has passed other servers of this kind. Returns itself for one that has passed none.
    #[must_use]
    pub fn after_hops(self: Arc<Self>, hops: u32) -> Arc<Self> {
        match hops {
            0 => self,
            hops => Arc::new(self.for_call(self.source.context().clone().after_hops(hops))),
        }
    }

    /// Returns the toolbox for a call, which reports what it reads to the audit log. Returns itself without one.
    #[must_use]
    pub fn audited(self: Arc<Self>, call: &Call) -> Arc<Self> {
        match call.audit() {
            None => self,
            audit => Arc::new(Self { source: self.source.audited_by(audit), ..Self::clone(&self) }),
        }
    }

    /// Returns the source that tool calls read from, in the context of the call.
    #[must_use]
    pub fn source(&self) -> &BoundSource {
        &self.source
    }

    /// Returns the identity of the configured sources and of the grant.
    #[must_use]
    pub fn identity(&self) -> String {
        let sources = self.source.identity();
        match &self.grant {
            None => sources,
            Some(grant) => format!("{sources}\0{grant}"),
        }
    }

    /// Returns the name of the grant, if callers are authenticated.
    #[must_use]
    pub fn caller(&self) -> Option<String> {
        self.grant.as_ref().map(ToString::to_string)
    }

    /// Returns true if callers are authenticated, so that their answers are kept apart.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        self.grant.is_some()
    }

    /// Returns the answers to document searches.
    #[must_use]
    pub fn searches(&self) -> &SearchCache {
        &self.searches
    }

    /// Returns the hits and misses of each cache with its name.
    pub fn lookups(&self) -> [(&'static str, Lookups); 5] {
        [
            ("parts of long records", self.parts.lookups()),
            ("texts in chunks", self.texts.lookups()),
            ("ids of hits", self.seen_ids.lookups()),
            ("declarations of streams", self.previews.lookups()),
            ("answers to document searches", self.searches.lookups()),
        ]
    }

    /// Returns the record pages, if they are served.
    #[must_use]
    pub fn pages(&self) -> Option<&RecordPages> {
        self.pages.as_ref()
    }

    /// Returns the positions of cursors.
    #[must_use]
    pub fn cursors(&self) -> &Arc<Cursors> {
        &self.cursors
    }

    /// Returns the time in whole seconds, by the clock of the cursors.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.cursors.now().as_secs()).ok();
        seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(Timestamp::MAX)
    }

    /// Returns a time in the time zone of the caller.
    #[must_use]
    pub fn local(&self, time: Timestamp) -> Zoned {
        time.to_zoned(self.time_zone.clone())
    }

    /// Returns the deadline of a call.
    #[must_use]
    pub fn call_deadline(&self) -> Duration {
        self.call_deadline
    }

    /// Returns the limits of answers.
    #[must_use]
    pub fn protection(&self) -> &Arc<Protection> {
        &self.protection
    }

    /// Returns the previews that a stream declares.
    pub async fn previews(&self, stream: StreamQuery) -> Arc<Previews> {
        self.previews.read(&self.source, stream).await
    }

    /// Returns the budget of a tool.
    pub(crate) fn budget(&self, tool: &str) -> PageBudget {
        PageBudget::whole(&self.limits(tool))
    }

    /// Returns the limits of a tool.
    pub(crate) fn limits(&self, tool: &str) -> Limits {
        self.protection.limits(&format!("tool:{tool}"))
    }

    /// Returns the source of a call: the named member of a federation, or the source of the toolbox.
    pub(crate) fn named_source(
        &self,
        tool: &'static str,
        name: Option<&SourceName>,
    ) -> Result<BoundSource, ToolError> {
        match name {
            None => Ok(self.source.clone()),
            Some(name) => self.source.named(name).ok_or_else(|| ToolError::unknown_source(tool, name)),
        }
    }
}
