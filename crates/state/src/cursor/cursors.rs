//! Keys and stored positions of cursors, and the position of a cursor.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hmac::Mac;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::CursorFault;
use super::clock::{Clock, Skew};
use super::codec::{Kind, Reference, VALID_FOR, reference_text};
use super::keys::Keys;
use super::positions::{Position, Positions};
use super::sealed_text::{open_text, seal_text};
use super::storage::{PositionEncryption, StatePlace, Storage};
use crate::StateError;
use crate::redis::RedisState;

/// Maximum size of a position in bytes: ten times that of 200 hits with long excerpts.
pub(super) const MAX_POSITION_BYTES: usize = 4 * 1024 * 1024;

/// Reason why a cursor has no position.
#[derive(Debug, thiserror::Error)]
pub enum NoPosition {
    /// The cursor is invalid.
    #[error(transparent)]
    Refused(#[from] CursorFault),
    /// The stored positions cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Keys, a clock and the stored positions.
#[derive(Debug)]
pub struct Cursors {
    pub(super) clock: Arc<Clock>,
    storage: OnceCell<Storage>,
    /// Place of the state, if it is opened at the first use.
    place: Option<StatePlace>,
    /// Redis that servers share.
    redis: Option<RedisState>,
    /// Keys of cursors that end with the process.
    process_keys: Keys,
    /// Lifetime of a cursor.
    pub(super) valid_for: Duration,
    /// Observer of the encoding time of each cursor.
    pub(super) encoded: OnceLock<EncodeObserver>,
    /// True if a task waits to delete expired positions, which contain queries and must not stay until the next call.
    waiting: Arc<AtomicBool>,
}

/// Context of the encryption of positions in Redis, beside their reference and binding.
const SHARED_POSITION: &str = "shared position";

/// Clock offset and lifetime of cursors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Offset of the clock.
    pub skew: Skew,
    /// Lifetime of a cursor, at most an hour.
    pub valid_for: Duration,
}

impl From<Skew> for Timing {
    fn from(skew: Skew) -> Self {
        Self { skew, valid_for: VALID_FOR }
    }
}

/// Receives the encoding time of a cursor.
pub(super) struct EncodeObserver(pub(super) Box<dyn Fn(Duration) + Send + Sync>);

impl fmt::Debug for EncodeObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncodeObserver")
    }
}

