//! Typed questions to a source, and what answers them.

mod aggregate;
mod filter;
mod records;
mod search;
mod window;

pub use aggregate::{AggregateAnswer, AggregateQuery, Granularity, Group, Grouping, Metric, TimeZoneName};
pub use filter::{Condition, Filter, Operator};
pub use records::{
    Accuracy, Change, ChangesOrigin, ChangesToken, Count, CountMode, Direction, Expansion, RecordsPage,
    RecordsPosition, RecordsQuery, Selection, Start,
};
pub use search::{SearchMode, SearchPage, SearchPosition, SearchQuery};
pub(in crate::source) use window::share;
pub use window::{WindowQuery, WindowStart};

use crate::handle::{ConnectionId, RecordAddress, StreamName};
use crate::record::{StreamDetail, Unavailable};

/// What an answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// The answer of a call.
    #[default]
    Answer,
    /// A hint beside an answer. It must not keep other calls from a source: a source that fails then is not left alone
    /// for it, and a source that is left alone is not asked.
    Hint,
}

/// One stream of every connection that has it, or of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamQuery {
    /// Its name.
    pub stream: StreamName,
    /// Only of this connection, when given.
    pub connection: Option<ConnectionId>,
}

/// What a stream can be asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StreamAnswer {
    /// One for each connection that has the stream, at least one.
    pub details: Vec<StreamDetail>,
    /// Sources that may have it too, and did not answer.
    pub unavailable: Vec<Unavailable>,
}

impl From<Vec<StreamDetail>> for StreamAnswer {
    fn from(details: Vec<StreamDetail>) -> Self {
        Self { details, unavailable: Vec::new() }
    }
}

/// One record, by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    /// Which record.
    pub address: RecordAddress,
    /// Only these fields; all when empty.
    pub fields: Vec<String>,
    /// Related records to bring along.
    pub expand: Vec<Expansion>,
}

impl RecordQuery {
    /// The whole record of an address, and nothing else.
    #[must_use]
    pub fn of(address: RecordAddress) -> Self {
        Self { address, fields: Vec::new(), expand: Vec::new() }
    }
}
