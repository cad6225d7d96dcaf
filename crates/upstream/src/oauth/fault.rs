//! Errors of sign-in and of tokens, each with its remedy.
//!
//! No error contains a token, a code, a secret, or text of a server other than error codes of OAuth.

use std::fmt;
use std::path::PathBuf;

use fetchwell_core::handle::SourceName;
use fetchwell_source::SourceError;

/// Reason why there is no usable access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthError {
    /// The source that the token is for.
    pub source_name: SourceName,
    /// URL of the page on which the caller signs in, if the token is a caller's.
    pub sign_in_page: Option<String>,
    /// Kind of the fault.
    pub fault: OAuthFault,
}

/// Fault of a sign-in or of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OAuthFault {
    /// No tokens are stored.
    NotSignedIn,
    /// The access token has expired or was refused, and there is no refresh token.
    Expired,
    /// The authorization server refused the refresh token or the client.
    Rejected {
        /// Error code of OAuth.
        code: String,
    },
    /// The stored tokens cannot be parsed.
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Position or kind of the error, without content.
        problem: String,
    },
    /// The stored tokens were issued for another MCP server.
    OtherServer {
        /// URL of that server, without its query.
        url: String,
    },
    /// Other users can read the stored tokens.
    OpenToOthers {
        /// Path of the file.
        path: PathBuf,
        /// Unix permissions of the file.
        mode: u32,
    },
    /// The stored tokens cannot be read or written.
    Storage {
        /// Path of the file.
        path: PathBuf,
        /// Error message of the system.
        problem: String,
    },
    /// The state that servers share cannot be used.
    SharedState {
        /// Description of the problem, with its remedy.
        problem: String,
    },
    /// Another process held the lock of the tokens for longer than the timeout.
    Locked,
    /// The tokens were issued by another authorization server than the one that the MCP server names, or a reply came
    /// from another one (RFC 9207).
    OtherIssuer,
    /// A URL is not https, and not on this machine.
    Insecure {
        /// Origin of the URL.
        origin: String,
    },
    /// A server of the internet names a URL of this machine or of its network.
    Internal {
        /// Origin of the URL.
        origin: String,
    },
    /// The MCP server does not ask for a sign-in.
    NoSignIn,
    /// The metadata of the MCP server or of its authorization server cannot be used.
    Metadata {
        /// Description of the problem.
        problem: &'static str,
    },
    /// The authorization server does not register clients.
    NoRegistration {
        /// Description of the problem.
        problem: String,
    },
    /// As many clients as are allowed within an hour were registered for the source.
    TooManyRegistrations,
    /// The person or the authorization server refused the sign-in.
    AccessDenied,
    /// The authorization server refused a request.
    Refused {
        /// Error code of OAuth.
        code: String,
    },
    /// The browser did not return within the timeout.
    NoReply {
        /// Timeout in minutes.
        minutes: u64,
    },
    /// The port that the browser returns to cannot be opened.
    Listener {
        /// Error message of the system.
        problem: String,
    },
    /// A server cannot be reached, or reports that it is unavailable.
    Unreachable {
        /// Origin of the server.
        origin: String,
        /// Description of the failure, in our words.
        problem: String,
    },
    /// A server asks for a pause.
    RateLimited {
        /// Origin of the server.
        origin: String,
    },
    /// The answer of a server cannot be used.
    Malformed {
        /// Origin of the server.
        origin: String,
        /// Description of the problem, without text of the answer.
        problem: String,
    },
    /// The refresh was stopped, because the program is ending.
    Stopped,
}

impl OAuthFault {
    /// Returns true if the authorization server does not know the client, or no longer accepts it.
    pub(super) fn is_of_client(&self) -> bool {
        let (Self::Refused { code } | Self::Rejected { code }) = self else { return false };
        matches!(code.as_str(), "invalid_client" | "unauthorized_client")
    }
}

