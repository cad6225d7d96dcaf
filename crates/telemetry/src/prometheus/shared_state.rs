//! Metrics of the state that servers share, as one process sees it.

use fetchwell_state::redis::StateCounts;

use super::exposition::{Exposition, Type};

/// Returns the metrics of a shared Redis, with the number of requests that no rate limit counted.
#[must_use]
pub fn shared_state_metrics(counts: &StateCounts, uncounted: u64) -> String {
    let mut text = Exposition::default();
    let is_up = u8::from(counts.commands > 0 && counts.latest_failure.is_none());
    let name = "fetchwell_shared_state_up";
    text.metric(name, Type::Gauge, "1 if the latest command of this process to the shared Redis succeeded.");
    text.sample(name, &[("backend", "redis")], is_up);
    let name = "fetchwell_shared_state_commands_total";
    text.single(name, Type::Counter, "Commands of this process to the shared Redis.", counts.commands);
    let name = "fetchwell_shared_state_failures_total";
    text.metric(name, Type::Counter, "Failed commands of this process to the shared Redis.");
    for (kind, count) in &counts.failures {
        text.sample(name, &[("reason", kind)], count);
    }
    let name = "fetchwell_rate_limit_uncounted_total";
    let help = "Requests that no rate limit counted, because the shared Redis could not be used.";
    text.single(name, Type::Counter, help, uncounted);
    text.into_text()
}
