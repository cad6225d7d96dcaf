//! Who may ask, as the configuration says it.

use secrecy::{ExposeSecret, SecretString};

use super::{Algorithm, AuthorityUrl};

/// What a caller is measured by. Without an issuer, introspection and tokens nobody is admitted.
#[derive(Debug, Clone, Default)]
pub struct AccessSettings {
    /// The audiences that a token may have: URLs of this server. A trailing slash makes no difference.
    pub resources: Vec<String>,
    /// Whose JWTs are accepted.
    pub issuer: Option<IssuerSettings>,
    /// Who is asked about other tokens.
    pub introspection: Option<IntrospectionSettings>,
    /// What every token of an authorization server has to have in its scope.
    pub scopes: Vec<String>,
    /// The tokens that were made by `fetchwell token new`.
    pub tokens: Vec<StaticToken>,
}

/// An authorization server whose JWTs are checked here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSettings {
    /// What `iss` has to be, and where the rest is discovered.
    pub issuer: AuthorityUrl,
    /// Where its keys are, when they are not to be discovered.
    pub jwks_url: Option<AuthorityUrl>,
    /// Which signatures are accepted.
    pub algorithms: Vec<Algorithm>,
}

/// An authorization server that is asked about each token (RFC 7662).
#[derive(Debug, Clone)]
pub struct IntrospectionSettings {
    /// Where it is asked.
    pub url: AuthorityUrl,
    /// Who we are there.
    pub client_id: String,
    /// What proves it.
    pub client_secret: SecretString,
}

/// A token that only we know, by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticToken {
    /// What its holder is called.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// Whether it may read `/health` and `/metrics`.
    pub metrics: bool,
}

impl AccessSettings {
    /// Whether an authorization server gives tokens; else only those of the configuration are accepted.
    #[must_use]
    pub fn has_authorization_server(&self) -> bool {
        self.issuer.is_some() || self.introspection.is_some()
    }

    /// Whether there is any way to be admitted.
    #[must_use]
    pub fn can_admit(&self) -> bool {
        self.issuer.is_some() || self.introspection.is_some() || !self.tokens.is_empty()
    }
}

impl PartialEq for IntrospectionSettings {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
            && self.client_id == other.client_id
            && self.client_secret.expose_secret() == other.client_secret.expose_secret()
    }
}

impl Eq for IntrospectionSettings {}
