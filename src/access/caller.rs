//! Who asks, and by which grant.
//!
//! A grant is what two callers must not share: caches, cursors and counts are kept apart by its id.

use std::fmt;

use jiff::Timestamp;
use secrecy::SecretString;
use sha2::{Digest, Sha256};

/// Somebody who may ask.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// Who it is.
    pub caller: Caller,
    /// What they came with.
    pub token: SecretString,
    /// Until when it is good, as far as it says.
    pub expires_at: Option<Timestamp>,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Caller {
    /// The holder of a static token.
    Token {
        /// What the configuration calls it.
        name: String,
    },
    /// Somebody an authorization server speaks for.
    Subject(Subject),
}

/// Somebody an authorization server speaks for, through one grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    /// Which authorization server.
    pub issuer: String,
    /// Whom: `sub`.
    pub subject: String,
    /// The client they use: `client_id`, or `azp`.
    pub client: Option<String>,
    /// A digest of what else the token says of what it may see: two grants of one person are two callers.
    pub grant: String,
}

impl Caller {
    /// The person, whatever grants they have: what is counted for each of them is counted by this.
    #[must_use]
    pub fn person_id(&self) -> GrantId {
        match self {
            Self::Token { .. } => self.grant_id(),
            Self::Subject(Subject { issuer, subject, .. }) => {
                GrantId::of(&[Some("person"), Some(issuer), Some(subject)])
            }
        }
    }

    /// The grant by which they ask.
    #[must_use]
    pub fn grant_id(&self) -> GrantId {
        match self {
            Self::Token { name } => GrantId::of(&[Some("token"), Some(name)]),
            Self::Subject(Subject { issuer, subject, client, grant }) => {
                GrantId::of(&[Some("subject"), Some(issuer), Some(subject), client.as_deref(), Some(grant)])
            }
        }
    }
}

/// What a grant is known by: 128 bits of a SHA-256, which say nothing of the caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrantId([u8; 16]);

impl GrantId {
    fn of(parts: &[Option<&str>]) -> Self {
        Self(digest(parts).first_chunk().copied().unwrap_or_default())
    }

    /// Its first 8 characters, for logs.
    #[must_use]
    pub fn short(&self) -> String {
        hex(&self.0).chars().take(8).collect()
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrantId({self})")
    }
}

/// SHA-256 of parts, each with its length before it, so that no two lists of parts are alike.
pub(super) fn digest(parts: &[Option<&str>]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        match part {
            None => hash.update([0]),
            Some(text) => {
                hash.update([1]);
                hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
                hash.update(text);
            }
        }
    }
    hash.finalize().into()
}

/// Bytes as lower-case hex digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
    fn an_id_is_32_digits_that_stay() {
        let id = Caller::Token { name: "ci".to_owned() }.grant_id();
        // It is in files: another way to make it would lose what is kept by it.
        assert_eq!(id.to_string(), "6b53285c795da46ac9b1ea6bfe9a3135");
        assert!(id.to_string().starts_with(&id.short()) && id.short().len() == 8);
    }
}
