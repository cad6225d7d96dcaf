//! Typed questions to a source, and what answers them.

mod aggregate;
mod filter;
mod records;
mod search;
mod window;

pub use aggregate::{AggregateAnswer, AggregateQuery, Granularity, Group, Grouping, Metric, TimeZoneName};
pub use filter::{Condition, Filter, Operator};
pub use records::{
    Change, ChangesToken, Count, CountMode, Direction, Expansion, RecordsPage, RecordsPosition, RecordsQuery,
    Selection, Start,
};
pub use search::{SearchMode, SearchPage, SearchPosition, SearchQuery};
pub use window::{WindowQuery, WindowStart};

use crate::handle::{ConnectionId, RecordAddress, StreamName};

/// One stream of every connection that has it, or of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamQuery {
    /// Its name.
    pub stream: StreamName,
    /// Only of this connection, when given.
    pub connection: Option<ConnectionId>,
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
