//! Jobs that only one process of all replicas runs at a time, each under a lease.

use std::fmt;

use fetchwell_core::handle::ConnectionId;

/// A job with a lease. `Display` writes its name, which `pg_stat_activity` shows for the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job<'a> {
    /// An import into a connection, or a synchronization of it.
    Import(&'a ConnectionId),
    /// Following an import, so that it stays current.
    Follow(&'a ConnectionId),
    /// Building the vectors of records and documents.
    Embed,
    /// Deletion of searches beyond the retention time of their project.
    ExpireHistory,
    /// Building the indexes after a large import.
    BuildIndexes,
    /// Building the columns of fields.
    BuildColumns,
}

impl fmt::Display for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Import(connection) => write!(f, "import {connection}"),
            Self::Follow(connection) => write!(f, "follow {connection}"),
            Self::Embed => f.write_str("embed"),
            Self::ExpireHistory => f.write_str("expire history"),
            Self::BuildIndexes => f.write_str("build indexes"),
            Self::BuildColumns => f.write_str("build columns"),
        }
    }
}
