//! Where a list goes on, over one connection or several, as one text.
//!
//! A record server's cursor is the place after a page of one connection, and one page of ours ends in the
//! middle of such pages. So a position keeps, for each connection that is not at its end, the cursor of the
//! page being read and how many of its rows were given; the keys of the last of them find the place again
//! when rows were added or deleted above it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::handle::ConnectionId;
use crate::source::{Accuracy, ChangesToken, QueryFault, RecordsPosition, SourceError};

/// A list that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    /// How many there are in all and how near that is, if it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<(u64, Accuracy)>,
    /// Some connections came to their end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ended: bool,
    /// The connections that did not; at least one.
    pub(super) lanes: Vec<SavedLane>,
}

/// Where one connection goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedLane {
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
    /// The server's cursor of the page that is being read; the first page if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<String>,
    /// Rows of that page that were given.
    #[serde(default)]
    pub(super) taken: usize,
    /// The keys of the last few of them, newest last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(super) last: VecDeque<String>,
}

impl Saved {
    /// A position of ours, read back.
    pub(super) fn open(position: &RecordsPosition) -> Result<Self, SourceError> {
        match serde_json::from_str::<Self>(&position.0) {
            Ok(saved) if !saved.lanes.is_empty() => Ok(saved),
            _ => Err(malformed("the cursor", "List again without `cursor`.")),
        }
    }

    /// As one text.
    pub(super) fn seal(&self) -> Option<RecordsPosition> {
        serde_json::to_string(self).ok().map(RecordsPosition)
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
            return serde_json::from_str(since).map_err(|_not_ours| {
                malformed(
                    "the token to tell changes since",
                    "Start again with `changes_since` set to \"beginning\".",
                )
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

fn malformed(what: &str, hint: &str) -> SourceError {
    SourceError::CorrectQuery {
        fault: QueryFault::MalformedCursor,
        problem: format!("{what} is not one that was given"),
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_position_is_read_back(cursor in any::<Option<String>>(), taken in 0_usize..500, last in any::<Vec<String>>(), by in any::<Option<String>>(), view in any::<Option<Vec<String>>>()) {
            let lane = SavedLane { connection: "c".parse().ok(), by, view, cursor, taken, last: last.into() };
            let saved = Saved { count: Some((4, Accuracy::Exact)), ended: true, lanes: vec![lane, SavedLane::default()] };
            prop_assert_eq!(Saved::open(&saved.seal().unwrap()).unwrap(), saved);
        }

        #[test]
        fn no_text_breaks_the_reader(text in "\\PC*") {
            let _ = Saved::open(&RecordsPosition(text.clone()));
            let _ = SavedChanges::open(Some(&ChangesToken(text)));
        }
    }

    #[test]
    fn what_is_no_position_is_refused() {
        let fault = |error: SourceError| match error {
            SourceError::CorrectQuery { fault, .. } => fault,
            other => panic!("{other}"),
        };
        for text in [
            "",
            "garbage",
            "{}",
            r#"{"lanes":[]}"#,
            r#"{"lanes":[{"connection":".."}]}"#,
            r#"{"lanes":[{"x":1}]}"#,
        ] {
            let refused = Saved::open(&RecordsPosition(text.to_owned())).unwrap_err();
            assert_eq!(fault(refused), QueryFault::MalformedCursor, "{text}");
        }
        let refused = SavedChanges::open(Some(&ChangesToken("{}".to_owned()))).unwrap_err();
        assert_eq!(fault(refused), QueryFault::MalformedCursor);
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
