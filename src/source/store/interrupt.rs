//! Cancellation of a read that nothing waits for any more, and the bounds that every read gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::allowance::Allowance;
use super::database::ReadError;
use crate::source::SourceError;

/// Flag that tells a read on another thread that its caller has gone.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

/// Guard that sets the flag when it is dropped, which happens when the future of a call is cancelled.
#[derive(Debug)]
pub(super) struct InterruptOnDrop(pub(super) Interrupt);

/// Bounds of one read: its cancellation and its memory limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadBounds<'a> {
    pub(super) interrupt: &'a Interrupt,
    pub(super) allowance: &'a Allowance,
}

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Interrupt {
    /// Returns an error if the caller has gone. The error is never shown.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        if self.0.load(Ordering::Relaxed) {
            return Err(SourceError::CheckServer { problem: "the call was cancelled".to_owned() }.into());
        }
        Ok(())
    }
}
