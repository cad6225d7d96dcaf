//! Waiting for the thread that writes what a queue has.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two attempts to send to a full queue.
const PAUSE: Duration = Duration::from_millis(10);

/// Sends a message that the thread of the queue answers when everything before it is written, and waits for the answer. Waits
/// for at most `timeout`.
pub(crate) fn flush_queue<Message>(
    queue: &SyncSender<Message>,
    flush: fn(SyncSender<()>) -> Message,
    timeout: Duration,
) {
    let until = Instant::now() + timeout;
    let (done, is_done) = sync_channel(1);
    // `SyncSender` has no send with a timeout.
    while let Err(TrySendError::Full(_)) = queue.try_send(flush(done.clone())) {
        if Instant::now() >= until {
            return;
        }
        thread::park_timeout(PAUSE);
    }
    drop(done);
    let _ = is_done.recv_timeout(until.saturating_duration_since(Instant::now()));
}
