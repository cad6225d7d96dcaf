//! Why somebody is not admitted, named by what to do about it.
//!
//! No text here has a part of the token or of what is in it: it goes to whoever sent it, and into logs.

use std::fmt;
use std::time::Duration;

use http::StatusCode;

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// There is no token: get one from the authorization server.
    SignIn,
    /// There is no token, and no authorization server that gives one: ask whoever runs the server.
    AskOperator,
    /// The header is not one bearer token: send `Authorization: Bearer` with the token.
    SendBearer(HeaderFault),
    /// The token is not good: get another.
    RenewToken(TokenFault),
    /// The token is good for less than what is asked: ask the authorization server for these scopes.
    AskForScopes {
        /// All that are needed.
        needed: Vec<String>,
    },
    /// The token is not one of a client: sign in with a client.
    UseClientToken {
        /// It is the owner's own.
        is_owner: bool,
    },
    /// The authorization server cannot say whether the token is good: try again.
    TryLater {
        /// After this time.
        after: Duration,
    },
}

/// What is wrong with the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// Two tokens are no token.
    #[error("there is more than one Authorization header")]
    Several,
    /// Basic, or no scheme at all.
    #[error("the Authorization header is not `Bearer` and a token")]
    NotBearer,
    /// The longest is `bearer::TOKEN_BYTES_MOST`.
    #[error("the token is longer than 16 KiB")]
    TooLong,
    /// A token is letters, digits and `-._~+/`, with `=` at its end.
    #[error("the token has characters that no bearer token has")]
    Characters,
}

/// What is wrong with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// No static token, or none that can be checked.
    #[error("the token is unknown")]
    Unknown,
    /// It looks like a JWT and is none.
    #[error("the token is malformed")]
    Malformed,
    /// `alg` is not in the list.
    #[error("the token's signature algorithm is not accepted")]
    Algorithm,
    /// `typ` says that it is something else.
    #[error("the token is not an access token")]
    Type,
    /// It has extensions that must be understood (`crit`).
    #[error("the token has critical extensions, of which none is known")]
    Critical,
    /// No key has its `kid`, or none is the only one it can be.
    #[error("the token is signed by an unknown key")]
    UnknownKey,
    /// The key is of another type than the signature.
    #[error("the token's signature algorithm is not that of its key")]
    OtherKeyType,
    /// The signature is not the key's.
    #[error("the token's signature is wrong")]
    Signature,
    /// `exp` is past.
    #[error("the token is expired")]
    Expired,
    /// `exp` is missing.
    #[error("the token has no expiry")]
    Endless,
    /// `nbf` or `iat` is to come.
    #[error("the token is not valid yet")]
    NotYet,
    /// `iss` is another, or missing.
    #[error("the token is of another issuer")]
    Issuer,
    /// `aud` has none of ours.
    #[error("the token is for another audience")]
    Audience,
    /// `sub` is missing, or too long.
    #[error("the token does not say whose it is")]
    Subject,
    /// It is good only with a proof of a key (`cnf`), and shown without one it may be stolen.
    #[error("the token is bound to a key, of which no proof is taken")]
    Bound,
    /// The authorization server says so.
    #[error("the token is not active")]
    Inactive,
}

impl Denial {
    /// 401, 403 or 503.
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

    /// The word of RFC 6750 for `error`, which is left out when there was no token.
    #[must_use]
    pub fn error(&self) -> Option<&'static str> {
        match self {
            Self::SignIn | Self::AskOperator => None,
            Self::SendBearer(_) | Self::RenewToken(_) => Some("invalid_token"),
            Self::AskForScopes { .. } | Self::UseClientToken { .. } => Some("insufficient_scope"),
            Self::TryLater { .. } => Some("temporarily_unavailable"),
        }
    }

    /// For `Retry-After`.
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
                "there is no token; this server takes only tokens of its own and has no sign-in: ask whoever runs it for \
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
            // RFC 6750, 3: it goes between quotes.
            assert!(
                text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !b"\"\\".contains(&byte)),
                "{text}"
            );
            assert_eq!(denial.retry_after().is_some(), status == 503, "{text}");
        }
    }
}
