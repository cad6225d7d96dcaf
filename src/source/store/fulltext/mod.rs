//! Full-text search over the records of a store.
//!
//! A search divides its text into words, selects records by them in the index, filters and reads these records, and
//! locates the words in them for the excerpt. `StoreSearch` is its entry.
//!
//! * `search`: runs a search from query to hits
//! * `words`, `terms`: words of a text, and the terms and phrases of a query
//! * `clauses`, `scope`: the query of the index, and the part of the store that it covers
//! * `post_filter`: filters over search results
//! * `matching`: location of the words in a record
//! * `index`: the search index beside the store

mod clauses;
pub(super) mod index;
mod matching;
mod post_filter;
mod scope;
mod search;
mod terms;
mod words;

pub(super) use search::StoreSearch;
