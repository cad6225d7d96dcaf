//! The rows of documents and their chunks, which imports write beside the records of a project.
//!
//! * `rows`: writes them, `chunks`: writes the chunks of documents, `storable`: texts as the server can store them
//! * `hash_vector`: vectors that stand for those of a model

mod chunks;
mod hash_vector;
mod rows;
mod storable;

pub(crate) use rows::{DocumentRows, is_project};