impl Cursors {
    /// Creates cursors that end with the process.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub fn in_memory(timing: impl Into<Timing>) -> Result<Self, getrandom::Error> {
        let cursors = Self::unopened(timing.into(), None)?;
        let _ = cursors.storage.set(Storage::in_memory(cursors.valid_for));
        Ok(cursors)
    }

    /// Creates cursors that outlive the process, in a state directory that is opened at the first use. If it cannot
    /// be used, they end with the process.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub fn lazily_in_directory(
        place: impl Into<StatePlace>,
        timing: impl Into<Timing>,
    ) -> Result<Self, getrandom::Error> {
        Self::unopened(timing.into(), Some(place.into()))
    }

    /// Creates cursors that outlive the process, in a state directory that several processes may share, or with the
    /// keys of the directory in a Redis that several servers share. Missing files are created.
    ///
    /// # Errors
    ///
    /// The directory, its key file or its store cannot be used.
    pub fn in_directory(place: impl Into<StatePlace>, timing: impl Into<Timing>) -> Result<Self, StateError> {
        let cursors = Self::unopened(timing.into(), Some(place.into()))?;
        if let Some(place) = cursors.place.clone() {
            let _ = cursors.storage.set(Storage::open(place, &cursors.clock, cursors.valid_for)?);
        }
        Ok(cursors)
    }

    fn unopened(timing: Timing, place: Option<StatePlace>) -> Result<Self, getrandom::Error> {
        let Timing { skew, valid_for } = timing;
        Ok(Self {
            clock: Arc::new(Clock::new(skew)),
            storage: OnceCell::new(),
            redis: place.as_ref().and_then(|place| place.redis.clone()),
            place,
            process_keys: Keys::in_memory()?.with_ttl(valid_for),
            valid_for,
            encoded: OnceLock::new(),
            waiting: Arc::default(),
        })
    }

    /// Returns keys and positions. Opens the directory at the first use, on a blocking thread.
    pub(super) async fn storage(&self) -> &Storage {
        let open = async || {
            let Some(place) = self.place.clone() else { return Storage::in_memory(self.valid_for) };
            let (clock, valid_for) = (Arc::clone(&self.clock), self.valid_for);
            match spawn_blocking(move || Storage::open(place, &clock, valid_for)).await {
                Ok(Ok(storage)) => storage,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "cursors end with this process");
                    Storage::in_memory(valid_for)
                }
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            }
        };
        self.storage.get_or_init(open).await
    }

    /// Waits until the positions of all cursors so far outlive the process, or cannot. Waits at most `timeout`.
    pub async fn flush(&self, timeout: Duration) {
        if let Some(storage) = self.storage.get() {
            let _ = tokio::time::timeout(timeout, storage.positions.flush()).await;
        }
    }

    /// Encrypts the text of a position, unless its store does so.
    pub(super) async fn encrypt_position(&self, reference: Reference, binding: &str, text: String) -> String {
        match self.storage().await.encryption {
            PositionEncryption::ByStore => text,
            PositionEncryption::Shared => {
                self.seal_text(&[SHARED_POSITION, &reference_text(reference), binding], &text).await
            }
        }
    }

    /// Decrypts what [`Self::encrypt_position`] returned, or returns `None` if its key is gone.
    async fn decrypt_position(&self, reference: Reference, binding: &str, text: String) -> Option<String> {
        match self.storage().await.encryption {
            PositionEncryption::ByStore => Some(text),
            PositionEncryption::Shared => {
                self.open_text(&[SHARED_POSITION, &reference_text(reference), binding], &text).await.ok()
            }
        }
    }

    /// Reports the encoding time of each cursor to `observer`. Only the first observer is used.
    pub fn observe_encoding(&self, observer: impl Fn(Duration) + Send + Sync + 'static) {
        let _ = self.encoded.set(EncodeObserver(Box::new(observer)));
    }

    /// Returns the signing keys, for other texts that are signed.
    pub(super) async fn keys(&self) -> &Keys {
        self.storage().await.keys.as_ref().map_or(&self.process_keys, |(cursors, _)| cursors)
    }

    /// Returns the keys of change tokens, from the state directory if there is one. `cursor rotate` does not replace
    /// them.
    pub(super) async fn change_keys(&self) -> &Keys {
        self.storage().await.keys.as_ref().map_or(&self.process_keys, |(_, changes)| changes)
    }

    /// Returns a secret for one purpose, which all servers with the same key files have; `None` if the keys end with
    /// the process.
    #[must_use]
    pub fn derived_secret(&self, purpose: &str) -> Option<[u8; 32]> {
        let (_, lasting) = self.storage.get()?.keys.as_ref()?;
        let key = lasting.newest(self.now());
        Some(key.mac_of(&[b"secret for", purpose.as_bytes()]).finalize().into_bytes().into())
    }

    /// Returns the Redis that servers share, if there is one.
    #[must_use]
    pub fn redis(&self) -> Option<&RedisState> {
        self.redis.as_ref()
    }

    /// Returns the time since 1970, by a clock that does not go back.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Returns the position of a cursor of a kind.
    ///
    /// # Errors
    ///
    /// The cursor is not one of these, its time is over, or positions cannot be read.
    pub async fn position(&self, kind: Kind, cursor: &str) -> Result<Position, NoPosition> {
        // Opening may set the clock forward.
        let Storage { positions, .. } = self.storage().await;
        let keys = self.keys().await;
        let mut opened = keys.open(cursor, self.clock.now());
        if matches!(opened, Err(CursorFault::Expired | CursorFault::NotYetValid)) {
            // The clock of this process may differ from the one that servers share.
            positions.synchronize().await?;
            opened = keys.open(cursor, self.clock.now());
        }
        let now = self.clock.now();
        let claims = match opened {
            Ok(claims) => claims,
            Err(CursorFault::Expired) => {
                // The expiry is stored, so that a clock that is set back does not revive the cursor. A failure to
                // store it does not change the answer.
                if let Err(error) = positions.expire(now).await {
                    tracing::warn!(%error, "cursor store");
                }
                return Err(CursorFault::Expired.into());
            }
            Err(fault) => return Err(fault.into()),
        };
        if claims.kind != kind {
            return Err(CursorFault::Mismatched.into());
        }
        let position = positions.find(claims.reference, now).await?;
        let position = position.filter(|position| position.kind == kind).ok_or(CursorFault::Expired)?;
        let text = self.decrypt_position(claims.reference, &position.binding, position.text).await;
        Ok(Position { text: text.ok_or(CursorFault::Expired)?, ..position })
    }
}

