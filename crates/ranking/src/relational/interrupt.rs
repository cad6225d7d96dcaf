//! Cancellation of a read that nothing waits for any more, and the bounds that every read gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fetchwell_source::SourceError;

use super::allowance::Allowance;

/// Flag that tells a read on another thread that its caller has gone.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// Guard that sets the flag when it is dropped, which happens when the future of a call is cancelled.
#[derive(Debug)]
pub struct InterruptOnDrop(pub Interrupt);

/// Bounds of one read: its cancellation and its memory limit.
#[derive(Debug, Clone, Copy)]
pub struct ReadBounds<'a> {
    /// Stops the read.
    pub interrupt: &'a Interrupt,
    /// Limits the memory of the read.
    pub allowance: &'a Allowance,
}

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Interrupt {
    /// Returns an error if the caller has gone. The error is never shown.
    pub fn check(&self) -> Result<(), SourceError> {
        if self.0.load(Ordering::Relaxed) {
            return Err(SourceError::Unreachable { problem: "the call was cancelled".to_owned() });
        }
        Ok(())
    }
}
