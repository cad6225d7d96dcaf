//! Typed questions to a source, and the page that answers a search.

use crate::handle::{ConnectionId, RecordAddress, StreamName};
use crate::record::Hit;

/// A full-text search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// What the user typed. Operators in it are text.
    pub text: String,
    /// Only this connection, when given.
    pub connection: Option<ConnectionId>,
    /// Only streams of these names; all when empty.
    pub streams: Vec<StreamName>,
    /// How many hits at most, 1 to 100.
    pub limit: usize,
    /// Where to go on; the start when `None`.
    pub position: Option<SearchPosition>,
}

/// Where a search goes on. Only the source that gave it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What the reader should know about the answer, in our own words.
    pub notes: Vec<String>,
}

/// One record, by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    /// Which record.
    pub address: RecordAddress,
    /// Only these fields; all when empty.
    pub fields: Vec<String>,
}
