//! Stores positions and creates their cursors.
//!
//! A cursor can be created before its position is stored, so that a page is fitted meanwhile.
//! **Invariant:** a client gets no cursor whose position this process does not have; the store of a state directory says when
//! other processes have it.

use std::time::{Duration, Instant};

use fetchwell_core::saturate::saturated;

use super::codec::{Claims, Kind, Reference};
use super::cursors::{Cursors, EncodeObserver, MAX_POSITION_BYTES};
use super::positions::Position;
use super::storage::PositionEncryption;
use crate::StateError;

/// A position that is not stored yet, with its cursor, which must not be given to a client before.
#[derive(Debug)]
pub struct PreparedCursor {
    /// `None` if the store sets the time of issue.
    cursor: Option<String>,
    reference: Reference,
    position: Position,
}

impl PreparedCursor {
    /// Returns the cursor as it will be unless the stored clock is ahead; `None` if the store sets the time of issue.
    #[must_use]
    pub fn expected(&self) -> Option<&str> {
        self.cursor.as_deref()
    }
}

impl Cursors {
    /// Stores a position and returns its cursor.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    pub async fn issue(
        &self,
        kind: Kind,
        offset: u32,
        binding: String,
        text: String,
    ) -> Result<String, StateError> {
        self.store(self.prepare(kind, offset, binding, text).await?).await
    }

    /// Encrypts a position and creates its cursor, without storing it.
    ///
    /// # Errors
    ///
    /// The position is too large, or the system provides no random bytes.
    pub async fn prepare(
        &self,
        kind: Kind,
        offset: u32,
        binding: String,
        text: String,
    ) -> Result<PreparedCursor, StateError> {
        if text.len() > MAX_POSITION_BYTES {
            return Err(StateError::TooLarge { bytes: text.len(), max_bytes: MAX_POSITION_BYTES });
        }
        let mut reference = Reference::default();
        getrandom::fill(&mut reference)?;
        let text = self.encrypt_position(reference, &binding, text).await;
        // Truncated to milliseconds, as in the cursor.
        let issued = Duration::from_millis(saturated::<u64>(self.clock.now().as_millis()));
        let cursor = match self.storage().await.encryption {
            PositionEncryption::ByStore => Some(self.seal(&Claims { kind, issued, offset, reference }).await),
            PositionEncryption::Shared => None,
        };
        Ok(PreparedCursor { cursor, reference, position: Position { kind, issued, offset, binding, text } })
    }

    /// Stores a prepared position. Returns its cursor, which differs from the expected one if the stored clock is ahead.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    pub async fn store(&self, prepared: PreparedCursor) -> Result<String, StateError> {
        let PreparedCursor { cursor, reference, position } = prepared;
        let (kind, offset, expected_issue) = (position.kind, position.offset, position.issued);
        let positions = &self.storage().await.positions;
        // Before the position is stored, because the call may be cancelled meanwhile.
        self.expire_after(self.valid_for + Duration::from_secs(1), positions);
        let issued = positions.keep(reference, position).await?;
        self.clock.raise(issued);
        match cursor {
            Some(cursor) if issued == expected_issue => Ok(cursor),
            _ => Ok(self.seal(&Claims { kind, issued, offset, reference }).await),
        }
    }

    /// Encodes and signs a cursor, and reports the time that it took.
    async fn seal(&self, claims: &Claims) -> String {
        let keys = self.keys().await;
        let started = Instant::now();
        let cursor = keys.seal(claims, claims.issued);
        if let Some(EncodeObserver(observe)) = self.encoded.get() {
            observe(started.elapsed());
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::{CursorFault, NoPosition, Skew};

    #[tokio::test]
    async fn a_prepared_cursor_is_valid_once_it_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Cursors::in_directory(folder.path(), Skew::default()).unwrap();
        let (one, other) = (open(), open());
        let prepared = one.prepare(Kind::Search, 50, "binding".to_owned(), "here".to_owned()).await.unwrap();
        let cursor = prepared.expected().unwrap().to_owned();
        let unstored = one.position(Kind::Search, &cursor).await;
        assert!(matches!(unstored, Err(NoPosition::Refused(CursorFault::Expired))), "{unstored:?}");
        assert_eq!(one.store(prepared).await.unwrap(), cursor);
        assert_eq!(other.position(Kind::Search, &cursor).await.unwrap().text, "here");
    }
}
