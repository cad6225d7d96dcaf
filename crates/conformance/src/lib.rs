//! Rules of stores, as tests that every store runs.
//!
//! * `documents`: the rules of a store of documents
//! * `figures`: random records and queries, of which two ways of reading must give the same figures
//! * `figure_stores`: comparison of the two ways
//!
//! Uses `core`, `ranking` and `source`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

pub mod documents;
pub mod figure_stores;
pub mod figures;
