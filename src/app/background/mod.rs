//! Work on stores while a server runs.
//!
//! * `vectors`: builds of vectors
//! * `maintenance`: deletion of searches that are too old, and columns of databases
//! * `shared_keys`: warnings about servers with different keys
//! * `pgvector`: logs the state of the extension pgvector at the start

mod maintenance;
mod pgvector;
mod shared_keys;
mod vectors;

pub(crate) use maintenance::StoreMaintenance;
pub(crate) use pgvector::log_pgvector;
pub(crate) use shared_keys::follow_shared_keys;
pub(crate) use vectors::BackgroundBuilds;
