//! Queries of every store about its tables of projects.
//!
//! * `select`: the queries, and how their rows are read
//! * `ranked_search`: the steps of a search

mod ranked_search;
mod select;

pub use ranked_search::{by_words_only, search_embedded};
pub use select::{Dialect, DocumentQuery, DocumentRow, QueryValue, document_of};
