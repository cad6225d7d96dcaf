//! The end of the input of a stdio server.
//!
//! Calls in flight continue as long as responses are written. Without this limit, a call of a source that does not respond would
//! keep the process running for seconds after its client has left.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Maximum time without a response after the end of the input.
const MAX_IDLE: Duration = Duration::from_millis(800);

/// Detects that a server writes no more responses after its input has ended.
#[derive(Debug)]
pub(crate) struct EndOfInput {
    /// Time of the end of the input, or of the last response after it.
    active: watch::Sender<Option<Instant>>,
}

impl EndOfInput {
    pub(crate) fn new() -> Self {
        Self { active: watch::Sender::new(None) }
    }

    /// Records the end of the input.
    pub(crate) fn reached(&self) {
        self.active.send_if_modified(|active| active.is_none() && active.replace(Instant::now()).is_none());
    }

    /// Records that a response was written.
    pub(crate) fn answered(&self) {
        self.active.send_if_modified(|active| active.is_some() && active.replace(Instant::now()).is_some());
    }

    /// Waits until the input has ended and no response was written for [`MAX_IDLE`].
    pub(crate) async fn idle(&self) {
        let mut active = self.active.subscribe();
        loop {
            let since = *active.borrow_and_update();
            match since {
                // The sender is `self`, which is not dropped meanwhile.
                None => drop(active.changed().await),
                Some(since) => tokio::select! {
                    () = sleep_until(since + MAX_IDLE) => return,
                    _ = active.changed() => {}
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_after_the_end_keep_a_server() {
        let end = EndOfInput::new();
        end.answered();
        let started = Instant::now();
        let rest = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            end.reached();
            for _ in 0..3 {
                tokio::time::sleep(MAX_IDLE / 2).await;
                end.answered();
                end.reached();
            }
        };
        tokio::join!(end.idle(), rest);
        assert_eq!(started.elapsed(), Duration::from_secs(60) + MAX_IDLE / 2 * 3 + MAX_IDLE);
    }
}
