//! Rules of stores, as tests that every store runs.
//!
//! * `documents`: the rules of a store of documents
//! * `random_queries`: random records and queries, of which two ways of reading must give the same answers
//! * `column_comparison`: comparison of the two ways
//!
//! Uses `core`, `ranking` and `source`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

pub mod column_comparison;
pub mod documents;
pub mod random_queries;