impl OAuthError {
    /// Returns true if the same request may succeed later without a new sign-in.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        use OAuthFault::{
            Locked, Malformed, Metadata, RateLimited, SharedState, Stopped, TooManyRegistrations, Unreachable,
        };
        matches!(
            self.fault,
            Locked
                | Stopped
                | TooManyRegistrations
                | SharedState { .. }
                | Metadata { .. }
                | Malformed { .. }
                | RateLimited { .. }
                | Unreachable { .. }
        )
    }

    /// Returns the remedy as an instruction, such as "run `fetchwell source login wiki`".
    #[must_use]
    pub fn remedy(&self) -> String {
        match &self.fault {
            OAuthFault::OpenToOthers { path, .. } => {
                format!("run `chmod 600 {}`, or {} again", path.display(), self.sign_in())
            }
            OAuthFault::Storage { path, .. } => format!("check the permissions of {}", path.display()),
            OAuthFault::Insecure { .. } => "use an https URL".to_owned(),
            OAuthFault::Internal { .. } => {
                "check the URL of the source; if its server is yours, configure it by its address in your network"
                    .to_owned()
            }
            OAuthFault::NoSignIn => {
                "check the URL of the source, or give it a `credential` in the configuration".to_owned()
            }
            OAuthFault::NoRegistration { .. } => {
                "register a client with the vendor, and write its `client_id` into the configuration of the source"
                    .to_owned()
            }
            OAuthFault::TooManyRegistrations => {
                "try again in an hour, or register a client with the vendor and write its `client_id` into the configuration"
                    .to_owned()
            }
            OAuthFault::Listener { .. } => "choose another redirect port, or end what uses it".to_owned(),
            _ if self.is_transient() => "try again later".to_owned(),
            _ => self.sign_in(),
        }
    }

    fn sign_in(&self) -> String {
        let name = &self.source_name;
        match &self.sign_in_page {
            Some(page) => format!("sign in to `{name}` at {page}"),
            None => format!("run `fetchwell source login {name}`"),
        }
    }
}

impl fmt::Display for OAuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.source_name;
        let server = format!("the authorization server of source `{name}`");
        match &self.fault {
            OAuthFault::NotSignedIn => write!(f, "source `{name}` is not signed in"),
            OAuthFault::Expired => write!(f, "the sign-in to source `{name}` has expired"),
            OAuthFault::Rejected { code } => write!(f, "{server} no longer accepts the sign-in ({code})"),
            OAuthFault::Damaged { path, problem } => {
                write!(f, "the tokens of source `{name}` in {} are damaged ({problem})", path.display())
            }
            OAuthFault::OtherServer { url } => {
                write!(f, "the tokens of source `{name}` are for {url} and are not sent elsewhere")
            }
            OAuthFault::OpenToOthers { path, mode } => {
                write!(
                    f,
                    "others can read the tokens of source `{name}` in {} (mode {mode:o})",
                    path.display()
                )
            }
            OAuthFault::Storage { path, problem } => {
                write!(f, "the tokens of source `{name}` in {} cannot be used ({problem})", path.display())
            }
            OAuthFault::SharedState { problem } => write!(f, "the tokens of source `{name}`: {problem}"),
            OAuthFault::Locked => {
                write!(f, "another process has been refreshing the token of source `{name}` for too long")
            }
            OAuthFault::OtherIssuer => {
                write!(f, "source `{name}` has another authorization server than at sign-in")
            }
            OAuthFault::Insecure { origin } => {
                write!(f, "{origin} is not https, so nothing secret of source `{name}` is sent there")
            }
            OAuthFault::Internal { origin } => {
                write!(
                    f,
                    "the server of source `{name}` names {origin} for its sign-in, an address of your network that it must not name"
                )
            }
            OAuthFault::NoSignIn => write!(f, "the server of source `{name}` does not ask for a sign-in"),
            OAuthFault::Metadata { problem } => {
                write!(f, "source `{name}` offers no sign-in that fetchwell can use: {problem}")
            }
            OAuthFault::NoRegistration { problem } => {
                write!(f, "{server} does not register fetchwell ({problem})")
            }
            OAuthFault::TooManyRegistrations => {
                write!(f, "fetchwell has registered too often at {server} within an hour")
            }
            OAuthFault::AccessDenied => write!(f, "the sign-in to source `{name}` was cancelled or refused"),
            OAuthFault::Refused { code } => write!(f, "{server} refused the sign-in ({code})"),
            OAuthFault::NoReply { minutes } => {
                write!(
                    f,
                    "the browser did not return from the sign-in to source `{name}` within {minutes} minutes"
                )
            }
            OAuthFault::Listener { problem } => {
                write!(f, "the browser cannot return to this program ({problem})")
            }
            OAuthFault::Unreachable { origin, problem } => {
                write!(f, "{origin}, for the token of source `{name}`: {problem}")
            }
            OAuthFault::RateLimited { origin } => {
                write!(f, "{origin} asks for a pause before a new token of source `{name}`")
            }
            OAuthFault::Malformed { origin, problem } => {
                write!(f, "{origin}, for the token of source `{name}`: {problem}")
            }
            OAuthFault::Stopped => write!(f, "the refresh of the token of source `{name}` was stopped"),
        }
    }
}

impl std::error::Error for OAuthError {}

