//! The authentication settings of the configuration.

use secrecy::{ExposeSecret, SecretString};

use super::algorithm::Algorithm;
use super::authority::AuthorityUrl;

/// The settings for authenticating callers. Without an issuer, introspection and tokens all requests are rejected.
#[derive(Debug, Clone, Default)]
pub struct AuthenticatorSettings {
    /// Accepted audiences: URLs of this server. A trailing slash is ignored.
    pub resources: Vec<String>,
    /// Issuer of accepted JWTs.
    pub issuer: Option<IssuerSettings>,
    /// Authorization server that introspects other tokens.
    pub introspection: Option<IntrospectionSettings>,
    /// Scopes that every token of an authorization server requires.
    pub scopes: Vec<String>,
    /// Client for signing in to record pages.
    pub sign_in: Option<SignInSettings>,
    /// Static tokens, created by `fetchwell token new`.
    pub tokens: Vec<StaticToken>,
    /// True if an embedding model is configured, so that searches by meaning are declared.
    pub searches_meaning: bool,
}

/// The settings of an issuer of JWTs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSettings {
    /// Required value of `iss`, and base URL for discovery.
    pub issuer: AuthorityUrl,
    /// URL of the key set, if it is not discovered.
    pub jwks_url: Option<AuthorityUrl>,
    /// Accepted signature algorithms.
    pub algorithms: Vec<Algorithm>,
}

/// The settings of an authorization server that introspects tokens (RFC 7662).
#[derive(Debug, Clone)]
pub struct IntrospectionSettings {
    /// URL of the introspection endpoint.
    pub url: AuthorityUrl,
    /// Client id of this server there.
    pub client_id: String,
    /// Client secret of this server there.
    pub client_secret: SecretString,
}

/// The client of the issuer with which people sign in by a browser.
#[derive(Debug, Clone)]
pub struct SignInSettings {
    /// OAuth client id.
    pub client_id: String,
    /// Client secret; `None` for a public client.
    pub client_secret: Option<SecretString>,
    /// Scopes to request at sign-in.
    pub scopes: Vec<String>,
    /// Requested resource (RFC 8707).
    pub resource: Option<String>,
}

/// A static token, of which only the hash is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticToken {
    /// Name of the token's holder.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// True if the token may read `/health` and `/metrics`.
    pub metrics: bool,
    /// True if the token may clear caches and read the history of searches.
    pub admin: bool,
}

impl AuthenticatorSettings {
    /// Returns true if an authorization server is configured. Otherwise only static tokens are accepted.
    #[must_use]
    pub fn has_authorization_server(&self) -> bool {
        self.issuer.is_some() || self.introspection.is_some()
    }

    /// Returns true if any kind of token can be accepted.
    #[must_use]
    pub fn can_authenticate(&self) -> bool {
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

impl PartialEq for SignInSettings {
    fn eq(&self, other: &Self) -> bool {
        let secret =
            |settings: &Self| settings.client_secret.as_ref().map(|secret| secret.expose_secret().to_owned());
        self.client_id == other.client_id
            && self.scopes == other.scopes
            && self.resource == other.resource
            && secret(self) == secret(other)
    }
}

impl Eq for SignInSettings {}
