//! Work on stores while a server runs.
//!
//! * `vectors`: builds of vectors
//! * `history`: deletion of searches that are too old
//! * `shared_keys`: warnings of servers with other keys

mod history;
mod shared_keys;
mod vectors;

pub(crate) use history::HistoryRetention;
pub(crate) use shared_keys::follow_shared_keys;
pub(crate) use vectors::BackgroundBuilds;
