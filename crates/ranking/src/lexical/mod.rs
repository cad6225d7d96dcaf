//! Search by words, for every store: words, their forms, the score of a record, and hits.
//!
//! A store selects candidates by its own index; everything that decides what a hit is and where it is placed is here, so
//! that stores rank alike. An index offers its words as a `Vocabulary`.
//!
//! * `words`, `terms`, `question`: words of a text, and the words and phrases of a query
//! * `stems`, `expansion`, `vocabulary`: forms and misspellings of words, and the words of an index that stand for those
//!   of a query
//! * `spelling`: the ways in which records spell a phrase; `compounds`: words that texts write joined or separated
//! * `content`, `field_texts`, `similarity`: the searchable content of a record, its texts, and its hash
//! * `text_cache`: what was made of the texts of records, for the next searches that read them
//! * `ranking`, `scoring`, `selection`: the score of a record, and the order of scored records
//! * `matching`, `word_sequences`, `hits`: the passage of a record that matches, and its hit
//! * `explanation`: the reasons for the places of hits
//! * `word_filter`: words that each record of a list must have
//! * `understanding`: words of requests, and dates in plain text
//! * `foreign`: results that another program found
//!
//! **Invariant:** no database and no index is known here.

mod compounds;
pub mod content;
pub mod expansion;
pub mod explanation;
mod field_texts;
pub mod foreign;
pub mod hits;
pub mod matching;
pub mod question;
pub mod ranking;
pub mod scoring;
pub mod selection;
mod similarity;
pub mod spelling;
mod stems;
pub mod terms;
pub mod text_cache;
pub mod understanding;
pub mod vocabulary;
pub mod word_filter;
mod word_sequences;
pub mod words;
