//! Keys that are valid at one time: the newest one signs, and replaced ones still verify for a while.

use std::time::Duration;

use super::CursorFault;
use super::codec::{Claims, Key, KeyId, MAX_VALID_FOR, UnverifiedCursor, VALID_FOR, seal};

/// Time after which every process has noticed a new key.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);

/// Time for which a replaced key is kept: as long as any server may verify with it.
pub(super) const KEPT_FOR: Duration = MAX_VALID_FOR.saturating_add(NOTICED_WITHIN);

/// One or more keys.
#[derive(Debug, Clone)]
pub struct KeyRing {
    newest: Key,
    /// Older keys, each with the time at which it was replaced.
    replaced: Vec<(Key, Duration)>,
    /// Lifetime of a cursor.
    valid_for: Duration,
}

impl KeyRing {
    /// Creates a ring of one key.
    #[must_use]
    pub fn new(key: Key) -> Self {
        Self { newest: key, replaced: Vec::new(), valid_for: VALID_FOR }
    }

    /// Sets the lifetime of cursors.
    #[must_use]
    pub fn with_ttl(self, valid_for: Duration) -> Self {
        Self { valid_for, ..self }
    }

    /// Creates a ring of one random key.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let (mut id, mut secret) = ([0; 4], [0; 32]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        Ok(Self::new(Key::new(KeyId(id), &secret)))
    }

    /// Adds a newer key, which signs from `at` on.
    #[must_use]
    pub fn replaced_by(mut self, key: Key, at: Duration) -> Self {
        self.replaced.push((std::mem::replace(&mut self.newest, key), at));
        self
    }

    /// Returns the key that signs.
    #[must_use]
    pub fn newest(&self) -> &Key {
        &self.newest
    }

    /// Returns the key of an id, while a cursor that it signed can still be valid.
    #[must_use]
    pub fn key(&self, id: KeyId, now: Duration) -> Option<&Key> {
        // Another process may sign with a replaced key until it notices the new one, so the key verifies for that
        // much longer.
        let lives = |at: &Duration| now <= at.saturating_add(self.valid_for).saturating_add(NOTICED_WITHIN);
        let mut older = self.replaced.iter().rev().filter(|(_, at)| lives(at)).map(|(key, _)| key);
        if self.newest.id() == id { Some(&self.newest) } else { older.find(|key| key.id() == id) }
    }

    /// Encodes and signs a cursor.
    #[must_use]
    pub fn seal(&self, claims: &Claims) -> String {
        seal(&self.newest, claims)
    }

    /// Returns the contents of a cursor if a key of the ring signed it and it is valid at `now`.
    ///
    /// # Errors
    ///
    /// It is malformed, tampered or expired.
    pub fn open(&self, text: &str, now: Duration) -> Result<Claims, CursorFault> {
        let sealed = UnverifiedCursor::read(text)?;
        // An unknown key was replaced long ago or is another server's. Key ids are no secret, so the error may say
        // so.
        let key = self.key(sealed.key(), now).ok_or(CursorFault::Expired)?;
        let claims = sealed.verified(key)?;
        claims.check_time(now, self.valid_for).map(|()| claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Kind;

    fn key(number: u8) -> Key {
        Key::new(KeyId([0, 0, 0, number]), &[number; 32])
    }

    const START: Duration = Duration::from_secs(1_795_000_000);

    fn after(seconds: u64) -> Duration {
        START + Duration::from_secs(seconds)
    }

    fn claims(issued: Duration) -> Claims {
        Claims { kind: Kind::Records, issued, offset: 0, reference: [1; 16] }
    }

    #[test]
    fn a_rotation_breaks_no_live_cursor() {
        let before = KeyRing::new(key(1)).seal(&claims(after(99)));
        let ring = KeyRing::new(key(1)).replaced_by(key(2), after(100));
        let newer = ring.seal(&claims(after(100)));
        for (seconds, lives) in [(100, true), (699, true), (700, false)] {
            assert_eq!(ring.open(&before, after(seconds)).is_ok(), lives, "{seconds}");
        }
        assert!(ring.open(&newer, after(700)).is_ok());
        // A signature of an old key is invalid after its time, even if the cursor claims to be new.
        let late = KeyRing::new(key(1)).seal(&claims(after(800)));
        assert_eq!(ring.open(&late, after(801)), Err(CursorFault::Expired));
    }

    #[test]
    fn keys_are_told_apart() {
        let cursor = KeyRing::new(key(3)).seal(&claims(START));
        assert_eq!(KeyRing::new(key(1)).open(&cursor, START), Err(CursorFault::Expired));
        let forged = KeyRing::new(Key::new(key(1).id(), &[9; 32])).seal(&claims(START));
        assert_eq!(KeyRing::new(key(1)).open(&forged, START), Err(CursorFault::Tampered));
        let rings = [KeyRing::random().unwrap(), KeyRing::random().unwrap()];
        assert!(rings[1].open(&rings[0].seal(&claims(START)), START).is_err());
    }
}
