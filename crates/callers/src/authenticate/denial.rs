//! Reasons to reject a request, named by their remedy.
//!
//! No text here contains a part of the token or its claims, because it is logged and sent to the client.

use std::fmt;
use std::time::Duration;

use http::StatusCode;

/// A rejection of a request, named by what the client should do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// The token is missing: get one from the authorization server.
    SignIn,
    /// The token is missing, and no authorization server is configured: ask the operator of the server.
    AskOperator,
    /// The header is not a single bearer token: send `Authorization: Bearer` with the token.
    SendBearer(HeaderFault),
    /// The token is invalid: get another.
    RenewToken(TokenFault),
    /// The scope of the token is insufficient: request these scopes from the authorization server.
    AskForScopes {
        /// All required scopes.
        needed: Vec<String>,
    },
    /// The token is not a client's token: sign in with a client.
    UseClientToken {
        /// True for the owner's own token.
        is_owner: bool,
    },
    /// The authorization server cannot check the token now: try again.
    TryLater {
        /// Time until the next attempt is useful.
        after: Duration,
    },
}

/// A fault of the `Authorization` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// The request has more than one `Authorization` header.
    #[error("there is more than one Authorization header")]
    Several,
    /// The scheme is not `Bearer`, or is missing.
    #[error("the Authorization header is not `Bearer` and a token")]
    NotBearer,
    /// The token is longer than `bearer::MAX_TOKEN_BYTES`.
    #[error("the token is longer than 16 KiB")]
    TooLong,
    /// The token has characters other than letters, digits and `-._~+/`, with `=` at its end.
    #[error("the token has characters that no bearer token has")]
    Characters,
}

/// A fault of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// The token is not a known static token, and nothing is configured that could check it.
    #[error("the token is unknown")]
    Unknown,
    /// The token looks like a JWT but is malformed.
    #[error("the token is malformed")]
    Malformed,
    /// The algorithm (`alg`) is not in the accepted list.
    #[error("the token's signature algorithm is not accepted")]
    Algorithm,
    /// The type (`typ`) is not that of an access token.
    #[error("the token is not an access token")]
    Type,
    /// The token has extensions that must be understood (`crit`).
    #[error("the token has critical extensions, of which none is known")]
    Critical,
    /// The key set has no key with its `kid`, or no single key that fits.
    #[error("the token is signed by an unknown key")]
    UnknownKey,
    /// The key with its `kid` is for another algorithm.
    #[error("the token's signature algorithm is not that of its key")]
    OtherKeyType,
    /// The signature does not match the key.
    #[error("the token's signature is wrong")]
    Signature,
    /// The token has expired (`exp`).
    #[error("the token is expired")]
    Expired,
    /// The expiry (`exp`) is missing.
    #[error("the token has no expiry")]
    Endless,
    /// The start (`nbf` or `iat`) is in the future.
    #[error("the token is not valid yet")]
    NotYet,
    /// The issuer (`iss`) is another, or missing.
    #[error("the token is of another issuer")]
    Issuer,
    /// The audience (`aud`) contains no URL of this server.
    #[error("the token is for another audience")]
    Audience,
    /// The subject (`sub`) is missing, empty, too long, or has control characters.
    #[error("the token does not name its owner")]
    Subject,
    /// The token requires a proof of possession of a key (`cnf`). Without one it may be stolen.
    #[error("the token is bound to a key, of which no proof is taken")]
    Bound,
    /// The authorization server says that the token is not active.
    #[error("the token is not active")]
    Inactive,
}

impl Denial {
    /// Returns the HTTP status: 401, 403 or 503.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::SignIn | Self::AskOperator | Self::SendBearer(_) | Self::RenewToken(_) => {
                StatusCode::UNAUTHORIZED
            }
            Self::AskForScopes { .. } | Self::UseClientToken { .. } => StatusCode::FORBIDDEN,
            Self::TryLater { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the `error` code of RFC 6750, or `None` if there was no token.
    #[must_use]
    pub fn error(&self) -> Option<&'static str> {
        match self {
            Self::SignIn | Self::AskOperator => None,
            Self::SendBearer(_) | Self::RenewToken(_) => Some("invalid_token"),
            Self::AskForScopes { .. } | Self::UseClientToken { .. } => Some("insufficient_scope"),
            Self::TryLater { .. } => Some("temporarily_unavailable"),
        }
    }

    /// Returns the value of `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TryLater { after } => Some(*after),
            Self::SignIn
            | Self::AskOperator
            | Self::SendBearer(_)
            | Self::RenewToken(_)
            | Self::AskForScopes { .. }
            | Self::UseClientToken { .. } => None,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignIn => f.write_str("there is no token; send `Authorization: Bearer` with one"),
            Self::AskOperator => f.write_str(
                "there is no token; this server takes only tokens of its own and has no sign-in: ask its operator for \
                 one (fetchwell token new), and send it as `Authorization: Bearer`",
            ),
            Self::SendBearer(fault) => write!(f, "{fault}; send `Authorization: Bearer` with one token"),
            Self::RenewToken(fault) => write!(f, "{fault}; get another and send that"),
            Self::AskForScopes { needed } => {
                write!(f, "the token has too little scope; ask for {}", needed.join(" "))
            }
            Self::UseClientToken { is_owner: true } => {
                f.write_str("the token is the owner's own; connect as a client")
            }
            Self::UseClientToken { is_owner: false } => {
                f.write_str("the token is of a kind that is not accepted; connect as a client")
            }
            Self::TryLater { after } => {
                write!(f, "tokens cannot be checked now; try again after {} seconds", after.as_secs())
            }
        }
    }
}

impl std::error::Error for Denial {}

impl From<TokenFault> for Denial {
    fn from(fault: TokenFault) -> Self {
        Self::RenewToken(fault)
    }
}

impl From<HeaderFault> for Denial {
    fn from(fault: HeaderFault) -> Self {
        Self::SendBearer(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_denial_has_its_status_its_word_and_a_remedy_that_fits_a_header() {
        let after = Duration::from_secs(5);
        for (denial, status, error, remedy) in [
            (Denial::SignIn, 401, None, "send `Authorization: Bearer`"),
            (Denial::AskOperator, 401, None, "fetchwell token new"),
            (HeaderFault::Several.into(), 401, Some("invalid_token"), "with one token"),
            (HeaderFault::NotBearer.into(), 401, Some("invalid_token"), "send `Authorization: Bearer`"),
            (HeaderFault::TooLong.into(), 401, Some("invalid_token"), "16 KiB"),
            (TokenFault::Expired.into(), 401, Some("invalid_token"), "get another"),
            (
                Denial::AskForScopes { needed: vec!["a".into(), "b".into()] },
                403,
                Some("insufficient_scope"),
                "a b",
            ),
            (Denial::UseClientToken { is_owner: true }, 403, Some("insufficient_scope"), "the owner's own"),
            (Denial::UseClientToken { is_owner: false }, 403, Some("insufficient_scope"), "as a client"),
            (Denial::TryLater { after }, 503, Some("temporarily_unavailable"), "after 5 seconds"),
        ] {
            let text = denial.to_string();
            assert_eq!((denial.status().as_u16(), denial.error()), (status, error), "{text}");
            assert!(text.contains(remedy), "{text}");
            // The text goes between quotes in a header (RFC 6750, 3).
            assert!(
                text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !b"\"\\".contains(&byte)),
                "{text}"
            );
            assert_eq!(denial.retry_after().is_some(), status == 503, "{text}");
        }
    }
}
