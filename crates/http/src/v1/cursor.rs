//! Cursors of searches and lists.
//!
//! A source trusts its own positions, and a position does not name its query. A cursor is therefore encrypted for its
//! query and sources: a cursor of another query or of other sources, or a forged one, is rejected before a source
//! sees it, and its contents cannot be read.
//!
//! The encrypted position is the cursor itself. Unlike the cursors of tools it does not expire, as the contract
//! requires, because a client may take hours over a long list; it is valid as long as its key.
//!
//! A position over many sources can be longer than a URL allows. Such a position is kept in the cursor store and
//! expires like those of tools.

use std::fmt;
use std::sync::Arc;

use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fetchwell_state::cursor::{CursorFault, Cursors, Kind, NoPosition, PREFIX};
use fetchwell_tools::Toolbox;
use sha2::{Digest, Sha256};

use super::warning::Warning;
use crate::error::RequestError;

/// Maximum length in bytes of a position inside a cursor. Servers and proxies accept URLs of 8,000 bytes.
const MAX_INLINE_BYTES: usize = 3_000;

/// Prefix of an encrypted list position.
const SEALED: &str = "s.";

/// Encryption context of list positions, in addition to the sources.
const LIST: &str = "a list of records";

/// Encrypts positions with the cursor keys, bound to their sources.
pub(crate) struct Seal {
    cursors: Arc<Cursors>,
    sources: String,
    /// Grant of the caller. Its kept positions have a quota.
    grant: Option<String>,
    /// True if every position is encrypted: because callers have different grants, or because streams are hidden that
    /// a position could reveal.
    is_sealed: bool,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// Creates a seal for the positions of a toolbox's source.
    pub(crate) fn new(toolbox: &Toolbox) -> Self {
        let cursors = Arc::clone(toolbox.cursors());
        let is_sealed = toolbox.is_granted() || toolbox.source().hides_streams();
        Self { cursors, sources: toolbox.identity(), grant: toolbox.caller(), is_sealed }
    }

    /// Returns the cursor of a position in the search `question`.
    pub(crate) async fn close(&self, question: &str, position: String) -> IssuedCursor {
        let issued = self.keep(Kind::V1Search, question, &position).await;
        issued.or_sealed(self.seal(question, &position)).await
    }

    /// Returns the position of a cursor of the search `question`.
    pub(crate) async fn open(&self, question: &str, cursor: &str) -> Result<String, RequestError> {
        match self.kept(Kind::V1Search, question, cursor).await {
            Some(position) => position,
            None => self.unseal(question, cursor).await,
        }
    }

    /// Returns the cursor of a list position.
    pub(super) async fn close_list(&self, position: String) -> IssuedCursor {
        // A store validates its own position, which is a single word. A position over several inputs says how far
        // each was read, so it must not be forged.
        if !position.contains(' ') && !self.is_sealed {
            return IssuedCursor { cursor: position, warning: None };
        }
        let issued = self.keep(Kind::V1Records, "", &position).await;
        let sealed = async { format!("{SEALED}{}", self.seal(LIST, &position).await) };
        issued.or_sealed(sealed).await
    }

    /// Returns the position of a list cursor.
    pub(super) async fn open_list(&self, cursor: &str) -> Result<String, RequestError> {
        match (self.kept(Kind::V1Records, "", cursor).await, cursor.strip_prefix(SEALED)) {
            (Some(position), _) => position,
            (None, Some(sealed)) => self.unseal(LIST, sealed).await,
            (None, None) if cursor.contains(' ') || self.is_sealed => {
                Err(RequestError::cursor(CursorFault::Malformed, "Cursor is malformed".to_owned()))
            }
            (None, None) => Ok(cursor.to_owned()),
        }
    }

