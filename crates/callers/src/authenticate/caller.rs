//! The authenticated caller and its grant.
//!
//! A grant is the unit of isolation: caches, cursors and counters are keyed by its id, so that callers do not share
//! them.

use std::fmt;

use fetchwell_core::hex::hexadecimal;
use fetchwell_core::saturate::saturated;
use jiff::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// An authenticated caller with its token.
#[derive(Debug, Clone)]
pub struct AuthenticatedCaller {
    /// Identity of the caller.
    pub caller: Caller,
    /// Token of the request.
    pub token: SecretString,
    /// Expiry of the token, if it has one.
    pub expires_at: Option<Timestamp>,
    /// True if the caller may clear caches and read the history of searches. Only static tokens can allow that.
    pub is_admin: bool,
}

/// The identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Caller {
    /// The holder of a static token.
    Token {
        /// Name of the token in the configuration.
        name: String,
    },
    /// A subject of an authorization server.
    Subject(Subject),
}

/// A subject of an authorization server, with one grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    /// Issuer of the token (`iss`), or the URL that introspected it.
    pub issuer: String,
    /// Subject of the token (`sub`).
    pub subject: String,
    /// Client of the caller (`client_id`, or else `azp`).
    pub client: Option<String>,
    /// Digest of all other claims that may limit access. Two grants of one person are two callers.
    pub grant: String,
}

impl Caller {
    /// Returns the id of the person, which is the same for all their grants. Quotas per person are keyed by it.
    #[must_use]
    pub fn person_id(&self) -> GrantId {
        match self {
            Self::Token { .. } => self.grant_id(),
            Self::Subject(Subject { issuer, subject, .. }) => {
                GrantId::from_parts(&[Some("person"), Some(issuer), Some(subject)])
            }
        }
    }

    /// Returns the id of the caller's grant.
    #[must_use]
    pub fn grant_id(&self) -> GrantId {
        match self {
            Self::Token { name } => GrantId::from_parts(&[Some("token"), Some(name)]),
            Self::Subject(Subject { issuer, subject, client, grant }) => GrantId::from_parts(&[
                Some("subject"),
                Some(issuer),
                Some(subject),
                client.as_deref(),
                Some(grant),
            ]),
        }
    }
}

/// The id of a grant: 128 bits of a SHA-256, from which the caller cannot be derived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GrantId([u8; 16]);

impl GrantId {
    fn from_parts(parts: &[Option<&str>]) -> Self {
        Self(digest(parts).first_chunk().copied().unwrap_or_default())
    }

    /// Returns the first 8 characters of the id, for logs.
    #[must_use]
    pub fn short(&self) -> String {
        hexadecimal(self.0.iter().take(4))
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl fmt::Debug for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrantId({self})")
    }
}

/// Computes the SHA-256 of parts, each prefixed with its length, so that different lists never have equal input.
pub(super) fn digest(parts: &[Option<&str>]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        match part {
            None => hash.update([0]),
            Some(text) => {
                hash.update([1]);
                hash.update(saturated::<u64>(text.len()).to_be_bytes());
                hash.update(text);
            }
        }
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn subject(issuer: &str, subject: &str, client: Option<&str>, grant: &str) -> Caller {
        let [issuer, subject, grant] = [issuer, subject, grant].map(str::to_owned);
        Caller::Subject(Subject { issuer, subject, client: client.map(str::to_owned), grant })
    }

    #[test]
    fn every_difference_is_another_grant() {
        let callers = [
            Caller::Token { name: "a".to_owned() },
            Caller::Token { name: "subject".to_owned() },
            subject("i", "a", None, ""),
            subject("i", "a", Some(""), ""),
            subject("i", "a", Some("c"), ""),
            subject("i", "a", Some("c"), "g"),
            subject("i", "ac", Some(""), "g"),
            subject("ia", "c", Some(""), "g"),
            subject("i", "a", None, "g"),
        ];
        let ids: HashSet<GrantId> = callers.iter().map(Caller::grant_id).collect();
        assert_eq!(ids.len(), callers.len());
    }

    #[test]
    fn an_id_is_32_stable_digits() {
        let id = Caller::Token { name: "ci".to_owned() }.grant_id();
        // The id is stored in files: another derivation would lose the data that is keyed by it.
        assert_eq!(id.to_string(), "6b53285c795da46ac9b1ea6bfe9a3135");
        assert!(id.to_string().starts_with(&id.short()) && id.short().len() == 8);
    }
}
