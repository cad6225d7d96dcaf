//! Values with an expiry in a shared Redis. The values of one owner have a quota, beyond which the oldest are evicted,
//! never those of another owner.

use std::time::Duration;

use fetchwell_core::saturate::saturated;
use redis::Cmd;

use super::connection::RedisState;
use super::error::RedisError;

const PUT_VALUE: &str = include_str!("put_value.lua");

const TAKE_VALUE: &str = include_str!("take_value.lua");

const GET_VALUE: &str = include_str!("get_value.lua");

/// Maximum size of a value in bytes. None of ours is as large, so a larger one was written by another program.
const MAX_VALUE_BYTES: u64 = 16 * 1024 * 1024;

/// Quota of the values of one kind that an owner has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerLimits {
    /// Maximum size of the values in bytes.
    pub max_bytes: u64,
    /// Maximum number of values.
    pub max_values: u64,
}

/// A value to store.
#[derive(Debug, Clone, Copy)]
pub struct NewValue<'a> {
    /// Kind of value, which is a part of its key.
    pub kind: &'static str,
    /// Name of the value among those of its kind.
    pub name: &'a str,
    /// Owner of the value.
    pub owner: &'a str,
    /// The value, which the caller encrypted.
    pub value: &'a str,
    /// Time after which it is deleted.
    pub lifetime: Duration,
    /// Quota of the owner.
    pub limits: OwnerLimits,
    /// Treatment of a value that has the name already.
    pub if_exists: IfExists,
}

/// Treatment of a value that has the name of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// The stored value is kept, and the new one is not stored.
    Keep,
    /// The new value takes its place.
    Replace,
}

/// A stored value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredValue {
    /// The value; `None` if there is none, or no longer.
    pub value: Option<String>,
    /// Time of the server's clock since 1970.
    pub now: Duration,
}

/// Reply to `TIME`: seconds and microseconds.
type ServerTime = (u64, u64);

fn since_1970((seconds, micros): ServerTime) -> Duration {
    Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros))
}

impl RedisState {
    /// Returns the time of the server's clock since 1970.
    ///
    /// # Errors
    ///
    /// The server cannot be used.
    pub async fn time(&self) -> Result<Duration, RedisError> {
        self.run(Cmd::new().arg("TIME")).await.map(since_1970)
    }

    /// Stores a value and returns the time of the server's clock since 1970; `None` if another value is kept.
    ///
    /// # Errors
    ///
    /// The server cannot be used, or has no memory left.
    pub async fn put(&self, new: NewValue<'_>) -> Result<Option<Duration>, RedisError> {
        let NewValue { kind, name, owner, value, lifetime, limits, if_exists } = new;
        let mut command = self.script(PUT_VALUE, kind, name, owner);
        command.arg(value).arg(milliseconds(lifetime)).arg(limits.max_bytes).arg(limits.max_values);
        command.arg(match if_exists {
            IfExists::Keep => "keep",
            IfExists::Replace => "replace",
        });
        command.arg(MAX_VALUE_BYTES);
        let millis: u64 = self.run(&command).await?;
        Ok((millis > 0).then(|| Duration::from_millis(millis)))
    }

    /// Deletes a value and returns it.
    ///
    /// # Errors
    ///
    /// The server cannot be used.
    pub async fn take(
        &self,
        kind: &'static str,
        name: &str,
        owner: &str,
    ) -> Result<Option<String>, RedisError> {
        let mut command = self.script(TAKE_VALUE, kind, name, owner);
        command.arg(MAX_VALUE_BYTES);
        let value: Option<Vec<u8>> = self.run(&command).await?;
        Ok(value.and_then(text))
    }

    /// Returns the command that runs a script on a value and the list of its owner's values.
    fn script(&self, script: &'static str, kind: &str, name: &str, owner: &str) -> Cmd {
        let mut command = Cmd::new();
        command.arg("EVAL").arg(script).arg(3).arg(self.key(kind, name));
        // The keys of a kind are those of its values alone.
        for list in ["of", "bytes"] {
            command.arg(self.key(list, &format!("{kind}:{owner}")));
        }
        command
    }

    /// Returns a value with the time of the server's clock. A value of another type, a larger one than fetchwell stores, and
    /// one that is not UTF-8 were written by another program, and count as none.
    ///
    /// # Errors
    ///
    /// The server cannot be used.
    pub async fn get(&self, kind: &'static str, name: &str) -> Result<StoredValue, RedisError> {
        let mut command = Cmd::new();
        command.arg("EVAL").arg(GET_VALUE).arg(1).arg(self.key(kind, name)).arg(MAX_VALUE_BYTES);
        let (time, value): (ServerTime, Option<Vec<u8>>) = self.run(&command).await?;
        Ok(StoredValue { value: value.and_then(text), now: since_1970(time) })
    }
}

fn text(value: Vec<u8>) -> Option<String> {
    String::from_utf8(value).ok()
}

fn milliseconds(duration: Duration) -> u64 {
    saturated::<u64>(duration.as_millis()).max(1)
}
