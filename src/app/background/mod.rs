//! Work on stores while a server runs.
//!
//! * `vectors`: builds of vectors
//! * `history`: deletion of searches that are too old
//! * `pgvector`: the state of an extension of databases, at the start

mod history;
mod pgvector;
mod vectors;

pub(crate) use history::HistoryRetention;
pub(crate) use pgvector::log_pgvector;
pub(crate) use vectors::BackgroundBuilds;
