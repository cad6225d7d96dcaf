//! Stored positions, and the trait of their stores.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::codec::{Kind, Reference};
use crate::StateError;

/// Bytes of a position beside its texts: the strings' headers, the reference, and the nodes of a collection.
const OVERHEAD: usize = 256;

/// Stored position. Only the module that created it interprets its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Kind of the list.
    pub kind: Kind,
    /// Time of issue of its cursor, since 1970.
    pub issued: Duration,
    /// Number of rows on earlier pages.
    pub offset: u32,
    /// Binding: positions of other sources or of another caller have another one. The part behind a colon names the
    /// caller's grant.
    pub binding: String,
    /// Text of the position.
    pub text: String,
}

impl Position {
    /// Returns the memory that the position takes in a collection, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.text.len() + self.binding.len() + OVERHEAD
    }

    /// Returns the owner, by which positions share a quota: the caller's grant, or all callers without grants.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.binding.split_once(':').map_or("", |(_, owner)| owner)
    }
}

/// Store of positions. Keeps them during the lifetime of their cursors, and may evict them earlier.
#[async_trait]
pub trait Positions: Send + Sync + fmt::Debug {
    /// Stores a position and returns its time of issue, which is later than its own if the stored clock is ahead.
    async fn keep(&self, reference: Reference, position: Position) -> Result<Duration, StateError>;

    /// Returns the position of a reference and marks it as used.
    async fn find(&self, reference: Reference, now: Duration) -> Result<Option<Position>, StateError>;

    /// Stores that the time is at least `now`, and deletes positions that have expired.
    async fn expire(&self, now: Duration) -> Result<(), StateError>;

    /// Waits until all positions so far outlive the process, or cannot.
    async fn flush(&self) {}

    /// Sets the clock by the one that servers share, if there is one.
    async fn synchronize(&self) -> Result<(), StateError> {
        Ok(())
    }
}
