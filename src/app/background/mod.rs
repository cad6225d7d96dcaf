//! Work on stores while a server runs.
//!
//! * `vectors`: builds of vectors
//! * `history`: deletion of searches that are too old
//! * `shared_keys`: warnings about servers with different keys
//! * `pgvector`: logs the state of the extension pgvector at the start

mod history;
mod pgvector;
mod shared_keys;
mod vectors;

pub(crate) use history::HistoryRetention;
pub(crate) use pgvector::log_pgvector;
pub(crate) use shared_keys::follow_shared_keys;
pub(crate) use vectors::BackgroundBuilds;
