//! Positions of a search as cursors.
//!
//! A source's position says where it is and not of which search, and a source believes its own positions. So a
//! cursor carries a tag over the position and the question: a cursor of another search, of other sources, or made by hand
//! is refused before any source sees it.
//!
//! Such a cursor is the position itself. It has no ten minutes, as cursors of tools have: by the contract a page cursor
//! does not expire, and a client may take a night over a long list. It ends with its key.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::error::ApiError;
use crate::cursor::{Cursors, Key, KeyId};

/// Bytes of the tag, half of HMAC-SHA256's.
const TAG: usize = 16;

/// The keys that sign, and what the positions are of.
pub(super) struct Seal {
    cursors: Arc<Cursors>,
    sources: String,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// A seal with the keys of `cursors`, for positions of the source that says it is `sources`.
    pub(super) fn new(cursors: Arc<Cursors>, sources: String) -> Self {
        Self { cursors, sources }
    }

    /// The cursor of a position in the search for `question`.
    pub(super) fn close(&self, question: &str, position: &str) -> String {
        let key = self.cursors.keys().newest(self.cursors.now());
        let mut bytes = key.id().0.to_vec();
        bytes.extend_from_slice(&self.mac(&key, question, position).finalize().into_bytes());
        bytes.truncate(key.id().0.len() + TAG);
        bytes.extend_from_slice(position.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a cursor of the search for `question`.
    pub(super) fn open(&self, question: &str, cursor: &str) -> Result<String, ApiError> {
        let invalid = |problem: &str| ApiError::bad("invalid_cursor", problem.to_owned()).about("cursor");
        let malformed = || invalid("Cursor is malformed");
        let other = || invalid("Cursor is of another search, or too old; search again without it");
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_not_base64| malformed())?;
        let (id, rest) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
        let (tag, position) = rest.split_at_checked(TAG).ok_or_else(malformed)?;
        let position = std::str::from_utf8(position).map_err(|_bytes| malformed())?;
        let key = self.cursors.keys().key(KeyId(*id), self.cursors.now()).ok_or_else(other)?;
        self.mac(&key, question, position).verify_truncated_left(tag).map_err(|_wrong| other())?;
        Ok(position.to_owned())
    }

    fn mac(&self, key: &Key, question: &str, position: &str) -> Hmac<Sha256> {
        key.mac_of(&[b"v1 search", self.sources.as_bytes(), question.as_bytes(), position.as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Skew;

    #[test]
    fn a_cursor_opens_only_for_its_search() {
        let cursors = || Arc::new(Cursors::in_memory(Skew::default()).unwrap());
        let keys = cursors();
        let seal = Seal::new(Arc::clone(&keys), "a store".to_owned());
        let cursor = seal.close("q=invoice", "4.all.25");
        assert_eq!(seal.open("q=invoice", &cursor).unwrap(), "4.all.25");
        for (question, sent) in [("q=other", cursor.as_str()), ("q=invoice", "xx"), ("q=invoice", "")] {
            assert_eq!(seal.open(question, sent).unwrap_err().code, "invalid_cursor");
        }
        assert!(Seal::new(cursors(), "a store".to_owned()).open("q=invoice", &cursor).is_err());
        assert!(Seal::new(keys, "another store".to_owned()).open("q=invoice", &cursor).is_err());
        let forged = format!("{}MA", cursor);
        assert!(seal.open("q=invoice", &forged).is_err());
    }
}
