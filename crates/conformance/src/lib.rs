//! Rules of stores, as tests that every store runs.
//!
//! * `documents`: the rules of a store of documents
//!
//! Uses `core` and `source`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

pub mod documents;
