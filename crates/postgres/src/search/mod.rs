//! Search by words in PostgreSQL.
//!
//! An import writes the words of each record as a `tsvector`, and the number of records of each word. A search selects
//! candidates by the index of these words, and `lexical` ranks them as it does for the embedded store.
//!
//! * `index`, `backfill`: writes the words of changed records, and of those that an earlier release imported
//! * `scope`, `vocabulary`: the streams that a search covers, and their words
//! * `tsquery`, `candidates`: queries of the index, and the records that are ranked
//! * `list`, `position`, `filtered`: the records of a search in their order, the place of a page, and filters over them
//! * `run`: a search from its query to its hits

pub(crate) mod backfill;
pub(crate) mod candidates;
mod filtered;
pub(crate) mod index;
mod list;
mod position;
pub(crate) mod run;
pub(crate) mod scope;
pub(crate) mod tsquery;
mod vocabulary;
