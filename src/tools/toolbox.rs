//! What the tools share.

use std::sync::Arc;
use std::time::Duration;

use super::answer::ChunkedTexts;
use super::cache::{KnownPreviews, Parts, Previews, SeenIds};
use super::error::ToolError;
use crate::callers::{GrantId, RecordPages};
use crate::cursor::{Cursors, Skew};
use crate::fit::{Limits, PageBudget, Protection};
use crate::handle::SourceName;
use crate::source::{Source, StreamQuery};

/// How long a whole call may take.
pub const DEFAULT_CALL_DEADLINE: Duration = Duration::from_secs(20);

/// The tools over one source, with what they remember between calls.
#[derive(Debug)]
pub struct Toolbox {
    pub(super) source: Arc<dyn Source>,
    /// Whose view of the records it is; nobody's in particular where callers are not told apart.
    grant: Option<GrantId>,
    /// Where searches and lists go on.
    pub(super) cursors: Arc<Cursors>,
    /// Ids of a source's own that name no record.
    pub(super) seen_ids: SeenIds,
    /// Where the parts of long documents start.
    pub(super) parts: Parts,
    /// Texts that are read chunk by chunk.
    pub(super) texts: ChunkedTexts,
    /// What streams want shown of their records.
    pub(super) previews: KnownPreviews,
    /// Where people read records, when there is a place.
    pages: Option<RecordPages>,
    call_deadline: Duration,
    protection: Arc<Protection>,
}

impl Toolbox {
    /// The tools over `source`, with cursors that end with the process.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes for signing cursors.
    pub fn new(source: Arc<dyn Source>, call_deadline: Duration) -> Result<Self, getrandom::Error> {
        let cursors = Arc::new(Cursors::in_memory(Skew::default())?);
        Ok(Self::with_cursors(source, cursors, call_deadline))
    }

    /// The tools over `source`, with cursors that are kept elsewhere.
    #[must_use]
    pub fn with_cursors(source: Arc<dyn Source>, cursors: Arc<Cursors>, call_deadline: Duration) -> Self {
        Self {
            source,
            grant: None,
            cursors,
            seen_ids: SeenIds::default(),
            parts: Parts::default(),
            texts: ChunkedTexts::default(),
            previews: KnownPreviews::default(),
            pages: None,
            call_deadline,
            protection: Arc::default(),
        }
    }

    /// The same with other limits.
    #[must_use]
    pub fn protected_by(self, protection: Arc<Protection>) -> Self {
        Self { protection, ..self }
    }

    /// The same with pages for people to read records on.
    #[must_use]
    pub fn with_pages(self, pages: Option<RecordPages>) -> Self {
        Self { pages, ..self }
    }

    /// The same for one grant, whose cursors are of no use to another.
    #[must_use]
    pub fn granted_to(self, grant: GrantId) -> Self {
        Self { grant: Some(grant), ..self }
    }

    /// The tools over another source, with what these remember.
    #[must_use]
    pub fn succeeded_by(
        &self,
        source: Arc<dyn Source>,
        call_deadline: Duration,
        protection: Arc<Protection>,
    ) -> Self {
        // What was seen in sources that are no longer served is not given any more.
        let is_same = source.identity() == self.source.identity();
        Self {
            seen_ids: if is_same { self.seen_ids.clone() } else { SeenIds::default() },
            source,
            grant: self.grant,
            cursors: Arc::clone(&self.cursors),
            parts: self.parts.clone(),
            texts: if is_same { self.texts.clone() } else { ChunkedTexts::default() },
            pages: self.pages.clone(),
            previews: if is_same { self.previews.clone() } else { KnownPreviews::default() },
            call_deadline,
            protection,
        }
    }

    /// What is asked.
    #[must_use]
    pub fn asked_source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// What positions are good for: the sources as they are configured, as one grant sees them.
    #[must_use]
    pub fn identity(&self) -> String {
        let sources = self.source.identity();
        match &self.grant {
            None => sources,
            Some(grant) => format!("{sources}\0{grant}"),
        }
    }

    /// Returns the name of the grant, where callers are told apart.
    pub(super) fn caller(&self) -> Option<String> {
        self.grant.as_ref().map(ToString::to_string)
    }

    /// Whether there are other callers, who must not have what this one gets.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        self.grant.is_some()
    }

    /// Where people read records, when there is a place.
    #[must_use]
    pub fn pages(&self) -> Option<&RecordPages> {
        self.pages.as_ref()
    }

    /// Where lists go on.
    #[must_use]
    pub fn cursors(&self) -> &Arc<Cursors> {
        &self.cursors
    }

    /// How long a whole call may take.
    #[must_use]
    pub fn call_deadline(&self) -> Duration {
        self.call_deadline
    }

    /// How much answers may take.
    #[must_use]
    pub fn protection(&self) -> &Arc<Protection> {
        &self.protection
    }

    /// What a stream wants shown of its records.
    pub(crate) async fn previews(&self, stream: StreamQuery) -> Arc<Previews> {
        self.previews.read(self.source.as_ref(), stream).await
    }

    /// The most that a tool answers.
    pub(super) fn budget(&self, tool: &str) -> PageBudget {
        PageBudget::whole(&self.limits(tool))
    }

    pub(super) fn limits(&self, tool: &str) -> Limits {
        self.protection.limits(&format!("tool:{tool}"))
    }

    /// The source to ask: the one that is named, or whatever has the answer.
    pub(super) fn source(
        &self,
        tool: &'static str,
        name: Option<&SourceName>,
    ) -> Result<Arc<dyn Source>, ToolError> {
        match name {
            None => Ok(Arc::clone(&self.source)),
            Some(name) => match self.source.member(name) {
                Some(member) => Ok(member),
                None if name == self.source.name() && !self.source.is_several() => {
                    Ok(Arc::clone(&self.source))
                }
                None => Err(ToolError::unknown_source(tool, name)),
            },
        }
    }
}
