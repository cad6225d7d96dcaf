//! Condition of the connection to a shared Redis, and what failed since the start of the process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::error::RedisError;

/// Answer of a server to a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisStatus {
    /// Version of the server, such as `7.0.15`.
    pub version: String,
    /// True if the connection is encrypted.
    pub is_encrypted: bool,
    /// Behaviour of the server when its memory limit is reached, such as `noeviction`.
    pub eviction: Option<String>,
    /// Time of the server's clock since 1970.
    pub now: Duration,
}

/// Counts of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// Number of commands.
    pub commands: u64,
    /// Failed commands by the kind of their error.
    pub failures: BTreeMap<&'static str, u64>,
    /// Kind of the error of the latest command; `None` if it succeeded.
    pub latest_failure: Option<&'static str>,
}

/// Counters behind [`StateCounts`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    commands: AtomicU64,
    failures: Mutex<(BTreeMap<&'static str, u64>, Option<&'static str>)>,
}

impl Counters {
    /// Counts a command. Logs the first failure after a success, and the first success after a failure.
    pub(super) fn count<Value>(&self, outcome: &Result<Value, RedisError>) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        let mut failures = self.failures.lock();
        let failure = outcome.as_ref().err();
        let kind = failure.map(RedisError::kind);
        if let Some(kind) = kind {
            *failures.0.entry(kind).or_default() += 1;
        }
        match (failures.1, failure) {
            (before, Some(error)) if before != kind => tracing::warn!(%error, "shared state"),
            (Some(_), None) => tracing::info!("shared state is available again"),
            (_, _) => {}
        }
        failures.1 = kind;
    }

    pub(super) fn counts(&self) -> StateCounts {
        let failures = self.failures.lock();
        StateCounts {
            commands: self.commands.load(Ordering::Relaxed),
            failures: failures.0.clone(),
            latest_failure: failures.1,
        }
    }
}
