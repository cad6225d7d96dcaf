//! Waiting for another import into the same store, or the same connection of a database.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fetchwell_core::handle::ConnectionId;
use fetchwell_core::terminal::output::note;
use fetchwell_source::ImportTarget;
use fetchwell_source::contract::StoreError;

use crate::cli::sync::note_lock;

/// Maximum time of waiting. Then the import fails, with the session that imports.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Pause between two attempts.
const POLL: Duration = Duration::from_millis(300);

/// Waits for other imports, and says once which ones. Those into another connection of a database are not waited for.
pub(super) fn wait_for_others(
    target: &dyn ImportTarget,
    connection: &ConnectionId,
    stop: &AtomicBool,
) -> Result<(), StoreError> {
    if let Some(store) = target.path() {
        note_lock(store);
    }
    let until = Instant::now() + MAX_WAIT;
    let mut is_noted = false;
    while let Some(session) = target.import_in_progress(connection)? {
        if !std::mem::replace(&mut is_noted, true) {
            note(&format_args!("{session}; waiting for it for up to a minute"));
        }
        if stop.load(Ordering::Relaxed) || Instant::now() > until {
            break;
        }
        thread::park_timeout(POLL);
    }
    Ok(())
}
