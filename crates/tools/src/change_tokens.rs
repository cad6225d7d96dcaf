//! The tokens of `changes_since`, as tools and `/v1` print and take them.
//!
//! A token of a source is sealed before it leaves the process: it may count changes of streams that the caller may not see, and a
//! forged token would skip changes. A token is bound to its stream, connection, source and grant, and does not expire.
//! **Invariant:** a source's own state is printed nowhere else, and a text with our prefix reaches a source only after it was
//! opened.

use std::sync::Arc;

use fetchwell_source::{
    BoundSource, ChangesOrigin, ChangesToken, QueryFault, RecordsQuery, SourceError, Start, StreamQuery,
};
use fetchwell_state::StateError;
use fetchwell_state::cursor::{CursorFault, Cursors, UnverifiedCursor, is_own_text};

use super::Toolbox;

/// Maximum length of a printed change token in bytes.
const MAX_CHANGES_TOKEN: usize = 4_096;

/// Seals and opens the change tokens of one stream of one connection for one caller.
#[derive(Debug)]
pub struct ChangeTokenSealer {
    cursors: Arc<Cursors>,
    /// Source, connection, stream and grant.
    binding: [String; 4],
}

impl ChangeTokenSealer {
    /// Creates the sealer for a query for changes, and opens the token that the query starts from. Returns `None` for other queries.
    ///
    /// # Errors
    ///
    /// The token is refused, or the source does not name the connection of the changes.
    pub async fn open(
        toolbox: &Toolbox,
        source: &BoundSource,
        query: &mut RecordsQuery,
    ) -> Result<Option<Self>, SourceError> {
        let Start::Changes(since) = &mut query.start else { return Ok(None) };
        let stream = StreamQuery { stream: query.stream.clone(), connection: query.connection.clone() };
        let ChangesOrigin { source, connection } = source.changes_origin(&stream).await?;
        // No connection has an empty id, and no grant an empty name.
        let connection = connection.map(|connection| connection.to_string()).unwrap_or_default();
        let binding = [source, connection, query.stream.to_string(), toolbox.caller().unwrap_or_default()];
        let tokens = Self { cursors: Arc::clone(toolbox.cursors()), binding };
        if let Some(ChangesToken::Unverified(text)) = since
            && is_own_text(text)
        {
            *since = Some(tokens.verified(text).await?);
        }
        Ok(Some(tokens))
    }

    /// Returns a source's token as it is printed, or `None` if it would be longer than `MAX_CHANGES_TOKEN`.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes.
    pub async fn seal(&self, token: &ChangesToken) -> Result<Option<String>, StateError> {
        let state = match token {
            ChangesToken::Verified(state) => state.as_slice(),
            ChangesToken::Unverified(text) => text.as_bytes(),
        };
        let sealed = self.cursors.seal_changes(&self.binding(), state).await?;
        Ok(Some(sealed).filter(|sealed| sealed.len() <= MAX_CHANGES_TOKEN))
    }

    async fn verified(&self, text: &str) -> Result<ChangesToken, SourceError> {
        let opened = self.cursors.open_changes(&self.binding(), text).await;
        opened.map(ChangesToken::Verified).map_err(|fault| refused(text, fault))
    }

    fn binding(&self) -> [&str; 4] {
        self.binding.each_ref().map(String::as_str)
    }
}

fn refused(text: &str, reason: CursorFault) -> SourceError {
    const AGAIN: &str = "Start again with `changes_since` set to \"beginning\", and discard earlier results.";
    let (fault, problem, hint) = match reason {
        _ if UnverifiedCursor::read(text).is_ok() => (
            QueryFault::MalformedCursor,
            "`changes_since` holds a cursor",
            "Send it as `cursor`, without `changes_since`.",
        ),
        CursorFault::Expired => (
            QueryFault::ExpiredCursor,
            "the key of the `changes_since` token was deleted, or belongs to another server",
            AGAIN,
        ),
        CursorFault::Mismatched => (
            QueryFault::MismatchedCursor,
            "the `changes_since` token is of another stream, connection, source or caller",
            "Send it with the `stream` and `connection_id` that it was given for, or start again with `changes_since` set to \"beginning\".",
        ),
        CursorFault::Tampered => {
            (QueryFault::MalformedCursor, "the `changes_since` token was truncated or changed", AGAIN)
        }
        _ => (QueryFault::MalformedCursor, "`changes_since` is not a token of this server", AGAIN),
    };
    SourceError::InvalidQuery { fault, problem: problem.to_owned(), hint: hint.to_owned() }
}
