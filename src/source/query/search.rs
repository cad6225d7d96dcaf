//! A full-text search and the page that answers it.

use super::{Count, Filter, Purpose};
use crate::handle::{ConnectionId, StreamName};
use crate::record::{Hit, Unavailable};

/// A full-text search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// What the user typed. Operators in it are text.
    pub text: String,
    /// Only this connection, when given.
    pub connection: Option<ConnectionId>,
    /// Only streams of these names; all when empty.
    pub streams: Vec<StreamName>,
    /// Only records that pass it. It needs exactly one stream.
    pub filter: Filter,
    /// How matches are found.
    pub mode: SearchMode,
    /// How many hits at most, 1 to 100.
    pub limit: usize,
    /// Where to go on; the start when `None`.
    pub position: Option<SearchPosition>,
    /// What the answer is for.
    pub purpose: Purpose,
}

impl SearchQuery {
    /// The first `limit` hits for a text, anywhere.
    #[must_use]
    pub fn of(text: &str, limit: usize) -> Self {
        Self {
            text: text.to_owned(),
            connection: None,
            streams: Vec::new(),
            filter: Filter::default(),
            mode: SearchMode::default(),
            limit,
            position: None,
            purpose: Purpose::Answer,
        }
    }
}

/// How matches are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// By words.
    #[default]
    Lexical,
    /// By meaning.
    Semantic,
    /// By both. It has no further pages.
    Hybrid,
}

impl SearchMode {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lexical => "lexical",
            Self::Semantic => "semantic",
            Self::Hybrid => "hybrid",
        }
    }
}

/// Where a search goes on. Only the source that gave it can read it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SearchPosition(pub String);

/// Hits in the source's order, and where the next ones are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<Hit>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<SearchPosition>,
    /// The source ranked only a window of the matches, so a better one may be missing.
    pub windowed: bool,
    /// A source cannot search as [`SearchQuery::mode`] says, and found its hits by words.
    pub lexical_instead: bool,
    /// How many match in all, when the source says so.
    pub count: Option<Count>,
    /// Sources whose hits are missing.
    pub unavailable: Vec<Unavailable>,
    /// What the reader should know about the answer, in our own words.
    pub notes: Vec<String>,
}
