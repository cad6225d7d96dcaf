//! Where positions are kept: the trait, and what is kept.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::codec::{Kind, Reference};
use crate::state::StateError;

/// Where something goes on. The text is its owner's, who alone can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// What goes on.
    pub kind: Kind,
    /// When its cursor was issued, since 1970.
    pub issued: Duration,
    /// How many rows came before.
    pub offset: u32,
    /// What it is good for: positions of other sources, or of another caller, have another binding.
    pub binding: String,
    /// Whatever its owner needs.
    pub text: String,
}

/// Keeps positions for as long as their cursors are valid, and may forget them earlier.
#[async_trait]
pub trait Positions: Send + Sync + fmt::Debug {
    /// Keeps a position, and gives its time of issue: when it says, or later, when it is known to have been later.
    async fn keep(&self, reference: Reference, position: Position) -> Result<Duration, StateError>;

    /// The position of a reference, which is from then on active.
    async fn find(&self, reference: Reference, now: Duration) -> Result<Option<Position>, StateError>;

    /// Remembers that it is `now` at least, and forgets what has expired by then.
    async fn expire(&self, now: Duration) -> Result<(), StateError>;
}
