//! Sign-ins of callers at the servers of sources, for the page on which they sign in.

use std::fmt;

use async_trait::async_trait;
use fetchwell_callers::{AuthorizationReply, Caller};
use fetchwell_core::handle::SourceName;
use fetchwell_source::SourceError;
use secrecy::SecretString;

/// Sign-ins of callers at the servers of sources. Each method acts for one caller, and refuses sources that the caller may
/// not read.
#[async_trait]
pub trait SourceSignIns: Send + Sync + fmt::Debug {
    /// Returns the sources that a caller signs in to, with their states.
    async fn states(&self, caller: &Caller) -> Vec<SourceSignIn>;

    /// Prepares a sign-in.
    ///
    /// # Errors
    ///
    /// The caller may not read the source, or its server offers no sign-in that can be used.
    async fn begin(&self, caller: &Caller, source: &SourceName) -> Result<SignInStart, SourceError>;

    /// Ends a sign-in after the browser has returned, and stores its tokens. `pending` is that of its start.
    ///
    /// # Errors
    ///
    /// The sign-in was refused, the reply is from another authorization server, or the tokens cannot be stored.
    async fn finish(
        &self,
        caller: &Caller,
        source: &SourceName,
        pending: SecretString,
        reply: AuthorizationReply,
    ) -> Result<(), SourceError>;

    /// Deletes the tokens of a caller at a source.
    ///
    /// # Errors
    ///
    /// The caller may not read the source, or the storage cannot be written.
    async fn sign_out(&self, caller: &Caller, source: &SourceName) -> Result<(), SourceError>;
}

/// Source that a caller signs in to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSignIn {
    /// Name of the source.
    pub source: SourceName,
    /// Label for people.
    pub label: Option<String>,
    /// State of the sign-in.
    pub state: SignInState,
}

/// State of a caller's sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInState {
    /// The caller has tokens.
    SignedIn,
    /// The caller has no tokens.
    NotSignedIn,
    /// The token has expired and cannot be refreshed.
    Expired,
    /// The tokens cannot be read, with the reason.
    Unknown(String),
}

/// Sign-in that waits for the browser to return.
pub struct SignInStart {
    /// URL for the browser.
    pub url: String,
    /// State that the browser returns with.
    pub state: String,
    /// Text that [`SourceSignIns::finish`] takes. It is a secret.
    pub pending: SecretString,
}

impl fmt::Debug for SignInStart {
    /// Prints neither the URL nor the state: with both, another program could return instead of the browser.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInStart").finish_non_exhaustive()
    }
}
