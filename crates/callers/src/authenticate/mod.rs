//! Authentication of callers by the bearer token of a request.
//!
//! A static token is compared with the hashes in the configuration, a JWT is verified with the keys of its issuer,
//! and any other token is checked by introspection (RFC 7662). A token that cannot be checked is rejected, and no
//! token is ever logged or part of an error. The module knows no HTTP server and no tool.
//!
//! * `bearer`, `static_token`, `jwt/`, `algorithm`: the token of a request, static tokens, JWTs and their algorithms
//! * `introspection`, `sign_in`: token introspection (RFC 7662), and the sign-in of people in a browser (OAuth with PKCE); `reply`:
//!   the reply with which the browser returns
//! * `authority/`: requests to authorization servers
//! * `claims`, `distinct`: the checks of a token's claims, and JSON without duplicate members
//! * `caller`, `denial`, `metadata`: the caller, the reason for a rejection, the metadata for clients (RFC 9728)
//! * `settings`: values of the configuration

mod algorithm;
mod authority;
mod bearer;
mod caller;
mod claims;
mod denial;
mod distinct;
mod introspection;
mod jwt;
mod metadata;
mod reply;
mod settings;
mod sign_in;
mod static_token;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

pub use self::algorithm::{Algorithm, UnknownAlgorithm};
pub use self::authority::{AuthorityUrl, InvalidAuthorityUrl};
pub use self::bearer::authorization;
pub use self::caller::{AuthenticatedCaller, Caller, GrantId, Subject};
pub use self::denial::{Denial, HeaderFault, TokenFault};
pub use self::metadata::{Capabilities, ResourceMetadata, Retrieval};
pub use self::reply::AuthorizationReply;
pub use self::settings::{
    AuthenticatorSettings, IntrospectionSettings, IssuerSettings, SignInSettings, StaticToken,
};
pub use self::sign_in::{Attempt, SignIn, SignInFault};
pub use self::static_token::NewToken;

use self::claims::{ClaimRequirements, Claims, Issuer};
use self::introspection::Introspection;
use self::jwt::{KeySet, UnverifiedJwt};

/// Authenticates bearer tokens. Cheap to clone; clones share the key and introspection caches.
#[derive(Debug, Clone)]
pub struct Authenticator {
    settings: Arc<AuthenticatorSettings>,
    keys: Option<Arc<KeySet>>,
    introspection: Option<Arc<Introspection>>,
    sign_in: Option<Arc<SignIn>>,
}

impl Authenticator {
    /// Creates an authenticator. It sends no request before the first token arrives.
    #[must_use]
    pub fn new(settings: AuthenticatorSettings) -> Self {
        Self::with_deadline(settings, authority::DEADLINE)
    }

    /// Creates an authenticator with this timeout for requests to authorization servers.
    fn with_deadline(settings: AuthenticatorSettings, deadline: Duration) -> Self {
        let keys = settings.issuer.clone().map(|issuer| Arc::new(KeySet::new(issuer, deadline)));
        let introspection =
            settings.introspection.clone().map(|asked| Arc::new(Introspection::new(asked, deadline)));
        let issuer = settings.issuer.as_ref().map(|issuer| issuer.issuer.clone());
        let sign_in = settings.sign_in.clone().zip(issuer);
        let sign_in = sign_in.map(|(client, issuer)| Arc::new(SignIn::new(client, issuer, deadline)));
        Self { settings: Arc::new(settings), keys, introspection, sign_in }
    }

