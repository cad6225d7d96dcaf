//! Full-text search over the records of a store.
//!
//! A search divides its text into words, selects records by them in the index, filters and reads these records, and
//! locates the words in them for the excerpt. `SqliteSearch` is its entry. Words, scores and excerpts are those of
//! `lexical`.
//!
//! * `search`: runs a search from query to hits
//! * `dictionary`, `scoped_dictionary`, `known_terms`: the words of the index
//! * `known_forms`: words that stand for words of queries, for the next searches of a commit
//! * `clauses`, `scope`, `row_query`: the query of the index, and the part of the store that it covers
//! * `phrase`: the records of a segment that have a phrase
//! * `candidates`, `evidence`: the records with the best scores of the index, and where they have the words
//! * `pace`: the expected duration of a search
//! * `ranked_list`: the matches of a search in their order, as far as they are needed
//! * `post_filter`: filters over search results
//! * `meaning`: hits by meaning in the list of a search
//! * `hits`: the hits of matches
//! * `index`: the search index beside the store
//! * `columns`: the columns of fields in the index, for filters, aggregates and orders

mod candidates;
mod clauses;
pub(crate) mod columns;
mod dictionary;
mod evidence;
mod hits;
pub(crate) mod index;
mod known_forms;
mod known_terms;
mod meaning;
mod pace;
mod phrase;
mod post_filter;
mod ranked_list;
mod row_query;
mod scope;
mod scoped_dictionary;
mod search;

pub(crate) use meaning::QueryMeaning;
pub(crate) use search::{RankedRecord, RankedRecords, SqliteSearch};
