//! Positions of a search as cursors.
//!
//! A source's position says where it is and not of which search, and a source believes its own positions. So a
//! cursor carries a tag over the position and the question: a cursor of another search, of another run of this
//! program, or made by hand is refused before any source sees it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::error::ApiError;

/// Bytes of the tag, half of HMAC-SHA256's.
const TAG: usize = 16;

/// The key of this run.
pub(super) struct Seal([u8; 64]);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// A new key.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; 64];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }

    /// The cursor of a position in the search for `question`.
    pub(super) fn close(&self, question: &str, position: &str) -> String {
        let mut bytes = self.mac(question, position).finalize().into_bytes().to_vec();
        bytes.truncate(TAG);
        bytes.extend_from_slice(position.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a cursor of the search for `question`.
    pub(super) fn open(&self, question: &str, cursor: &str) -> Result<String, ApiError> {
        let invalid = |problem: &str| ApiError::bad("invalid_cursor", problem.to_owned()).about("cursor");
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_not_base64| invalid("Cursor is malformed"))?;
        let (tag, position) = bytes.split_at_checked(TAG).ok_or_else(|| invalid("Cursor is malformed"))?;
        let position = std::str::from_utf8(position).map_err(|_bytes| invalid("Cursor is malformed"))?;
        let verified = self.mac(question, position).verify_truncated_left(tag);
        verified
            .map_err(|_wrong| invalid("Cursor is of another search, or too old; search again without it"))?;
        Ok(position.to_owned())
    }

    fn mac(&self, question: &str, position: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new(&self.0.into());
        mac.update(&question.len().to_be_bytes());
        mac.update(question.as_bytes());
        mac.update(position.as_bytes());
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_only_for_its_search() {
        let seal = Seal([7; 64]);
        let cursor = seal.close("q=invoice", "4.all.25");
        assert_eq!(seal.open("q=invoice", &cursor).unwrap(), "4.all.25");
        for (question, sent) in [("q=other", cursor.as_str()), ("q=invoice", "xx"), ("q=invoice", "")] {
            assert_eq!(seal.open(question, sent).unwrap_err().code, "invalid_cursor");
        }
        assert!(Seal([8; 64]).open("q=invoice", &cursor).is_err());
        let forged = format!("{}MA", cursor);
        assert!(seal.open("q=invoice", &forged).is_err());
    }
}
