//! Where lists go on: what a lane is of, and the state that changes are told from.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::handle::ConnectionId;
use crate::source::{ChangesToken, QueryFault, SourceError};

/// What a lane of a record server's list is of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoteLane {
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

impl fmt::Display for RemoteLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.connection.as_ref().map_or("the server", |connection| connection.as_str()))
    }
}

/// The state that changes are told from: the server's own token, or a place within the changes after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedChanges {
    /// The server's token, or `beginning`.
    pub(super) since: String,
    /// The server's cursor within the changes since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<String>,
    /// Changes of that page that were given.
    #[serde(default)]
    pub(super) taken: usize,
}

impl SavedChanges {
    /// A token of ours, which is an object, or one of the server's, which is passed on as it is.
    pub(super) fn open(token: Option<&ChangesToken>) -> Result<Self, SourceError> {
        let since = token.map_or("beginning", |token| &token.0);
        if since.starts_with('{') {
            return serde_json::from_str(since).map_err(|_not_ours| SourceError::CorrectQuery {
                fault: QueryFault::MalformedCursor,
                problem: "the token to tell changes since is not one that was given".to_owned(),
                hint: "Start again with `changes_since` set to \"beginning\".".to_owned(),
            });
        }
        Ok(Self { since: since.to_owned(), cursor: None, taken: 0 })
    }

    /// As one text: the server's own when it says all.
    pub(super) fn seal(self) -> Option<ChangesToken> {
        if self.cursor.is_none() && self.taken == 0 {
            return Some(ChangesToken(self.since));
        }
        serde_json::to_string(&self).ok().map(ChangesToken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "\\PC*") {
            let _ = SavedChanges::open(Some(&ChangesToken(text)));
        }
    }

    #[test]
    fn a_token_that_is_none_of_ours_is_refused() {
        let refused = SavedChanges::open(Some(&ChangesToken("{}".to_owned()))).unwrap_err();
        assert_eq!(refused.code(), "invalid_cursor");
    }

    #[test]
    fn a_servers_token_stays_as_it_is() {
        assert_eq!(SavedChanges::open(None).unwrap().since, "beginning");
        let token = ChangesToken("eyJ2IjoxfQ==".to_owned());
        assert_eq!(SavedChanges::open(Some(&token)).unwrap().seal(), Some(token));
        let within = SavedChanges { since: "beginning".to_owned(), cursor: None, taken: 3 };
        assert_eq!(SavedChanges::open(within.clone().seal().as_ref()).unwrap(), within);
    }
}