impl From<OAuthError> for SourceError {
    fn from(error: OAuthError) -> Self {
        let is_of_caller = error.sign_in_page.is_some();
        match error.fault {
            OAuthFault::RateLimited { .. } => Self::RateLimited { retry_after: None },
            // The limit is ours: the source answers those who are signed in.
            OAuthFault::TooManyRegistrations => Self::StateUnavailable { problem: error.to_string() },
            // Files and addresses of the server are no business of its callers. The source has not failed.
            OAuthFault::Storage { .. } | OAuthFault::OpenToOthers { .. } | OAuthFault::SharedState { .. }
                if is_of_caller =>
            {
                tracing::warn!(%error, remedy = %error.remedy(), "tokens of a caller");
                let name = &error.source_name;
                let problem = format!(
                    "the sign-in to source `{name}` cannot be read or stored; tell the operator of this server"
                );
                Self::StateUnavailable { problem }
            }
            // A new sign-in replaces a file that cannot be parsed.
            OAuthFault::Damaged { .. } if is_of_caller => {
                tracing::warn!(%error, "tokens of a caller");
                let problem = format!("the stored sign-in to source `{}` is damaged", error.source_name);
                Self::Reauthorize { problem, remedy: error.remedy() }
            }
            OAuthFault::SharedState { .. } => Self::StateUnavailable { problem: error.to_string() },
            _ if error.is_transient() => Self::Unreachable { problem: error.to_string() },
            _ => Self::Reauthorize { problem: error.to_string(), remedy: error.remedy() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fault: OAuthFault, is_of_caller: bool, code: &str, remedy: &str) {
        let sign_in_page = is_of_caller.then(|| "https://r.example/sources".to_owned());
        let error = OAuthError { source_name: "wiki".parse().unwrap(), sign_in_page, fault };
        assert!(error.remedy().contains(remedy), "{error}: {}", error.remedy());
        let shown = SourceError::from(error.clone());
        assert_eq!(shown.code(), code, "{error}");
        if is_of_caller {
            // Callers learn no path and no address of the server, and its own state opens no circuit.
            assert!(
                !shown.to_string().contains("/state/") && !shown.to_string().contains("it broke"),
                "{shown}"
            );
            assert!(!shown.is_source_failure(), "{shown}");
        }
    }

    #[test]
    fn faults_have_the_code_and_the_remedy_of_their_kind() {
        let path = || PathBuf::from("/state/wiki.json");
        let login = "run `fetchwell source login wiki`";
        let code = || "invalid_grant".to_owned();
        let origin = || "https://a.example".to_owned();
        let problem = || "it broke".to_owned();
        check(OAuthFault::NotSignedIn, false, "reauthorize", login);
        check(OAuthFault::NotSignedIn, true, "reauthorize", "sign in to `wiki` at https://r.example/sources");
        let of_callers = |fault| check(fault, true, "reauthorize", "at https://r.example/sources");
        of_callers(OAuthFault::Expired);
        of_callers(OAuthFault::Rejected { code: code() });
        check(OAuthFault::Expired, false, "reauthorize", login);
        check(OAuthFault::Rejected { code: code() }, false, "reauthorize", login);
        check(OAuthFault::Damaged { path: path(), problem: problem() }, false, "reauthorize", login);
        check(OAuthFault::OtherServer { url: origin() }, false, "reauthorize", login);
        check(OAuthFault::OpenToOthers { path: path(), mode: 0o644 }, false, "reauthorize", "chmod 600");
        check(OAuthFault::Storage { path: path(), problem: problem() }, false, "reauthorize", "permissions");
        check(OAuthFault::OtherIssuer, false, "reauthorize", login);
        check(OAuthFault::Internal { origin: origin() }, false, "reauthorize", "check the URL");
        check(OAuthFault::NoRegistration { problem: problem() }, false, "reauthorize", "`client_id`");
        check(OAuthFault::Storage { path: path(), problem: problem() }, true, "source_unavailable", "");
        check(OAuthFault::SharedState { problem: problem() }, true, "source_unavailable", "later");
        check(OAuthFault::Damaged { path: path(), problem: problem() }, true, "reauthorize", "sign in to");
        check(OAuthFault::Locked, false, "source_unavailable", "later");
        check(OAuthFault::Metadata { problem: "none" }, false, "source_unavailable", "later");
        let unreachable = OAuthFault::Unreachable { origin: origin(), problem: problem() };
        check(unreachable, false, "source_unavailable", "later");
        check(OAuthFault::RateLimited { origin: origin() }, false, "source_rate_limited", "later");
        check(OAuthFault::TooManyRegistrations, true, "source_unavailable", "in an hour");
    }
}
