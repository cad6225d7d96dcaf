//! Positions in the lists and changes of a record server.

use std::fmt;

use fetchwell_core::handle::ConnectionId;
use fetchwell_core::saturate::saturated;
use fetchwell_source::{ChangesToken, QueryFault, SourceError};
use serde::{Deserialize, Serialize};

use super::packed_text::{pack, unpack};

/// Input of a merged list: one connection of a record server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteInput {
    /// Connection; `None` on a server that has only one, or no connection ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionId>,
    /// Field that orders the records; `None` for the emission time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Fields of the requested view, if they are requested by name: a view may lack the field that orders the
    /// records, and several connections cannot be merged without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Vec<String>>,
}

impl fmt::Display for RemoteInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.connection.as_ref().map_or("the server", |connection| connection.as_str()))
    }
}

/// State from which changes are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedChanges {
    pub(crate) from: ChangesStart,
    /// Number of changes of that page that were returned.
    pub(crate) taken: usize,
}

/// Start of a page of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangesStart {
    /// The state of the server's own token, or `beginning`.
    Since(String),
    /// The server's cursor within the changes since a state.
    Cursor(String),
}

/// Position in changes as earlier releases wrote it, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FormerChanges {
    since: String,
    #[serde(default)]
    cursor: Option<String>,
    #[serde(default)]
    taken: usize,
}

/// Maximum of `taken` in a token of an earlier version. The token is not signed.
const MAX_FORMER_TAKEN: usize = 1_000;

/// Bits of the first byte of a state.
const IS_CURSOR: u8 = 1;
const HAS_TAKEN: u8 = 2;

impl SavedChanges {
    /// Parses the state of a token. An unsealed token is the server's own, or JSON of an earlier release.
    pub(crate) fn open(token: Option<&ChangesToken>) -> Result<Self, SourceError> {
        let refused = || SourceError::InvalidQuery {
            fault: QueryFault::MalformedCursor,
            problem: "the token to tell changes since is not one that was given".to_owned(),
            hint: "Start again with `changes_since` set to \"beginning\".".to_owned(),
        };
        match token {
            None => Ok(Self::since("beginning".to_owned())),
            Some(ChangesToken::Verified(state)) => Self::unpacked(state).ok_or_else(refused),
            Some(ChangesToken::Unverified(text)) if text.starts_with('{') => {
                let former: FormerChanges = serde_json::from_str(text).map_err(|_not_ours| refused())?;
                // A page had at most this many changes.
                if former.taken > MAX_FORMER_TAKEN {
                    return Err(refused());
                }
                let start = former.cursor.map(ChangesStart::Cursor);
                let from = start.unwrap_or(ChangesStart::Since(former.since));
                Ok(Self { from, taken: former.taken })
            }
            Some(ChangesToken::Unverified(text)) => Ok(Self::since(text.clone())),
        }
    }

    /// Creates the state of the server's own token.
    pub(crate) fn since(token: String) -> Self {
        Self { from: ChangesStart::Since(token), taken: 0 }
    }

    /// Returns the token of the state: a byte of flags, the number of returned changes (4 bytes, if not 0), and the
    /// server's text, packed.
    pub(crate) fn token(self) -> ChangesToken {
        let (flag, text) = match &self.from {
            ChangesStart::Since(text) => (0, text),
            ChangesStart::Cursor(text) => (IS_CURSOR, text),
        };
        let taken = saturated::<u32>(self.taken).to_be_bytes();
        let (flag, taken) = if self.taken == 0 { (flag, &[][..]) } else { (flag | HAS_TAKEN, &taken[..]) };
        ChangesToken::Verified([&[flag][..], taken, &pack(text)].concat())
    }

    fn unpacked(state: &[u8]) -> Option<Self> {
        let (flag, rest) = state.split_first()?;
        let (taken, rest) = match flag & HAS_TAKEN {
            0 => (0, rest),
            _ => rest.split_first_chunk().map(|(taken, rest)| (u32::from_be_bytes(*taken), rest))?,
        };
        let text = unpack(rest)?;
        let from = match flag & !HAS_TAKEN {
            0 => ChangesStart::Since(text),
            IS_CURSOR => ChangesStart::Cursor(text),
            _ => return None,
        };
        Some(Self { from, taken: usize::try_from(taken).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "\\PC*", state in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = SavedChanges::open(Some(&ChangesToken::Unverified(text)));
            let _ = SavedChanges::open(Some(&ChangesToken::Verified(state)));
        }
    }

    #[test]
    fn a_token_that_is_none_of_ours_is_refused() {
        for token in [ChangesToken::Unverified("{}".to_owned()), ChangesToken::Verified(vec![9, 9])] {
            assert_eq!(SavedChanges::open(Some(&token)).unwrap_err().code(), "invalid_cursor");
        }
    }

    #[test]
    fn state_is_read_back() {
        assert_eq!(SavedChanges::open(None).unwrap(), SavedChanges::since("beginning".to_owned()));
        let cursor = || ChangesStart::Cursor("eyJwIjoxfQ".to_owned());
        for state in [
            SavedChanges::since("eyJ2IjoxfQ==".to_owned()),
            SavedChanges { taken: 3, ..SavedChanges::since("beginning".to_owned()) },
            SavedChanges { from: cursor(), taken: 0 },
            SavedChanges { from: cursor(), taken: 70_000 },
        ] {
            assert_eq!(SavedChanges::open(Some(&state.clone().token())).unwrap(), state);
        }
    }

    #[test]
    fn tokens_without_a_seal_are_read() {
        let open = |text: &str| SavedChanges::open(Some(&ChangesToken::Unverified(text.to_owned()))).unwrap();
        assert_eq!(open("eyJ2IjoxfQ=="), SavedChanges::since("eyJ2IjoxfQ==".to_owned()));
        let within = open(r#"{"since":"beginning","cursor":"c","taken":3}"#);
        assert_eq!(within, SavedChanges { from: ChangesStart::Cursor("c".to_owned()), taken: 3 });
        assert_eq!(open(r#"{"since":"x","taken":0}"#), SavedChanges::since("x".to_owned()));
    }
}
