//! Cancellation of a read that nothing waits for any more, and the bounds that every read gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::allowance::Allowance;
use crate::source::SourceError;

/// Flag that tells a read on another thread that its caller has gone.
#[derive(Debug, Clone, Default)]
pub(in crate::source) struct Interrupt(Arc<AtomicBool>);

/// Guard that sets the flag when it is dropped, which happens when the future of a call is cancelled.
#[derive(Debug)]
pub(in crate::source) struct InterruptOnDrop(pub(in crate::source) Interrupt);

/// Bounds of one read: its cancellation and its memory limit.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct ReadBounds<'a> {
    pub(in crate::source) interrupt: &'a Interrupt,
    pub(in crate::source) allowance: &'a Allowance,
}

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Interrupt {
    /// Returns an error if the caller has gone. The error is never shown.
    pub(in crate::source) fn check(&self) -> Result<(), SourceError> {
        if self.0.load(Ordering::Relaxed) {
            return Err(SourceError::Unreachable { problem: "the call was cancelled".to_owned() });
        }
        Ok(())
    }
}