impl Cursors {
    /// Deletes positions after they have expired, even if no call is made meanwhile.
    pub(super) fn expire_after(&self, wait: Duration, positions: &Arc<dyn Positions>) {
        if self.waiting.swap(true, Ordering::Relaxed) {
            return;
        }
        let (clock, positions) = (Arc::clone(&self.clock), Arc::clone(positions));
        let waiting = Arc::clone(&self.waiting);
        tokio::spawn(async move {
            // Twice: positions issued during the first wait are deleted after the second.
            for _ in 0..2 {
                tokio::time::sleep(wait).await;
                waiting.store(false, Ordering::Relaxed);
                if let Err(error) = positions.expire(clock.now()).await {
                    tracing::warn!(%error, "cursor store");
                }
            }
        });
    }
}

impl Cursors {
    /// Encrypts a text with the newest key. Equal texts have equal results: the nonce is a MAC of the text, so no
    /// nonce is used for two texts.
    pub async fn seal_text(&self, context: &[&str], text: &str) -> String {
        seal_text(&self.keys().await.newest(self.now()), context, text)
    }

    /// Encrypts a text as [`Self::seal_text`], with the key that `cursor rotate` does not replace.
    pub async fn seal_lasting_text(&self, context: &[&str], text: &str) -> String {
        seal_text(&self.change_keys().await.newest(self.now()), context, text)
    }

    /// Returns the text of [`Self::seal_lasting_text`] for the same context.
    ///
    /// # Errors
    ///
    /// As [`Self::open_text`].
    pub async fn open_lasting_text(&self, context: &[&str], sealed: &str) -> Result<String, CursorFault> {
        let keys = self.change_keys().await;
        open_text(|id| keys.key(id, self.now()), context, sealed)
    }

    /// Returns the text of [`Self::seal_text`] for the same context.
    ///
    /// # Errors
    ///
    /// `Malformed` if it is not a sealed text; `Mismatched` if it was sealed for another context or with a key that was
    /// deleted, which cannot be distinguished.
    pub async fn open_text(&self, context: &[&str], sealed: &str) -> Result<String, CursorFault> {
        let keys = self.keys().await;
        open_text(|id| keys.key(id, self.now()), context, sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::{Database, SqlitePositions};

    #[track_caller]
    fn refused(answer: Result<Position, NoPosition>) -> CursorFault {
        match answer {
            Err(NoPosition::Refused(fault)) => fault,
            other => panic!("{other:?}"),
        }
    }

    async fn issue(cursors: &Cursors, text: &str) -> String {
        cursors.issue(Kind::Search, 50, "binding".to_owned(), text.to_owned()).await.unwrap()
    }

    fn skewed(skew: &str) -> Skew {
        skew.parse().unwrap()
    }

    #[tokio::test]
    async fn a_cursor_can_be_used_again_and_for_its_own_kind() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Cursors::in_memory(Skew::default()).unwrap();
        let kept = Cursors::in_directory(folder.path(), Skew::default()).unwrap();
        for cursors in [&memory, &kept] {
            let cursor = issue(cursors, "here").await;
            for _ in 0..2 {
                let position = cursors.position(Kind::Search, &cursor).await.unwrap();
                assert_eq!((position.text.as_str(), position.offset), ("here", 50));
                assert_eq!(position.binding, "binding");
            }
            assert_eq!(refused(cursors.position(Kind::Records, &cursor).await), CursorFault::Mismatched);
            let other = Cursors::in_memory(Skew::default()).unwrap();
            assert_eq!(refused(other.position(Kind::Search, &cursor).await), CursorFault::Expired);
        }
        let large = kept.issue(Kind::Search, 0, String::new(), "x".repeat(MAX_POSITION_BYTES + 1)).await;
        assert!(matches!(large, Err(StateError::TooLarge { .. })));
    }

    #[tokio::test]
    async fn a_cursor_survives_a_restart_and_is_shared() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Cursors::in_directory(folder.path(), Skew::default()).unwrap();
        let (one, other) = (open(), open());
        let cursor = issue(&one, "here").await;
        assert_eq!(other.position(Kind::Search, &cursor).await.unwrap().text, "here");
        drop((one, other));
        assert_eq!(open().position(Kind::Search, &cursor).await.unwrap().text, "here");
    }

