//! Keys of a running process, which follow their file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::CursorFault;
use super::codec::{Claims, Key, KeyId, UnverifiedCursor, VALID_FOR};
use super::key_file::{KeyFile, Stamp};
use super::key_ring::KeyRing;
use crate::StateError;

/// Time after which a process that signs checks the file for a new key.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Keys that sign and verify.
#[derive(Debug)]
pub struct Keys {
    file: Option<KeyFile>,
    held: Mutex<CurrentKeys>,
    /// Lifetime of a cursor.
    valid_for: Duration,
}

#[derive(Debug)]
struct CurrentKeys {
    ring: Arc<KeyRing>,
    stamp: Option<Stamp>,
    checked_at: Instant,
}

impl Keys {
    /// Creates one random key, which ends with the process.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub fn in_memory() -> Result<Self, getrandom::Error> {
        Ok(Self::new(KeyRing::random()?))
    }

    /// Creates keys that never change.
    #[must_use]
    pub fn new(ring: KeyRing) -> Self {
        let held = CurrentKeys { ring: Arc::new(ring), stamp: None, checked_at: Instant::now() };
        Self { file: None, held: Mutex::new(held), valid_for: VALID_FOR }
    }

    /// Sets the lifetime of cursors.
    #[must_use]
    pub fn with_ttl(self, valid_for: Duration) -> Self {
        let held = self.held.into_inner();
        let ring = Arc::new(KeyRing::clone(&held.ring).with_ttl(valid_for));
        Self { held: Mutex::new(CurrentKeys { ring, ..held }), valid_for, ..self }
    }

    /// Loads the keys of a file, which is created if it is missing.
    ///
    /// # Errors
    ///
    /// The file cannot be made or read, others can read it, or it is damaged.
    pub fn of_file(file: KeyFile, now: Duration) -> Result<Self, StateError> {
        let loaded = file.load_or_create(now)?;
        let held = CurrentKeys {
            ring: Arc::new(loaded.ring),
            stamp: Some(loaded.stamp),
            checked_at: Instant::now(),
        };
        Ok(Self { file: Some(file), held: Mutex::new(held), valid_for: VALID_FOR })
    }

    /// Returns all keys, from the file if it has changed.
    pub(super) fn current(&self, now: Duration) -> Arc<KeyRing> {
        self.ring(now, |_held| true)
    }

    /// Returns the key that signs.
    #[must_use]
    pub fn newest(&self, now: Duration) -> Key {
        self.ring(now, |held| held.checked_at.elapsed() >= CHECK_INTERVAL).newest().clone()
    }

    /// Returns the key of an id, while a cursor that it signed can still be valid.
    #[must_use]
    pub fn key(&self, id: KeyId, now: Duration) -> Option<Key> {
        // An unknown key may be the newest one of another process.
        let ring = self.ring(now, |held| held.ring.key(id, now).is_none());
        ring.key(id, now).cloned()
    }

    /// Encodes and signs a cursor.
    #[must_use]
    pub fn seal(&self, claims: &Claims, now: Duration) -> String {
        self.ring(now, |held| held.checked_at.elapsed() >= CHECK_INTERVAL).seal(claims)
    }

    /// Returns the contents of a cursor if one of the keys signed it and it is valid at `now`.
    ///
    /// # Errors
    ///
    /// It is malformed, tampered or expired.
    pub fn open(&self, text: &str, now: Duration) -> Result<Claims, CursorFault> {
        let id = UnverifiedCursor::read(text)?.key();
        self.ring(now, |held| held.ring.key(id, now).is_none()).open(text, now)
    }

    /// Returns the ring, read again if there is a reason to check and the file has changed.
    fn ring(&self, now: Duration, has_reason: impl Fn(&CurrentKeys) -> bool) -> Arc<KeyRing> {
        let mut held = self.held.lock();
        if let Some(file) = self.file.as_ref().filter(|_| has_reason(&held)) {
            held.checked_at = Instant::now();
            if file.stamp() != held.stamp {
                match file.load_or_create(now) {
                    Ok(loaded) => {
                        let ring = loaded.ring.with_ttl(self.valid_for);
                        (held.ring, held.stamp) = (Arc::new(ring), Some(loaded.stamp));
                    }
                    // The known keys stay valid; those that a repaired file adds are found later.
                    Err(error) => tracing::warn!(%error, "cursor keys"),
                }
            }
        }
        Arc::clone(&held.ring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::{Kind, seal};

    const NOW: Duration = Duration::from_secs(1_795_000_000);

    #[test]
    fn keys_follow_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::in_directory(folder.path());
        let keys = Keys::of_file(file.clone(), NOW).unwrap();
        let claims = Claims { kind: Kind::Search, issued: NOW, offset: 0, reference: [0; 16] };
        let old = keys.seal(&claims, NOW);
        // Another process rotates and signs at once, and its cursor is valid here.
        let newer = file.rotate(NOW).unwrap().ring.newest().clone();
        let theirs = seal(&newer, &claims);
        assert_eq!(keys.open(&theirs, NOW), Ok(claims));
        assert_eq!(keys.open(&old, NOW), Ok(claims));
        assert_eq!(keys.newest(NOW).id(), newer.id());
        // A file that is damaged later changes nothing; a deleted file invalidates all cursors.
        std::fs::write(folder.path().join("cursor-keys.json"), "broken").unwrap();
        let unknown = seal(KeyRing::random().unwrap().newest(), &claims);
        assert_eq!(keys.open(&unknown, NOW), Err(CursorFault::Expired));
        assert_eq!(keys.open(&old, NOW), Ok(claims));
        std::fs::remove_file(folder.path().join("cursor-keys.json")).unwrap();
        assert_eq!(keys.open(&unknown, NOW), Err(CursorFault::Expired));
        assert_eq!(keys.open(&old, NOW), Err(CursorFault::Expired));
    }
}