    /// Keeps a position that is too long for a cursor in the cursor store.
    async fn keep(&self, kind: Kind, question: &str, position: &str) -> KeepOutcome {
        if position.len() <= MAX_INLINE_BYTES {
            return KeepOutcome::Short;
        }
        match self.cursors.issue(kind, 0, self.binding(question), position.to_owned()).await {
            Ok(cursor) => KeepOutcome::Kept(cursor),
            Err(error) => {
                tracing::warn!(%error, "a long cursor is given as it is");
                KeepOutcome::Failed(error.kind())
            }
        }
    }

    /// Returns the kept position of a cursor, or `None` if the cursor contains its position itself.
    async fn kept(&self, kind: Kind, question: &str, cursor: &str) -> Option<Result<String, RequestError>> {
        if !cursor.starts_with(PREFIX) {
            return None;
        }
        let again = |problem: &dyn fmt::Display| format!("Cursor: {problem}; ask again without it");
        let invalid = |fault: CursorFault| RequestError::cursor(fault, again(&fault));
        Some(match self.cursors.position(kind, cursor).await {
            Ok(position) if position.binding == self.binding(question) => Ok(position.text),
            Ok(_) => Err(invalid(CursorFault::Mismatched)),
            Err(NoPosition::Refused(fault)) => Err(invalid(fault)),
            Err(NoPosition::State(error)) => {
                tracing::warn!(%error, "cursor store");
                let problem = "Cursor cannot be read now; try again in a moment".to_owned();
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Err(RequestError::new(status, "state_unavailable", problem).about("cursor"))
            }
        })
    }

    /// Returns a digest of the sources and the query to which a kept position is bound, and the grant.
    fn binding(&self, question: &str) -> String {
        let digest =
            Sha256::new().chain_update(&self.sources).chain_update([0]).chain_update(question).finalize();
        let digest = URL_SAFE_NO_PAD.encode(digest);
        match &self.grant {
            None => digest,
            Some(grant) => format!("{digest}:{grant}"),
        }
    }

    async fn seal(&self, question: &str, position: &str) -> String {
        self.cursors.seal_text(&["v1 search", &self.sources, question], position).await
    }

    async fn unseal(&self, question: &str, cursor: &str) -> Result<String, RequestError> {
        let context = ["v1 search", &self.sources, question];
        self.cursors.open_text(&context, cursor).await.map_err(|fault| match fault {
            CursorFault::Malformed => RequestError::cursor(fault, "Cursor is malformed".to_owned()),
            _ => {
                let problem = "Cursor is of another search, or too old; search again without it";
                RequestError::cursor(CursorFault::Mismatched, problem.to_owned())
            }
        })
    }
}

/// Cursor for a client.
#[derive(Debug)]
pub(crate) struct IssuedCursor {
    pub(crate) cursor: String,
    /// Warning about a cursor that is longer than it should be.
    pub(super) warning: Option<Warning>,
}

