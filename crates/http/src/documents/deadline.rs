//! The deadline of a call. All of its work shares one, also that of events behind the start of the response.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::error::DocumentError;

/// Time at which a call ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallDeadline {
    at: Instant,
    /// Duration of the whole call, for the error.
    within: Duration,
}

impl CallDeadline {
    /// Starts the time of a call.
    pub(super) fn from_now(within: Duration) -> Self {
        Self { at: Instant::now() + within, within }
    }

    /// Runs a part of the call. Returns an error if the call has no time left for it.
    pub(super) async fn limit<T>(
        self,
        work: impl Future<Output = Result<T, DocumentError>>,
    ) -> Result<T, DocumentError> {
        timeout_at(self.at, work).await.unwrap_or_else(|_late| Err(DocumentError::timeout(self.within)))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn parts_of_a_call_share_its_deadline() {
        let deadline = CallDeadline::from_now(Duration::from_millis(1_500));
        let started = Instant::now();
        let first = async {
            advance(Duration::from_millis(1_000)).await;
            Ok(())
        };
        assert!(deadline.limit(first).await.is_ok());
        let second = deadline.limit(std::future::pending::<Result<(), _>>()).await;
        let body = second.unwrap_err().body("r");
        assert!(body.contains("no answer within 1500 ms"));
        // The clock of the test is paused, so that it moves by the remaining time exactly.
        assert_eq!(started.elapsed().as_millis(), 1_500);
    }
}
