//! The rows of documents and their chunks, which imports write beside the records of a project.
//!
//! * `rows`: writes them, `hash_vector`: vectors that stand for those of a model

mod hash_vector;
mod rows;

pub(crate) use rows::{DocumentRows, is_project};