    /// Returns an authenticator with new settings. It keeps the caches of unchanged authorization servers.
    #[must_use]
    pub fn with_settings(&self, settings: AuthenticatorSettings) -> Self {
        let next = Self::new(settings);
        let keys = self
            .keys
            .clone()
            .filter(|keys| next.settings.issuer.as_ref().is_some_and(|new| keys.is_for(new)));
        let introspection = self
            .introspection
            .clone()
            .filter(|asked| next.settings.introspection.as_ref() == Some(asked.settings()));
        let sign_in = self.sign_in.clone().filter(|sign_in| {
            let client = next.settings.sign_in.as_ref().zip(next.settings.issuer.as_ref());
            client.is_some_and(|(client, issuer)| sign_in.is_of(client, &issuer.issuer))
        });
        Self {
            settings: next.settings,
            keys: keys.or(next.keys),
            introspection: introspection.or(next.introspection),
            sign_in: sign_in.or(next.sign_in),
        }
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &AuthenticatorSettings {
        &self.settings
    }

    /// Returns how people sign in for record pages, where that is configured.
    #[must_use]
    pub fn sign_in(&self) -> Option<&Arc<SignIn>> {
        self.sign_in.as_ref()
    }

    /// Authenticates the `Authorization` header of a request, the only one that it has (see [`authorization`]). `client` is
    /// the address that the request came from.
    ///
    /// # Errors
    ///
    /// The token is missing or invalid for this server, or the authorization server cannot check it now.
    pub async fn authenticate(
        &self,
        authorization: Option<&str>,
        client: IpAddr,
    ) -> Result<AuthenticatedCaller, Denial> {
        self.authenticate_at(authorization, client, Timestamp::now()).await
    }

    /// Authenticates a token that did not come in the `Authorization` header, such as that of a browser's session.
    ///
    /// # Errors
    ///
    /// As [`Self::authenticate`].
    pub async fn authenticate_token(
        &self,
        token: &SecretString,
        client: IpAddr,
    ) -> Result<AuthenticatedCaller, Denial> {
        let token = bearer::check_bare_token(token)?;
        self.authenticate_token_at(token, client, Timestamp::now()).await
    }

    /// Returns the metadata with which clients find the authorization server of `resource`, a URL of this server.
    #[must_use]
    pub fn metadata(&self, resource: &str) -> ResourceMetadata {
        let issuer = self.settings.issuer.as_ref().map(|issuer| issuer.issuer.to_string());
        ResourceMetadata::new(resource, issuer, &self.settings.scopes, self.settings.searches_meaning)
    }

    /// Returns true if a request may read `/health` and `/metrics`. Only static tokens can allow that, so no
    /// authorization server is asked.
    ///
    /// # Errors
    ///
    /// The token is missing, malformed, or no static token.
    pub fn may_read_metrics(&self, authorization: Option<&str>) -> Result<bool, Denial> {
        let token = bearer::parse_token(authorization)?;
        let known = static_token::find(&self.settings.tokens, &token).ok_or(TokenFault::Unknown)?;
        Ok(known.metrics)
    }

    async fn authenticate_at(
        &self,
        authorization: Option<&str>,
        client: IpAddr,
        now: Timestamp,
    ) -> Result<AuthenticatedCaller, Denial> {
        let token = bearer::parse_token(authorization).map_err(|denial| match denial {
            Denial::SignIn if !self.settings.has_authorization_server() => Denial::AskOperator,
            denial => denial,
        })?;
        self.authenticate_token_at(token, client, now).await
    }

    async fn authenticate_token_at(
        &self,
        token: SecretString,
        client: IpAddr,
        now: Timestamp,
    ) -> Result<AuthenticatedCaller, Denial> {
        if static_token::is_ours(&token) {
            let known = static_token::find(&self.settings.tokens, &token).ok_or(TokenFault::Unknown)?;
            let caller = Caller::Token { name: known.name.clone() };
            return Ok(AuthenticatedCaller { caller, token, expires_at: None, is_admin: known.admin });
        }
        match (&self.keys, &self.settings.issuer, &self.introspection) {
            (Some(keys), Some(issuer), _) if jwt::looks_like_jwt(token.expose_secret()) => {
                let unverified = UnverifiedJwt::read(token.expose_secret(), &issuer.algorithms)?;
                let key = keys.key(unverified.key_query(), now).await?;
                let claims = unverified.verify(&key)?;
                self.caller_from_claims(&claims, Issuer::Signed(issuer.issuer.as_str()), token, now)
            }
            (_, issuer, Some(introspection)) => {
                let claims = introspection.claims(&token, client, now).await?;
                let known = issuer.as_ref().map(|issuer| issuer.issuer.as_str());
                let issuer = Issuer::Answered { known, by: introspection.settings().url.as_str() };
                self.caller_from_claims(&claims, issuer, token, now)
            }
            (_, _, None) => Err(TokenFault::Unknown.into()),
        }
    }

    fn caller_from_claims(
        &self,
        claims: &Claims,
        issuer: Issuer<'_>,
        token: SecretString,
        now: Timestamp,
    ) -> Result<AuthenticatedCaller, Denial> {
        let expected =
            ClaimRequirements { issuer, resources: &self.settings.resources, scopes: &self.settings.scopes };
        let subject = claims.check(&expected, now)?;
        let (caller, expires_at) = (Caller::Subject(subject), claims.expires_at());
        Ok(AuthenticatedCaller { caller, token, expires_at, is_admin: false })
    }
}

#[cfg(test)]
mod tests;
