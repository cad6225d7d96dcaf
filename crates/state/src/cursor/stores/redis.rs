//! Positions in a Redis that servers share, so that one continues the cursor of another. The texts are encrypted; the
//! keys are in a file that all servers have, never in Redis.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_core::saturate::saturated;
use serde::{Deserialize, Serialize};

use crate::StateError;
use crate::cursor::clock::Clock;
use crate::cursor::codec::{Kind, Reference, reference_text};
use crate::cursor::positions::{Position, Positions};
use crate::redis::{IfExists, NewValue, OwnerLimits, RedisError, RedisState};

/// Kind of the values in Redis.
const KIND: &str = "position";

/// Quota of the positions of one grant: eight of the largest, or many thousands of common ones.
const GRANT_LIMITS: OwnerLimits = OwnerLimits { max_bytes: 48 * 1024 * 1024, max_values: 20_000 };

/// Positions in Redis, which deletes them when their cursors expire.
#[derive(Debug)]
pub(crate) struct RedisPositions {
    redis: RedisState,
    /// Clock of this process, which follows that of Redis.
    clock: Arc<Clock>,
    valid_for: Duration,
}

/// A position as Redis has it.
#[derive(Serialize, Deserialize)]
struct SerializedPosition<'a> {
    kind: u8,
    issued_ms: u64,
    offset: u32,
    binding: Cow<'a, str>,
    text: Cow<'a, str>,
}

impl RedisPositions {
    pub(crate) fn new(redis: RedisState, clock: Arc<Clock>, valid_for: Duration) -> Self {
        Self { redis, clock, valid_for }
    }
}

#[async_trait]
impl Positions for RedisPositions {
    async fn keep(&self, reference: Reference, position: Position) -> Result<Duration, StateError> {
        let serialized = SerializedPosition {
            kind: position.kind.byte(),
            issued_ms: saturated::<u64>(position.issued.as_millis()),
            offset: position.offset,
            binding: position.binding.as_str().into(),
            text: position.text.as_str().into(),
        };
        let value = serde_json::to_string(&serialized).unwrap_or_default();
        let new = NewValue {
            kind: KIND,
            name: &reference_text(reference),
            owner: position.owner(),
            value: &value,
            lifetime: self.valid_for,
            limits: GRANT_LIMITS,
            if_exists: IfExists::Keep,
        };
        // References are random: one that exists is not possible.
        let exists =
            || RedisError::Rejected { server: self.redis.url().to_string(), code: "EXISTS".to_owned() };
        let issued = self.redis.put(new).await?.ok_or_else(exists)?;
        self.clock.follow(issued);
        Ok(issued)
    }

    async fn find(&self, reference: Reference, _now: Duration) -> Result<Option<Position>, StateError> {
        let stored = self.redis.get(KIND, &reference_text(reference)).await?;
        self.clock.follow(stored.now);
        // A value that this release cannot read is of a newer one.
        let read = |text: &str| -> Option<Position> {
            let serialized: SerializedPosition<'_> = serde_json::from_str(text).ok()?;
            Some(Position {
                kind: Kind::of_byte(serialized.kind)?,
                issued: Duration::from_millis(serialized.issued_ms),
                offset: serialized.offset,
                binding: serialized.binding.into_owned(),
                text: serialized.text.into_owned(),
            })
        };
        Ok(stored.value.as_deref().and_then(read))
    }

    async fn expire(&self, _now: Duration) -> Result<(), StateError> {
        Ok(())
    }

    async fn synchronize(&self) -> Result<(), StateError> {
        self.clock.follow(self.redis.time().await?);
        Ok(())
    }
}
