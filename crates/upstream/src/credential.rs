//! The credential of an HTTP server.

use fetchwell_callers::CallContext;
use fetchwell_pdpp::{CredentialError, Credentials};
use fetchwell_source::SourceError;
use jiff::Timestamp;
use secrecy::SecretString;

use crate::fault::Problem;

/// Credential of the requests to a server.
#[derive(Debug)]
pub enum Credential {
    /// No credential at all.
    None,
    /// A bearer token in a variable, a file, or printed by a command.
    Token(Credentials),
}

impl Credential {
    /// Returns the token of the next requests.
    pub(crate) async fn token(&self) -> Result<Option<SecretString>, Problem> {
        match self {
            Self::None => Ok(None),
            Self::Token(credentials) => {
                let token = credentials.token(&CallContext::default(), Timestamp::now()).await;
                token.map(Some).map_err(of_credential)
            }
        }
    }

    /// Reads the token again. Returns it if it is another one than the refused.
    pub(crate) async fn other_than(&self, refused: Option<&SecretString>) -> Option<SecretString> {
        match self {
            Self::None => None,
            Self::Token(credentials) => {
                credentials.other_than(&CallContext::default(), refused?, Timestamp::now()).await
            }
        }
    }

    /// Returns the error for a server that asks for another credential.
    pub(crate) fn unaccepted(&self, source: &str) -> SourceError {
        match self {
            Self::None => SourceError::Reauthorize {
                problem: format!("the MCP server of the source `{source}` asks for a sign-in"),
                remedy: login(source),
            },
            Self::Token(credentials) => credentials.unaccepted(),
        }
    }
}

/// Returns the remedy of a source that needs a sign-in.
pub(crate) fn login(source: &str) -> String {
    format!("run `fetchwell source login {source}`")
}

fn of_credential(error: CredentialError) -> Problem {
    match SourceError::from(error) {
        SourceError::Reauthorize { problem, remedy } => Problem::Reauthorize { problem, remedy },
        other => Problem::Unreachable(other.to_string()),
    }
}
