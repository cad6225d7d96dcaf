//! Search by words, for every store: words, their forms, the score of a record, and hits.
//!
//! A store selects candidates by its own index; everything that decides what a hit is and where it is placed is here, so
//! that stores rank alike. An index offers its words as a `Vocabulary`.
//!
//! * `words`, `terms`, `question`: words of a text, and the words and phrases of a query
//! * `stems`, `expansion`, `vocabulary`: forms and misspellings of words, and the words of an index that stand for those
//!   of a query
//! * `spelling`: the ways in which records spell a phrase
//! * `content`, `similarity`: the searchable content of a record, and its hash
//! * `ranking`, `scoring`, `selection`: the score of a record, and the order of scored records
//! * `matching`, `hits`: the passage of a record that matches, and its hit
//! * `record_filter`: filters over search results
//!
//! **Invariant:** no database and no index is known here.

pub(in crate::source) mod content;
pub(in crate::source) mod expansion;
pub(in crate::source) mod hits;
pub(in crate::source) mod matching;
pub(in crate::source) mod question;
pub(in crate::source) mod ranking;
pub(in crate::source) mod record_filter;
pub(in crate::source) mod scoring;
pub(in crate::source) mod selection;
mod similarity;
pub(in crate::source) mod spelling;
mod stems;
pub(in crate::source) mod terms;
pub(in crate::source) mod vocabulary;
pub(in crate::source) mod words;
