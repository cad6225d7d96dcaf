//! Waits for what another thread or process does.

use std::time::{Duration, Instant};

/// Waits until something is so, and panics if it does not become so.
#[track_caller]
pub(crate) fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    wait_until_or(|| what.to_owned(), is_so);
}

/// As [`wait_until`], with a description that is made for the panic.
#[track_caller]
pub(crate) fn wait_until_or(describe: impl Fn() -> String, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited in vain until {}", describe());
        std::thread::park_timeout(Duration::from_millis(10));
    }
}
