//! The state that servers share, as this process sees it.

use std::collections::BTreeMap;

use fetchwell_state::cursor::{KeyMismatch, LatestKeyMismatch};
use fetchwell_state::redis::RedisState;
use schemars::JsonSchema;
use serde::Serialize;

use crate::middleware::rate_limit::RateLimiter;

/// Status of a shared Redis that can be used.
const CONNECTED: &str = "connected";

/// Health of the state that servers share.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SharedStateHealth {
    pub(crate) backend: &'static str,
    /// Address without user and password.
    pub(crate) address: String,
    /// `connected`, or the reason why the server cannot be used, such as `unreachable`.
    pub(crate) status: &'static str,
    /// Commands of this process.
    pub(crate) commands: u64,
    /// Failed commands of this process by their reason.
    pub(crate) failures: BTreeMap<&'static str, u64>,
    /// Requests to this process that no rate limit counted.
    pub(crate) rate_limit_uncounted: u64,
    /// Difference between the keys of this server and those of others, if there is one. Compared every 20 seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_mismatch: Option<KeyMismatchHealth>,
}

/// Two keys that should be the same. Their ids are no secrets.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KeyMismatchHealth {
    /// Name of the file of keys in the state directory.
    pub(crate) file: &'static str,
    /// Id of the key of this server.
    pub(crate) own_key: String,
    /// Id of the key that other servers use.
    pub(crate) other_key: String,
    /// Difference between the keys, its effect and the remedy.
    pub(crate) problem: String,
}

impl From<KeyMismatch> for KeyMismatchHealth {
    fn from(mismatch: KeyMismatch) -> Self {
        let [own_key, other_key] = mismatch.keys().map(|key| key.to_string());
        Self { file: mismatch.file(), own_key, other_key, problem: mismatch.to_string() }
    }
}

impl SharedStateHealth {
    /// Checks a Redis with one command. Returns `None` if no state is shared.
    pub(crate) async fn read(
        redis: Option<&RedisState>,
        rate_limiter: &RateLimiter,
        key_mismatch: &LatestKeyMismatch,
    ) -> Option<Self> {
        let redis = redis?;
        let status = redis_status(redis).await;
        let counts = redis.counts();
        Some(Self {
            backend: "redis",
            address: redis.url().to_string(),
            status,
            commands: counts.commands,
            failures: counts.failures,
            rate_limit_uncounted: rate_limiter.uncounted(),
            key_mismatch: key_mismatch.get().map(KeyMismatchHealth::from),
        })
    }

    /// Returns true if the state can be used.
    pub(crate) fn is_connected(&self) -> bool {
        self.status == CONNECTED
    }

    /// Returns true if Redis is connected and all servers have the same keys.
    pub(crate) fn is_healthy(&self) -> bool {
        self.is_connected() && self.key_mismatch.is_none()
    }
}

/// Returns the status of a shared Redis.
pub(super) async fn redis_status(redis: &RedisState) -> &'static str {
    redis.time().await.map_or_else(|error| error.kind(), |_now| CONNECTED)
}
