//! Rate limits that all servers count together: the generic cell rate algorithm in one script, with the time of Redis.

use std::num::NonZeroU32;
use std::time::Duration;

use fetchwell_core::saturate::saturated;
use redis::Cmd;

use super::connection::RedisState;
use super::error::RedisError;

const TAKE_PERMIT: &str = include_str!("take_permit.lua");

/// Kind of the values.
const KIND: &str = "rate";

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPermit {
    /// Number of requests that remain.
    pub remaining: u32,
    /// Time until the bucket is full.
    pub full_in: Duration,
    /// Time until the next request is allowed, if this one is refused.
    pub wait: Option<Duration>,
}

impl RedisState {
    /// Counts a request of a client, with `burst` requests that are refilled within `per`.
    ///
    /// # Errors
    ///
    /// The server cannot be used.
    pub async fn take_permit(
        &self,
        client: &str,
        burst: NonZeroU32,
        per: Duration,
    ) -> Result<SharedPermit, RedisError> {
        let interval = (per / burst.get()).as_micros().max(1);
        // Another limit has other buckets.
        let name = format!("{burst}:{}:{client}", per.as_millis());
        let mut command = Cmd::new();
        command.arg("EVAL").arg(TAKE_PERMIT).arg(1).arg(self.key(KIND, &name));
        command.arg(saturated::<u64>(interval)).arg(burst.get());
        let (is_allowed, remaining, full_in, wait): (u8, u32, u64, u64) = self.run(&command).await?;
        Ok(SharedPermit {
            remaining,
            full_in: Duration::from_micros(full_in),
            wait: (is_allowed == 0).then(|| Duration::from_micros(wait)),
        })
    }
}
