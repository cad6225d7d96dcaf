//! Reads and searches that are the same for every database: what they find is read and put in order here.
//!
//! * `relational`: reads of records from the tables of a database
//! * `lexical`: search by words, `meaning`: hits by meaning, `record_filter`: filters over search results
//! * `chunk_ranking`, `embedded_documents`: chunks of documents in order, and the texts by which documents are embedded
//!
//! Uses `core`, `embedding`, `source` and `state`.
//!
//! **Invariant:** no database and no index is known here.

pub mod chunk_ranking;
pub mod embedded_documents;
pub mod lexical;
pub mod meaning;
pub mod record_filter;
pub mod relational;
