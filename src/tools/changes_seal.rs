//! Tokens of changes behind an allow-list.
//!
//! A record server's token may count the changes of hidden streams too. Such a token is encrypted before it
//! leaves the process, and is valid as long as the cursor key that encrypted it. A store encrypts its own tokens.

use std::sync::Arc;

use super::Toolbox;
use crate::cursor::Cursors;
use crate::source::{ChangesToken, QueryFault, Source, SourceError};

/// Encrypts tokens of changes of a source that hides streams and does not encrypt them itself.
#[derive(Debug, Default)]
pub struct ChangesSeal(Option<Sealing>);

#[derive(Debug)]
struct Sealing {
    cursors: Arc<Cursors>,
    /// The sources that the tokens are of.
    identity: String,
}

const CONTEXT: &str = "changes";

impl ChangesSeal {
    /// Encrypts tokens of `source` with the keys of `toolbox`, unless they show nothing.
    #[must_use]
    pub fn new(toolbox: &Toolbox, source: &dyn Source) -> Self {
        let needs_seal = source.is_narrowed() && !source.seals_changes();
        Self(
            needs_seal
                .then(|| Sealing { cursors: Arc::clone(toolbox.cursors()), identity: toolbox.identity() }),
        )
    }

    /// Returns the token for the client, encrypted where that is needed.
    pub async fn close(&self, token: ChangesToken) -> String {
        match &self.0 {
            None => token.0,
            Some(Sealing { cursors, identity }) => cursors.seal_text(&[CONTEXT, identity], &token.0).await,
        }
    }

    /// Returns the source's token for one that a client sent.
    ///
    /// # Errors
    ///
    /// It was not sealed by these keys.
    pub async fn open(&self, token: ChangesToken) -> Result<ChangesToken, SourceError> {
        let Some(Sealing { cursors, identity }) = &self.0 else { return Ok(token) };
        let opened = cursors.open_text(&[CONTEXT, identity], &token.0).await;
        opened.map(ChangesToken).map_err(|_other| SourceError::CorrectQuery {
            fault: QueryFault::ExpiredCursor,
            problem: "the token of `changes_since` is not one of this server, or too old".to_owned(),
            hint: "Start again with `changes_since` set to \"beginning\".".to_owned(),
        })
    }
}
