//! Full-text search over the records of a store.
//!
//! A search divides its text into words, selects records by them in the index, filters and reads these records, and
//! locates the words in them for the excerpt. `StoreSearch` is its entry.
//!
//! * `search`: runs a search from query to hits
//! * `words`, `terms`: words of a text, and the words and phrases of a query
//! * `stems`, `expansion`: forms and misspellings of words, and the words of the index that stand for those of a query
//! * `dictionary`: the words of the index
//! * `clauses`, `scope`: the query of the index, and the part of the store that it covers
//! * `candidates`, `evidence`: the records with the best scores of the index, and where they have the words
//! * `ranking`, `selection`: the score of a record, and the order of scored records
//! * `ranked_list`: the matches of a search in their order, as far as they are needed
//! * `post_filter`: filters over search results
//! * `meaning`: hits by meaning in the list of a search
//! * `hits`, `matching`: the hits of matches, and the passage of a record that matches
//! * `index`: the search index beside the store

mod candidates;
mod clauses;
mod dictionary;
mod evidence;
mod expansion;
mod hits;
pub(super) mod index;
mod matching;
mod meaning;
mod post_filter;
mod ranked_list;
mod ranking;
mod scope;
mod search;
mod selection;
mod stems;
mod terms;
mod words;

pub(super) use matching::ExcerptTerms;
pub(super) use meaning::QueryMeaning;
pub(super) use search::{RankedRecord, RankedRecords, StoreSearch};