/// Outcome of keeping a position.
enum KeepOutcome {
    /// The position fits into a cursor.
    Short,
    /// The position is kept under this cursor.
    Kept(String),
    /// The position is too long and cannot be kept, because the cursor store is in this state.
    Failed(&'static str),
}

impl KeepOutcome {
    /// Returns the cursor, which is what `seal` makes of the position when it is not kept.
    async fn or_sealed(self, seal: impl Future<Output = String>) -> IssuedCursor {
        match self {
            Self::Short => IssuedCursor { cursor: seal.await, warning: None },
            Self::Kept(cursor) => IssuedCursor { cursor, warning: None },
            Self::Failed(word) => {
                let cursor = seal.await;
                let message = format!(
                    "next_cursor has {} characters because the cursor store is {word}; a proxy may refuse it. See the \
                     server's log",
                    cursor.len()
                );
                IssuedCursor { cursor, warning: Some(Warning::new("cursor_not_kept", message)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fetchwell_state::cursor::Skew;

    fn sealing(cursors: &Arc<Cursors>, sources: &str) -> Seal {
        Seal { cursors: Arc::clone(cursors), sources: sources.to_owned(), grant: None, is_sealed: false }
    }

    #[tokio::test]
    async fn positions_are_encrypted_when_callers_differ() {
        let cursors = Arc::new(Cursors::in_memory(Skew::default()).unwrap());
        let granted = |grant: &str| Seal { is_sealed: true, ..sealing(&cursors, grant) };
        let cursor = granted("ann").close_list("short".to_owned()).await.cursor;
        assert_eq!(granted("ann").open_list(&cursor).await.unwrap(), "short");
        for (who, cursor) in [("bob", cursor.as_str()), ("ann", "short")] {
            assert_eq!(granted(who).open_list(cursor).await.unwrap_err().code, "invalid_cursor", "{who}");
        }
    }

    #[tokio::test]
    async fn a_long_position_is_kept_and_opens_only_for_its_question() {
        let cursors = Arc::new(Cursors::in_memory(Skew::default()).unwrap());
        let seal = sealing(&cursors, "a store");
        let long = "x ".repeat(MAX_INLINE_BYTES);
        let (search, list) =
            (seal.close("q=invoice", long.clone()).await.cursor, seal.close_list(long.clone()).await.cursor);
        assert!(search.len() < 100 && list.len() < 100);
        assert_eq!(seal.open("q=invoice", &search).await.unwrap(), long);
        assert_eq!(seal.open_list(&list).await.unwrap(), long);
        assert_eq!(seal.open("q=other", &search).await.unwrap_err().code, "invalid_cursor");
        assert_eq!(seal.open("q=invoice", &list).await.unwrap_err().code, "invalid_cursor");
        let other = sealing(&cursors, "another store");
        assert_eq!(other.open_list(&list).await.unwrap_err().code, "invalid_cursor");
        assert_eq!(seal.close_list("short".to_owned()).await.cursor, "short");
        let sealed = seal.close_list("0f {}".to_owned()).await.cursor;
        assert_eq!(seal.open_list(&sealed).await.unwrap(), "0f {}");
        for forged in ["0f {}", "s.0f {}", "s.", &format!("{sealed}AA")] {
            assert_eq!(seal.open_list(forged).await.unwrap_err().code, "invalid_cursor", "{forged}");
        }
    }

    #[tokio::test]
    async fn long_position_that_cannot_be_kept_is_encrypted_with_a_warning() {
        let cursors = Arc::new(Cursors::in_memory(Skew::default()).unwrap());
        let seal = sealing(&cursors, "a store");
        // Longer than any position that is kept.
        let long = "x ".repeat(3 * 1024 * 1024);
        let IssuedCursor { cursor, warning } = seal.close("q=invoice", long.clone()).await;
        assert_eq!(serde_json::to_value(warning.unwrap()).unwrap()["code"], "cursor_not_kept");
        assert_eq!(seal.open("q=invoice", &cursor).await.unwrap(), long);
        assert!(seal.close("q=invoice", "short".to_owned()).await.warning.is_none());
    }

    #[tokio::test]
    async fn a_cursor_opens_only_for_its_search() {
        let cursors = || Arc::new(Cursors::in_memory(Skew::default()).unwrap());
        let keys = cursors();
        let seal = sealing(&keys, "a store");
        let cursor = seal.seal("q=invoice", "4.all.25").await;
        assert_eq!(seal.unseal("q=invoice", &cursor).await.unwrap(), "4.all.25");
        for (question, sent) in [("q=other", cursor.as_str()), ("q=invoice", "xx"), ("q=invoice", "")] {
            assert_eq!(seal.unseal(question, sent).await.unwrap_err().code, "invalid_cursor");
        }
        assert!(sealing(&cursors(), "a store").unseal("q=invoice", &cursor).await.is_err());
        assert!(sealing(&keys, "another store").unseal("q=invoice", &cursor).await.is_err());
        let forged = format!("{}MA", cursor);
        assert!(seal.unseal("q=invoice", &forged).await.is_err());
    }
}
