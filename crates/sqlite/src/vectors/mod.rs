//! Vectors of the records of a store, for search by meaning.
//!
//! They are in a SQLite file of their own beside the store (`STORE-vectors`), derived from the store like the search
//! index: the file can be deleted at any time. Each generation of vectors is of one model.
//!
//! * `file`: the file and its generations, `error`: conversion of errors
//! * `plan`, `build`, `streams`: embeds what changed since the last build, in the streams that a configuration shows
//! * `refused`: records with a text that the model refuses
//! * `background`: the vectors of a store for commands and servers, which build in small steps beside other processes
//! * `lock`, `probe`: one builder at a time; recognition of a changed model
//! * `codes`, `scan`, `scope`, `index`: the search
//! * `status`: the state of the vectors
//! * `removal`: deletion of the vectors of removed records

mod background;
mod build;
mod codes;
mod error;
mod file;
mod index;
mod lock;
mod plan;
mod probe;
mod refused;
mod removal;
mod scan;
mod scope;
mod status;
mod streams;

pub use background::SqliteVectors;
pub use build::VectorBuilder;
pub use index::{VectorHits, VectorIndex};
pub use probe::StoredModel;
pub(crate) use removal::{RemovedRows, VectorRemover};
pub use scope::VectorScope;
pub use status::{check_vectors, vector_status};
pub use streams::check_document_dimensions;

#[cfg(test)]
mod tests;
