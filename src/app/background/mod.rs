//! Work on stores while a server runs.
//!
//! * `vectors`: builds of vectors
//! * `history`: deletion of searches that are too old

mod history;
mod vectors;

pub(crate) use history::HistoryRetention;
pub(crate) use vectors::BackgroundBuilds;
