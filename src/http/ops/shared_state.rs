//! The state that servers share, as this process sees it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::http::middleware::rate_limit::RateLimiter;
use crate::state::redis::RedisState;

/// Status of a shared Redis that can be used.
const CONNECTED: &str = "connected";

/// Health of the state that servers share.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct SharedStateHealth {
    pub(in crate::http) backend: &'static str,
    /// Address without user and password.
    pub(in crate::http) address: String,
    /// `connected`, or the reason why the server cannot be used, such as `unreachable`.
    pub(in crate::http) status: &'static str,
    /// Commands of this process.
    pub(in crate::http) commands: u64,
    /// Failed commands of this process by their reason.
    pub(in crate::http) failures: BTreeMap<&'static str, u64>,
    /// Requests to this process that no rate limit counted.
    pub(in crate::http) rate_limit_uncounted: u64,
}

impl SharedStateHealth {
    /// Checks a Redis with one command.
    pub(in crate::http) async fn read(redis: &RedisState, rate_limiter: &RateLimiter) -> Self {
        let status = redis_status(redis).await;
        let counts = redis.counts();
        Self {
            backend: "redis",
            address: redis.url().to_string(),
            status,
            commands: counts.commands,
            failures: counts.failures,
            rate_limit_uncounted: rate_limiter.uncounted(),
        }
    }

    /// Returns true if the state can be used.
    pub(in crate::http) fn is_connected(&self) -> bool {
        self.status == CONNECTED
    }
}

/// Returns the status of a shared Redis.
pub(super) async fn redis_status(redis: &RedisState) -> &'static str {
    redis.time().await.map_or_else(|error| error.kind(), |_now| CONNECTED)
}
