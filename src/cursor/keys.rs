//! The keys of a running process, which follow the file they are from.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::CursorFault;
use super::codec::{Claims, Key, KeyId, Sealed, VALID_FOR};
use super::key_file::{KeyFile, Stamp};
use super::key_ring::KeyRing;
use crate::state::StateError;

/// How long a key that another process added may go unnoticed by one that signs.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Keys that sign and verify.
#[derive(Debug)]
pub struct Keys {
    file: Option<KeyFile>,
    held: Mutex<CurrentKeys>,
    /// How long a cursor is valid.
    valid_for: Duration,
}

#[derive(Debug)]
struct CurrentKeys {
    ring: Arc<KeyRing>,
    stamp: Option<Stamp>,
    looked: Instant,
}

impl Keys {
    /// One random key, which ends with the process.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub fn in_memory() -> Result<Self, getrandom::Error> {
        Ok(Self::of(KeyRing::random()?))
    }

    /// These, for ever.
    #[must_use]
    pub fn of(ring: KeyRing) -> Self {
        let held = CurrentKeys { ring: Arc::new(ring), stamp: None, looked: Instant::now() };
        Self { file: None, held: Mutex::new(held), valid_for: VALID_FOR }
    }

    /// Returns the keys of a server whose cursors are valid for so long.
    #[must_use]
    pub fn with_ttl(self, valid_for: Duration) -> Self {
        let held = self.held.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ring = Arc::new(KeyRing::clone(&held.ring).with_ttl(valid_for));
        Self { held: Mutex::new(CurrentKeys { ring, ..held }), valid_for, ..self }
    }

    /// Those of a file, which is made when it is not there.
    ///
    /// # Errors
    ///
    /// The file cannot be made or read, others can read it, or it is damaged.
    pub fn of_file(file: KeyFile, now: Duration) -> Result<Self, StateError> {
        let loaded = file.load_or_create(now)?;
        let held =
            CurrentKeys { ring: Arc::new(loaded.ring), stamp: Some(loaded.stamp), looked: Instant::now() };
        Ok(Self { file: Some(file), held: Mutex::new(held), valid_for: VALID_FOR })
    }

    /// The key to sign with.
    #[must_use]
    pub fn newest(&self, now: Duration) -> Key {
        self.ring(now, |held| held.looked.elapsed() >= LOOK_EVERY).newest().clone()
    }

    /// The key of an id, while what it signed can still be valid.
    #[must_use]
    pub fn key(&self, id: KeyId, now: Duration) -> Option<Key> {
        // A key that is not known may be another process's newest.
        let ring = self.ring(now, |held| held.ring.key(id, now).is_none());
        ring.key(id, now).cloned()
    }

    /// The cursor of claims.
    #[must_use]
    pub fn seal(&self, claims: &Claims, now: Duration) -> String {
        self.ring(now, |held| held.looked.elapsed() >= LOOK_EVERY).seal(claims)
    }

    /// What a cursor claims, when one of the keys sealed it and it is valid at `now`.
    ///
    /// # Errors
    ///
    /// It is malformed, tampered or expired.
    pub fn open(&self, text: &str, now: Duration) -> Result<Claims, CursorFault> {
        let id = Sealed::read(text)?.key();
        self.ring(now, |held| held.ring.key(id, now).is_none()).open(text, now)
    }

    /// The ring, read again when there is reason to look and the file is another.
    fn ring(&self, now: Duration, has_reason: impl Fn(&CurrentKeys) -> bool) -> Arc<KeyRing> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = self.file.as_ref().filter(|_| has_reason(&held)) {
            held.looked = Instant::now();
            if file.stamp() != held.stamp {
                match file.load_or_create(now) {
                    Ok(loaded) => {
                        let ring = loaded.ring.with_ttl(self.valid_for);
                        (held.ring, held.stamp) = (Arc::new(ring), Some(loaded.stamp));
                    }
                    // The keys that are known stay good; those that a mended file adds are found later.
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
        // Another process rotates, signs at once, and its cursor is good here.
        let newer = file.rotate(NOW).unwrap().ring.newest().clone();
        let theirs = seal(&newer, &claims);
        assert_eq!(keys.open(&theirs, NOW), Ok(claims));
        assert_eq!(keys.open(&old, NOW), Ok(claims));
        assert_eq!(keys.newest(NOW).id(), newer.id());
        // A file that is broken later changes nothing; one that is deleted ends all cursors.
        std::fs::write(folder.path().join("cursor-keys.json"), "broken").unwrap();
        let unknown = seal(KeyRing::random().unwrap().newest(), &claims);
        assert_eq!(keys.open(&unknown, NOW), Err(CursorFault::Expired));
        assert_eq!(keys.open(&old, NOW), Ok(claims));
        std::fs::remove_file(folder.path().join("cursor-keys.json")).unwrap();
        assert_eq!(keys.open(&unknown, NOW), Err(CursorFault::Expired));
        assert_eq!(keys.open(&old, NOW), Err(CursorFault::Expired));
    }
}
