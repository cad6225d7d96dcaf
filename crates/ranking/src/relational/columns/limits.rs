//! Limits of reading columns instead of records, the same for every store.

use super::ColumnarStream;

/// Minimum number of records of a stream whose columns are read. Fewer are scanned within milliseconds.
pub const MIN_RECORDS: i64 = 2_000;

/// Maximum number of records that changed since the columns were built.
pub const MAX_CHANGED: usize = 20_000;

/// Maximum number of records whose keys are looked up one by one. The first ones of more records are found in the order of the
/// stream or of its keys.
pub const MAX_LOOKUPS: usize = 20_000;

/// Number of records that are read as JSON in any case before all records are.
const MIN_REST: usize = 1_000;

/// All records are scanned if more than one of this many is read as JSON.
const MAX_REST_SHARE: usize = 4;

impl ColumnarStream<'_> {
    /// Returns the columns with the rest in the order of its ids, if they are to be used for a stream of `count` records. Columns
    /// that lack a record, or have one that is gone, are not: `found` is the number of all records of the stream that were found.
    #[must_use]
    pub fn for_count(mut self, found: usize, count: i64) -> Option<Self> {
        if i64::try_from(found) != Ok(count) {
            return None;
        }
        let max_rest = MIN_REST.max(usize::try_from(count).unwrap_or_default() / MAX_REST_SHARE);
        if self.rest.len() > max_rest {
            return None;
        }
        self.rest.sort_unstable();
        Some(self)
    }
}
