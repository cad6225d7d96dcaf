//! The credential of an HTTP server.

use fetchwell_callers::CallContext;
use fetchwell_pdpp::{CredentialError, Credentials};
use fetchwell_source::SourceError;
use jiff::Timestamp;
use secrecy::SecretString;

use crate::fault::Problem;
use crate::oauth::{Bearer, OAuthFault};

/// Credential of the requests to a server.
#[derive(Debug)]
pub enum Credential {
    /// No credential, for a server that a sign-in must not be sent to.
    None,
    /// The tokens of a sign-in: of `fetchwell source login`, if there are any, or of a caller.
    SignIn(Bearer),
    /// A bearer token in a variable, a file, or printed by a command.
    Token(Box<Credentials>),
}

impl Credential {
    /// Returns the token of the next requests; `None` without a sign-in of this program's own, which a server need not ask
    /// for.
    pub(crate) async fn token(&self) -> Result<Option<SecretString>, Problem> {
        match self {
            Self::None => Ok(None),
            Self::SignIn(bearer) => match bearer.token().await {
                Ok(token) => Ok(Some(token)),
                // A server that a caller signs in to is not called as anyone else.
                Err(error)
                    if matches!(error.fault, OAuthFault::NotSignedIn) && error.sign_in_page.is_none() =>
                {
                    Ok(None)
                }
                Err(error) => Err(of_error(error.into())),
            },
            Self::Token(credentials) => {
                let token = credentials.token(&CallContext::default(), Timestamp::now()).await;
                token.map(Some).map_err(|error: CredentialError| of_error(error.into()))
            }
        }
    }

    /// Reads or refreshes the token after the server refused one. Returns it if it is another one than the refused.
    pub(crate) async fn renew(
        &self,
        refused: Option<&SecretString>,
    ) -> Result<Option<SecretString>, Problem> {
        match (self, refused) {
            (Self::None, _) => Ok(None),
            (Self::SignIn(_), None) => self.token().await,
            (Self::SignIn(bearer), Some(refused)) => {
                bearer.refused(refused).await.map(Some).map_err(|error| of_error(error.into()))
            }
            (Self::Token(_), None) => Ok(None),
            (Self::Token(credentials), Some(refused)) => {
                Ok(credentials.renew(&CallContext::default(), refused, Timestamp::now()).await)
            }
        }
    }

    /// Returns the error for a server that asks for another credential.
    pub(crate) fn unaccepted(&self, source: &str) -> SourceError {
        match self {
            Self::SignIn(bearer) if bearer.account().person().is_some() => {
                bearer.account().error(OAuthFault::Expired).into()
            }
            Self::None | Self::SignIn(_) => sign_in(source),
            Self::Token(credentials) => credentials.unaccepted(),
        }
    }
}

/// Returns the error of a server that asks for a sign-in.
pub(crate) fn sign_in(source: &str) -> SourceError {
    SourceError::Reauthorize {
        problem: format!("the MCP server of the source `{source}` asks for a sign-in"),
        remedy: format!("run `fetchwell source login {source}`"),
    }
}

fn of_error(error: SourceError) -> Problem {
    match error {
        SourceError::Reauthorize { problem, remedy } => Problem::Reauthorize { problem, remedy },
        SourceError::RateLimited { retry_after } => Problem::RateLimited(retry_after),
        SourceError::StateUnavailable { problem } => Problem::StateUnavailable(problem),
        other => Problem::Unreachable(other.to_string()),
    }
}
