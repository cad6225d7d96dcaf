//! Stopping a read that nobody waits for any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::database::ReadError;
use crate::source::SourceError;

/// Tells a read on another thread that its caller has gone.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

/// Interrupts when it is dropped, which is what happens to the future of a call that is cancelled.
#[derive(Debug)]
pub(super) struct InterruptOnDrop(pub(super) Interrupt);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Interrupt {
    /// Fails once the caller has gone. Nobody sees the error.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        if self.0.load(Ordering::Relaxed) {
            return Err(SourceError::CheckServer { problem: "the call was cancelled".to_owned() }.into());
        }
        Ok(())
    }
}
