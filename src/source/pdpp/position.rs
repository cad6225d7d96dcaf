//! Where lists go on: what a input is of, and the state that changes are told from.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::packed_text::{pack, unpack};
use crate::handle::ConnectionId;
use crate::source::{ChangesToken, QueryFault, SourceError};

/// What a input of a record server's list is of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoteInput {
    /// The connection; `None` on a server that has only one, or names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) connection: Option<ConnectionId>,
    /// The field that its records are ordered by; when they were emitted, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
    /// The fields of the view that is asked, when they are asked by name: a view need not show what records are
    /// ordered by, and several connections cannot be merged without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) view: Option<Vec<String>>,
}

impl fmt::Display for RemoteInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.connection.as_ref().map_or("the server", |connection| connection.as_str()))
    }
}

/// The state that changes are told from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SavedChanges {
    pub(super) from: ChangesStart,
    /// Changes of that page that were given.
    pub(super) taken: usize,
}

/// The start of a page of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangesStart {
    /// At the state of the server's own token, or `beginning`.
    Since(String),
    /// At the server's cursor within the changes since a state.
    Cursor(String),
}

/// A place within changes as earlier versions wrote it, as JSON.
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
    /// Returns the state of a token. One that came without a seal is a server's own, or JSON of an earlier version.
    pub(super) fn open(token: Option<&ChangesToken>) -> Result<Self, SourceError> {
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
                // A page had at most so many changes.
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

    /// The state of the server's own token.
    pub(super) fn since(token: String) -> Self {
        Self { from: ChangesStart::Since(token), taken: 0 }
    }

    /// Returns the token of the state: a byte of flags, the changes that were given (4) if any were, and the server's text, packed.
    pub(super) fn token(self) -> ChangesToken {
        let (flag, text) = match &self.from {
            ChangesStart::Since(text) => (0, text),
            ChangesStart::Cursor(text) => (IS_CURSOR, text),
        };
        let taken = u32::try_from(self.taken).unwrap_or(u32::MAX).to_be_bytes();
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
