//! Limits how often a failure of an authorization server is logged: a server that is down is down for every call.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// The shortest time between two log lines.
const LOGGED_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// The time of the latest log line.
#[derive(Debug, Default)]
pub(crate) struct FailureLog(Mutex<Option<Timestamp>>);

impl FailureLog {
    /// Returns whether a failure is to be logged now, and takes note that it is.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let mut logged_at = self.0.lock();
        let is_due = logged_at.is_none_or(|at| now.duration_since(at).abs() >= LOGGED_EVERY);
        if is_due {
            *logged_at = Some(now);
        }
        is_due
    }
}
