//! The part of a store that a vector search covers.

use std::collections::HashSet;

/// Part of a store, by row ids. Each condition that is set has to hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VectorScope {
    /// Connection of the records.
    pub connection: Option<i64>,
    /// Streams of the records.
    pub streams: Option<Vec<i64>>,
    /// Records, for conditions that are evaluated before the search.
    pub records: Option<HashSet<i64>>,
}

impl VectorScope {
    /// Returns true if a chunk of this record is covered.
    pub(super) fn includes(&self, connection: i32, stream: i32, record: i64) -> bool {
        self.connection.is_none_or(|only| only == i64::from(connection))
            && self.streams.as_ref().is_none_or(|streams| streams.contains(&i64::from(stream)))
            && self.records.as_ref().is_none_or(|records| records.contains(&record))
    }
}
