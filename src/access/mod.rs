//! Who may ask.

mod algorithm;
mod authority_url;
pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use authority_url::{AuthorityUrl, InvalidAuthorityUrl};

use jiff::Timestamp;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use std::fmt;

/// Who was let in.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// who
    pub caller: Caller,
    /// token
    pub token: SecretString,
    /// end
    pub expires_at: Option<Timestamp>,
}
/// Caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Caller {
    /// static
    Token {
        /// name
        name: String,
    },
    /// subject
    Subject(Subject),
}
/// Subject.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    /// i
    pub issuer: String,
    /// s
    pub subject: String,
    /// c
    pub client: Option<String>,
    /// g
    pub grant: String,
}
/// Grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrantId(String);
impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl Caller {
    /// id
    #[must_use]
    pub fn grant_id(&self) -> GrantId {
        GrantId(Sha256::digest(format!("{self:?}")).iter().take(16).map(|b| format!("{b:02x}")).collect())
    }
}
/// Settings.
#[derive(Debug, Clone, Default)]
pub struct AccessSettings {
    /// a
    pub resources: Vec<String>,
    /// a
    pub issuer: Option<IssuerSettings>,
    /// a
    pub introspection: Option<IntrospectionSettings>,
    /// a
    pub scopes: Vec<String>,
    /// a
    pub tokens: Vec<StaticToken>,
}
/// a
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSettings {
    /// a
    pub issuer: AuthorityUrl,
    /// a
    pub jwks_url: Option<AuthorityUrl>,
    /// a
    pub algorithms: Vec<Algorithm>,
}
/// a
#[derive(Debug, Clone)]
pub struct IntrospectionSettings {
    /// a
    pub url: AuthorityUrl,
    /// a
    pub client_id: String,
    /// a
    pub client_secret: SecretString,
}
/// a
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticToken {
    /// a
    pub name: String,
    /// a
    pub sha256: [u8; 32],
    /// a
    pub metrics: bool,
}
/// Access.
#[derive(Debug)]
pub struct Access {}
/// Denial.
#[derive(Debug, thiserror::Error)]
pub enum Denial {
    /// x
    #[error("no")]
    SignIn,
    /// x
    #[error("scopes")]
    AskForScopes {
        /// x
        needed: Vec<String>,
    },
}
impl Access {
    /// n
    #[must_use]
    pub fn new(_: AccessSettings) -> Self {
        Self {}
    }
    /// n
    #[must_use]
    pub fn succeeded_by(&self, _: AccessSettings) -> Self {
        Self {}
    }
    /// a
    /// # Errors
    /// x
    pub async fn admit(&self, _: Option<&str>) -> Result<Admitted, Denial> {
        Err(Denial::SignIn)
    }
    /// m
    #[must_use]
    pub fn metadata(&self, resource: String) -> String {
        resource
    }
}
impl Denial {
    /// s
    #[must_use]
    pub fn status(&self) -> http::StatusCode {
        http::StatusCode::UNAUTHORIZED
    }
    /// e
    #[must_use]
    pub fn error(&self) -> Option<&'static str> {
        None
    }
    /// r
    #[must_use]
    pub fn retry_after(&self) -> Option<std::time::Duration> {
        None
    }
}
