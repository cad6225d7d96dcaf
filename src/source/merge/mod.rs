//! Merges several ordered, paginated lists into one, without gaps and without duplicates.
//!
//! It merges the connections of one record server and the sources of a federation. Nothing here does IO: `Lanes`
//! returns the pages to read and accepts them.
//!
//! * `lanes`: the merge of all inputs
//! * `lane`: one input
//! * `place`: the sort key of a row
//! * `saved`: the position after a page, as text
//! * `seen`: digests of rows that were returned, for deduplication
//! * `trail`: cycle detection for the cursors of a server

mod lane;
mod lanes;
mod place;
mod saved;
mod seen;
mod trail;

#[cfg(test)]
mod tests;

pub(super) use lane::{LanePage, Row};
pub(super) use lanes::{Hungry, Lanes, left_out};
pub(super) use place::{Place, sort_value};
pub(super) use saved::Saved;
pub(super) use seen::{Key, Seen, digest};
pub(super) use trail::Trail;
