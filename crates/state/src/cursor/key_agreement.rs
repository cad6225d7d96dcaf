//! Detects servers that share a Redis but have different keys. Cursors, sessions and links of one are not valid on the other.
//!
//! Redis has the ids of the keys in use, which are no secrets.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::codec::KeyId;
use super::cursors::Cursors;
use super::key_file::{CHANGE_KEY, CURSOR_KEYS, KeyFile};
use super::key_ring::KeyRing;
use crate::StateError;
use crate::redis::{IfExists, NewValue, OwnerLimits, RedisError, RedisState};

/// Kind of the ids in Redis. Their names are those of the files.
const KIND: &str = "keys";

/// Time after which an id is deleted, unless a server confirms it. Several times the interval of confirmations.
const LIFETIME: Duration = Duration::from_secs(120);

/// Limits of the two ids.
const LIMITS: OwnerLimits = OwnerLimits { max_bytes: 1_024, max_values: 16 };

/// A difference between a key of this server and that of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyMismatch {
    /// Name of the file.
    file: &'static str,
    own: KeyId,
    other: KeyId,
}

impl fmt::Display for KeyMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, own, other } = self;
        write!(
            f,
            "servers that share this Redis have different keys: {file} of this server has the key {own}, and another server uses \
             {other}, so each of them refuses the cursors, sessions and links of the other; copy {CURSOR_KEYS} and {CHANGE_KEY} \
             from one server to all others, and restart these"
        )
    }
}

impl KeyMismatch {
    /// Returns the name of the file with the key of this server.
    #[must_use]
    pub fn file(&self) -> &'static str {
        self.file
    }

    /// Returns the id of this server's key and that of the other server's key. Ids are no secrets.
    #[must_use]
    pub fn keys(&self) -> [KeyId; 2] {
        [self.own, self.other]
    }
}

/// The result of the latest comparison of keys. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LatestKeyMismatch(Arc<Mutex<Option<KeyMismatch>>>);

impl LatestKeyMismatch {
    /// Returns the difference, or `None` if there is none or keys were not compared yet.
    #[must_use]
    pub fn get(&self) -> Option<KeyMismatch> {
        *self.0.lock()
    }

    /// Replaces the result. Returns the earlier one.
    pub fn replace(&self, mismatch: Option<KeyMismatch>) -> Option<KeyMismatch> {
        std::mem::replace(&mut *self.0.lock(), mismatch)
    }
}

/// The keys of one file, which are compared with the id in Redis.
struct FileKeys<'r> {
    file: &'static str,
    ring: &'r KeyRing,
    now: Duration,
}

impl Cursors {
    /// Compares the keys of this server with those of others. Registers them if they are the same, and returns the first
    /// difference.
    ///
    /// # Errors
    ///
    /// Redis cannot be used.
    pub async fn confirm_shared_keys(&self) -> Result<Option<KeyMismatch>, RedisError> {
        let Some(redis) = self.redis() else { return Ok(None) };
        let now = self.now();
        for (file, keys) in [(CURSOR_KEYS, self.keys().await), (CHANGE_KEY, self.change_keys().await)] {
            let ring = keys.current(now);
            let keys = FileKeys { file, ring: &ring, now };
            if let Some(mismatch) = keys.register(redis).await? {
                return Ok(Some(mismatch));
            }
        }
        Ok(None)
    }
}

/// Compares the keys of a state directory with those of running servers. Returns the first difference, and nothing for files
/// that do not exist.
///
/// # Errors
///
/// A file or Redis cannot be used.
pub async fn compare_shared_keys(
    directory: &Path,
    redis: &RedisState,
) -> Result<Option<KeyMismatch>, StateError> {
    let now = redis.time().await?;
    for file in [KeyFile::in_directory(directory), KeyFile::for_changes(directory)] {
        let Some(loaded) = file.load()? else { continue };
        let keys = FileKeys { file: file.name(), ring: &loaded.ring, now };
        if let Some(mismatch) = keys.registered(redis).await?.and_then(|id| keys.mismatch(id)) {
            return Ok(Some(mismatch));
        }
    }
    Ok(None)
}

impl FileKeys<'_> {
    /// Registers the newest key, unless Redis has the id of a key that is not in the file.
    async fn register(&self, redis: &RedisState) -> Result<Option<KeyMismatch>, RedisError> {
        let registered = redis.get(KIND, self.file).await?.value;
        if let Some(mismatch) = registered.as_deref().and_then(KeyId::parse).and_then(|id| self.mismatch(id))
        {
            return Ok(Some(mismatch));
        }
        // A text that is no id was written by another program.
        let if_exists = if registered.is_some() { IfExists::Replace } else { IfExists::Keep };
        let id = self.ring.newest().id().to_string();
        let (lifetime, limits) = (LIFETIME, LIMITS);
        let new =
            NewValue { kind: KIND, name: self.file, owner: "", value: &id, lifetime, limits, if_exists };
        if redis.put(new).await?.is_some() {
            return Ok(None);
        }
        // Another server was first.
        Ok(self.registered(redis).await?.and_then(|id| self.mismatch(id)))
    }

    /// Returns the id of the key that servers use now.
    async fn registered(&self, redis: &RedisState) -> Result<Option<KeyId>, RedisError> {
        let id = redis.get(KIND, self.file).await?.value;
        Ok(id.and_then(|id| KeyId::parse(&id)))
    }

    /// Returns a mismatch if the file has no key with this id. A rotated key that is still valid counts as known.
    fn mismatch(&self, other: KeyId) -> Option<KeyMismatch> {
        let is_known = self.ring.key(other, self.now).is_some();
        (!is_known).then(|| KeyMismatch { file: self.file, own: self.ring.newest().id(), other })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_795_000_000);

    #[test]
    fn a_rotated_key_is_no_difference() {
        let (old, new) = (KeyRing::random().unwrap(), KeyRing::random().unwrap());
        let rotated = old.clone().replaced_by(new.newest().clone(), NOW);
        let mismatch = |ring: &KeyRing, other: &KeyRing| {
            FileKeys { file: CURSOR_KEYS, ring, now: NOW }.mismatch(other.newest().id())
        };
        assert_eq!(mismatch(&rotated, &old), None);
        assert_eq!(mismatch(&rotated, &rotated), None);
        let found = mismatch(&old, &rotated).unwrap();
        assert_eq!(found.other, new.newest().id());
        let shown = found.to_string();
        assert!(shown.contains(&found.own.to_string()) && shown.contains("cursor-keys.json"), "{shown}");
    }
}
