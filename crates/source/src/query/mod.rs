//! Typed queries to a source and their answers.
//!
//! * `search`: full-text search
//! * `search_text`: the text of a search as words and operators
//! * `search_date`: a time that the words of a search name
//! * `search_operator`: operators that a source may not apply
//! * `search_stages`: the stages of a search with their times
//! * `search_filter`: filters of search results for a source that takes plain words
//! * `records`: pages of a stream and its changes
//! * `window`: part of a long text field
//! * `aggregate`: counts, sums and groups
//! * `filter`: conditions on records, shared by these queries

mod aggregate;
mod filter;
mod records;
mod search;
mod search_date;
mod search_filter;
mod search_operator;
mod search_stages;
mod search_text;
mod window;

use fetchwell_core::handle::{ConnectionId, RecordAddress, StreamName};
use fetchwell_core::record::{StreamDetail, Unavailable};

pub use aggregate::{
    AggregateAnswer, AggregateQuery, Granularity, Group, Grouping, Mean, Metric, TimeZoneName,
};
pub use filter::{Condition, Filter, RangeOperator, Test};
pub use records::{
    Accuracy, Change, ChangesOrigin, ChangesToken, Count, CountMode, Direction, Expansion, RecordsPage,
    RecordsPosition, RecordsQuery, Selection, Start,
};
pub use search::{SearchMode, SearchPage, SearchPosition, SearchQuery};
pub use search_date::{DatePrecision, SearchDate};
pub use search_filter::{filter_hits, has_words, page_without_words};
pub use search_operator::SearchOperator;
pub use search_stages::{StageClock, TimedStage};
pub use search_text::{FieldText, SearchField, SearchText};
pub use window::{WindowQuery, WindowStart, share};

/// The purpose of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// The answer of a call.
    #[default]
    Answer,
    /// A hint beside an answer. Such a read does not count for the circuit of a source, and a source with an open circuit
    /// is not called.
    Hint,
}

/// Query for the schema of a stream, in one connection or in all that have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamQuery {
    /// Name of the stream.
    pub stream: StreamName,
    /// Connection to describe; `None` includes every connection that has the stream.
    pub connection: Option<ConnectionId>,
}

/// Schema and capabilities of a stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StreamAnswer {
    /// Details for each connection that has the stream; at least one.
    pub details: Vec<StreamDetail>,
    /// Sources that may have the stream and did not answer.
    pub unavailable: Vec<Unavailable>,
}

impl From<Vec<StreamDetail>> for StreamAnswer {
    fn from(details: Vec<StreamDetail>) -> Self {
        Self { details, unavailable: Vec::new() }
    }
}

/// Query for one record by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    /// Address of the record.
    pub address: RecordAddress,
    /// Fields to return; all if empty.
    pub fields: Vec<String>,
    /// Relations to expand.
    pub expand: Vec<Expansion>,
}

impl RecordQuery {
    /// Creates a query for a complete record without related records.
    #[must_use]
    pub fn new(address: RecordAddress) -> Self {
        Self { address, fields: Vec::new(), expand: Vec::new() }
    }
}