    /// On a single-threaded runtime, the lock is released only if opening the directory does not block the thread.
    #[tokio::test(flavor = "current_thread")]
    async fn opening_directory_does_not_block_runtime() {
        let folder = tempfile::tempdir().unwrap();
        drop(Cursors::in_directory(folder.path(), Skew::default()).unwrap());
        let lock = rusqlite::Connection::open(folder.path().join("cursors.db")).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        let lazy = Arc::new(Cursors::lazily_in_directory(folder.path().to_owned(), Skew::default()).unwrap());
        let issuing = tokio::spawn({
            let lazy = Arc::clone(&lazy);
            async move { issue(&lazy, "here").await }
        });
        tokio::task::yield_now().await;
        lock.execute_batch("COMMIT").unwrap();
        let cursor = issuing.await.unwrap();
        let other = Cursors::in_directory(folder.path(), Skew::default()).unwrap();
        assert_eq!(other.position(Kind::Search, &cursor).await.unwrap().text, "here");
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_revives_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let open = |skew| Cursors::in_directory(folder.path(), skewed(skew)).unwrap();
        let cursor = issue(&open("+0s"), "here").await;
        assert!(open("+599s").position(Kind::Search, &cursor).await.is_ok());
        assert_eq!(refused(open("+601s").position(Kind::Search, &cursor).await), CursorFault::Expired);
        for skew in ["+0s", "-1h", "-9000h"] {
            assert_eq!(refused(open(skew).position(Kind::Search, &cursor).await), CursorFault::Expired);
            // New cursors work.
            let cursors = open(skew);
            let new = issue(&cursors, "new").await;
            assert!(cursors.position(Kind::Search, &new).await.is_ok());
        }
    }

    #[tokio::test]
    async fn a_cursor_is_valid_for_as_long_as_is_configured() {
        let folder = tempfile::tempdir().unwrap();
        let open = |skew, valid_for| {
            let timing = Timing { skew: skewed(skew), valid_for: Duration::from_secs(valid_for) };
            Cursors::in_directory(folder.path(), timing).unwrap()
        };
        let cursor = issue(&open("+0s", 1_800), "here").await;
        assert!(open("+1799s", 1_800).position(Kind::Search, &cursor).await.is_ok());
        assert_eq!(
            refused(open("+1801s", 1_800).position(Kind::Search, &cursor).await),
            CursorFault::Expired
        );
        let short = issue(&open("+1801s", 30), "there").await;
        assert!(open("+1830s", 30).position(Kind::Search, &short).await.is_ok());
        assert_eq!(refused(open("+1832s", 30).position(Kind::Search, &short).await), CursorFault::Expired);
    }

    #[tokio::test]
    async fn what_has_expired_goes_though_nobody_calls() {
        let folder = tempfile::tempdir().unwrap();
        let cursors = Cursors::in_directory(folder.path(), Skew::default()).unwrap();
        issue(&cursors, "here").await;
        let positions = SqlitePositions::new(Database::in_directory(folder.path()));
        let kept = || positions.list(Duration::ZERO).unwrap().len();
        assert_eq!(kept(), 1);
        cursors.clock.raise(cursors.now() + VALID_FOR + Duration::from_secs(1));
        // A wait began with the first position, so that there is only one at a time.
        let stored = &cursors.storage().await.positions;
        cursors.expire_after(Duration::ZERO, stored);
        tokio::task::yield_now().await;
        assert_eq!(kept(), 1);
        cursors.waiting.store(false, Ordering::Relaxed);
        cursors.expire_after(Duration::ZERO, stored);
        for _ in 0..1_000 {
            if kept() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it is still there");
    }

    #[tokio::test]
    async fn a_running_server_remembers_what_it_saw_expire() {
        let folder = tempfile::tempdir().unwrap();
        let open = |skew| Cursors::in_directory(folder.path(), skewed(skew)).unwrap();
        let (now, other) = (open("+0s"), open("+0s"));
        let cursor = issue(&now, "here").await;
        assert!(other.position(Kind::Search, &cursor).await.is_ok());
        let later = open("+20m");
        assert_eq!(refused(later.position(Kind::Search, &cursor).await), CursorFault::Expired);
        // Its position is deleted, for processes with another clock too.
        assert_eq!(refused(other.position(Kind::Search, &cursor).await), CursorFault::Expired);
        // A position that is issued now does not expire at once, even if a clock is ahead.
        let cursor = issue(&now, "there").await;
        assert!(later.position(Kind::Search, &cursor).await.is_ok());
        assert!(now.position(Kind::Search, &cursor).await.is_ok());
    }
}
