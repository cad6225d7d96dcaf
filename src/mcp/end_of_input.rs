//! The end of the input of a stdio server.
//!
//! Calls in flight are answered for as long as answers are written. A call to a source that does not answer would keep the
//! process for seconds after its client has left.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The longest time without an answer once the input has ended.
const MAX_IDLE: Duration = Duration::from_millis(800);

/// Tells when a server whose input has ended writes no more answers.
#[derive(Debug)]
pub(super) struct EndOfInput {
    /// The end of the input or the last answer after it, whichever is later.
    active: watch::Sender<Option<Instant>>,
}

impl EndOfInput {
    pub(super) fn new() -> Self {
        Self { active: watch::Sender::new(None) }
    }

    /// Notes that the input has ended.
    pub(super) fn reached(&self) {
        self.active.send_if_modified(|active| active.is_none() && active.replace(Instant::now()).is_none());
    }

    /// Notes that an answer was written.
    pub(super) fn answered(&self) {
        self.active.send_if_modified(|active| active.is_some() && active.replace(Instant::now()).is_some());
    }

    /// Waits until the input has ended and no answer was written for [`MAX_IDLE`].
    pub(super) async fn idle(&self) {
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
