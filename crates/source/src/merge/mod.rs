//! Merges several ordered, paginated lists into one, without gaps and without duplicates.
//!
//! It merges the connections of one record server and the sources of a federation. Nothing here does IO: `MergedList`
//! returns the pages to read and accepts them.
//!
//! * `merged_list`: the merge of all inputs
//! * `input`: one input
//! * `sort_key`: the sort key of a row
//! * `position`: the position after a page, as text
//! * `seen`: digests of rows that were returned, for deduplication
//! * `cycle`: cycle detection for the cursors of a server

mod cycle;
mod input;
mod merged_list;
mod position;
mod seen;
mod sort_key;

#[cfg(test)]
mod tests;

pub(crate) use cycle::CycleDetector;
pub use input::{InputPage, Row};
pub use merged_list::{MergedList, PendingRead, left_out};
pub use position::MergePosition;
pub use seen::{Key, SeenRows, digest};
pub use sort_key::{SortKey, sort_value};
