//! Query for a full-text search, and its answer.

use std::collections::BTreeSet;

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::{Hit, Unavailable};

use super::{Count, Filter, Purpose, SearchOperator, SearchText, TimedStage};

/// Query for a full-text search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Text of the user as words and operators.
    pub text: SearchText,
    /// Connection to search; `None` includes all.
    pub connection: Option<ConnectionId>,
    /// Streams to search; all if empty.
    pub streams: Vec<StreamName>,
    /// Filter on the records that are found. Requires exactly one stream.
    pub filter: Filter,
    /// Mode in which matches are found.
    pub mode: SearchMode,
    /// Maximum number of hits, 1 to 100.
    pub limit: usize,
    /// Position to continue from; `None` starts at the first hit.
    pub position: Option<SearchPosition>,
    /// Purpose of the read.
    pub purpose: Purpose,
    /// True if hits have the reasons for their places, and the page the times of the stages.
    pub explains: bool,
}

impl SearchQuery {
    /// Creates a query of plain words for the first `limit` hits in all connections and streams.
    #[must_use]
    pub fn new(text: &str, limit: usize) -> Self {
        Self {
            text: SearchText::plain(text),
            connection: None,
            streams: Vec::new(),
            filter: Filter::default(),
            mode: SearchMode::default(),
            limit,
            position: None,
            purpose: Purpose::Answer,
            explains: false,
        }
    }
}

/// Mode of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// Match by words and meaning where the source has vectors of the configured model, else by words.
    #[default]
    Auto,
    /// Match by words.
    Lexical,
    /// Match by meaning, with embeddings.
    Semantic,
    /// Match by both. Over a record server it has only one page.
    Hybrid,
}

impl SearchMode {
    /// Returns the name of the mode in a request.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Lexical => "lexical",
            Self::Semantic => "semantic",
            Self::Hybrid => "hybrid",
        }
    }
}

/// Position in a search. Only the source that issued it can read it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SearchPosition(pub String);

/// Page of hits in the order of the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchPage {
    /// Hits on the page.
    pub hits: Vec<Hit>,
    /// Position of the next page; `None` at the end.
    pub next: Option<SearchPosition>,
    /// True if the source ranked only a part of the matches, so that a better one may be missing.
    pub windowed: bool,
    /// True if a source did not search in the mode [`SearchQuery::mode`] and matched by words instead.
    pub lexical_instead: bool,
    /// Reasons why sources that have vectors matched by words alone, each with what to do.
    pub meaning_problems: BTreeSet<String>,
    /// True if a source raised records of the times that the words name.
    pub has_raised_dates: bool,
    /// Operators of the text that a source did not apply.
    pub unapplied: BTreeSet<SearchOperator>,
    /// Total number of matches, if the source reports it.
    pub count: Option<Count>,
    /// Sources that are missing from the page.
    pub unavailable: Vec<Unavailable>,
    /// Notes for the reader, in our own words.
    pub notes: Vec<String>,
    /// Stages with their times, if the query asks for an explanation.
    pub stages: Vec<TimedStage>,
}

impl SearchPage {
    /// Appends the next page of the same search.
    pub fn append(&mut self, mut page: Self) {
        self.hits.append(&mut page.hits);
        self.next = page.next;
        self.windowed |= page.windowed;
        self.lexical_instead |= page.lexical_instead;
        self.meaning_problems.append(&mut page.meaning_problems);
        self.has_raised_dates |= page.has_raised_dates;
        self.unapplied.append(&mut page.unapplied);
        self.count = page.count.or(self.count);
        self.unavailable.append(&mut page.unavailable);
        // A page that is read in two parts has each note once.
        page.notes.retain(|note| !self.notes.contains(note));
        self.notes.append(&mut page.notes);
        self.stages.append(&mut page.stages);
    }

    /// Returns the note that a source with vectors matched by words alone.
    #[must_use]
    pub fn meaning_note(&self) -> Option<String> {
        self.meaning_problems.first().map(|problem| format!("searched by words only: {problem}"))
    }
}
