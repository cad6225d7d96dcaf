//! Who may ask: the token of a request, checked.
//!
//! A static token is compared with the hashes of the configuration, a JWT is checked by the keys of its issuer, and
//! the authorization server is asked about any other. What cannot be checked is refused, and nothing here tells, logs
//! or shows a token. No HTTP server and no tool is known here.

mod algorithm;
mod authority;
mod authority_url;
mod bearer;
mod caller;
mod claims;
mod denial;
mod discovery;
mod distinct;
mod fair_queue;
mod introspection;
mod jwt;
mod key_set;
mod keys;
mod metadata;
mod settings;
mod static_token;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

pub use self::algorithm::{Algorithm, UnknownAlgorithm};
pub use self::authority_url::{AuthorityUrl, InvalidAuthorityUrl};
pub use self::bearer::authorization;
pub use self::caller::{Admitted, Caller, GrantId, Subject};
pub use self::denial::{Denial, HeaderFault, TokenFault};
pub use self::metadata::{Capabilities, ResourceMetadata, Retrieval};
pub use self::settings::{AccessSettings, IntrospectionSettings, IssuerSettings, StaticToken};
pub use self::static_token::NewToken;

use self::claims::{Claims, Expected, Issuer};
use self::introspection::Introspection;
use self::jwt::Unverified;
use self::key_set::KeySet;

/// The door. A clone is the same door.
#[derive(Debug, Clone)]
pub struct Access {
    settings: Arc<AccessSettings>,
    keys: Option<Arc<KeySet>>,
    introspection: Option<Arc<Introspection>>,
}

impl Access {
    /// Nobody is asked anything before the first token comes.
    #[must_use]
    pub fn new(settings: AccessSettings) -> Self {
        Self::within(settings, authority::DEADLINE)
    }

    /// The same, with so much time for each answer of an authorization server.
    fn within(settings: AccessSettings, deadline: Duration) -> Self {
        let keys = settings.issuer.clone().map(|issuer| Arc::new(KeySet::new(issuer, deadline)));
        let introspection =
            settings.introspection.clone().map(|asked| Arc::new(Introspection::new(asked, deadline)));
        Self { settings: Arc::new(settings), keys, introspection }
    }

    /// The door by other settings, which goes on with the keys and answers of the same authorization servers.
    #[must_use]
    pub fn succeeded_by(&self, settings: AccessSettings) -> Self {
        let next = Self::new(settings);
        let keys =
            self.keys.clone().filter(|keys| next.settings.issuer.as_ref().is_some_and(|new| keys.is_of(new)));
        let introspection = self
            .introspection
            .clone()
            .filter(|asked| next.settings.introspection.as_ref() == Some(asked.settings()));
        Self {
            settings: next.settings,
            keys: keys.or(next.keys),
            introspection: introspection.or(next.introspection),
        }
    }

    /// What it goes by.
    #[must_use]
    pub fn settings(&self) -> &AccessSettings {
        &self.settings
    }

    /// Authenticates the `Authorization` header of a request, the only one that it has (see [`authorization`]). `client` is
    /// the address that the request came from.
    ///
    /// # Errors
    ///
    /// There is no token, or it is not good for this server, or nobody can say now whether it is.
    pub async fn admit(&self, authorization: Option<&str>, client: IpAddr) -> Result<Admitted, Denial> {
        self.admit_at(authorization, client, Timestamp::now()).await
    }

    /// What clients read to find out where to sign in for `resource`, one of our URLs.
    #[must_use]
    pub fn metadata(&self, resource: &str) -> ResourceMetadata {
        let issuer = self.settings.issuer.as_ref().map(|issuer| issuer.issuer.to_string());
        ResourceMetadata::new(resource, issuer, &self.settings.scopes)
    }

    /// Whether somebody may read `/health` and `/metrics`, which a token of ours alone can let them: nobody else is asked
    /// about any other.
    ///
    /// # Errors
    ///
    /// There is no token of ours.
    pub fn may_read_metrics(&self, authorization: Option<&str>) -> Result<bool, Denial> {
        let token = bearer::token_of(authorization)?;
        let known = static_token::find(&self.settings.tokens, &token).ok_or(TokenFault::Unknown)?;
        Ok(known.metrics)
    }

    async fn admit_at(
        &self,
        authorization: Option<&str>,
        client: IpAddr,
        now: Timestamp,
    ) -> Result<Admitted, Denial> {
        let token = bearer::token_of(authorization).map_err(|denial| match denial {
            Denial::SignIn if !self.settings.has_authorization_server() => Denial::AskOperator,
            denial => denial,
        })?;
        if static_token::is_ours(&token) {
            let known = static_token::find(&self.settings.tokens, &token).ok_or(TokenFault::Unknown)?;
            let caller = Caller::Token { name: known.name.clone() };
            return Ok(Admitted { caller, token, expires_at: None });
        }
        match (&self.keys, &self.settings.issuer, &self.introspection) {
            (Some(keys), Some(issuer), _) if jwt::looks_like_jwt(token.expose_secret()) => {
                let unverified = Unverified::read(token.expose_secret(), &issuer.algorithms)?;
                let key = keys.key(unverified.wanted(), now).await?;
                let claims = unverified.verified_by(&key)?;
                self.admitted(&claims, Issuer::Signed(issuer.issuer.as_str()), token, now)
            }
            (_, issuer, Some(introspection)) => {
                let claims = introspection.claims(&token, client, now).await?;
                let known = issuer.as_ref().map(|issuer| issuer.issuer.as_str());
                let issuer = Issuer::Answered { known, by: introspection.settings().url.as_str() };
                self.admitted(&claims, issuer, token, now)
            }
            (_, _, None) => Err(TokenFault::Unknown.into()),
        }
    }

    fn admitted(
        &self,
        claims: &Claims,
        issuer: Issuer<'_>,
        token: SecretString,
        now: Timestamp,
    ) -> Result<Admitted, Denial> {
        let expected =
            Expected { issuer, resources: &self.settings.resources, scopes: &self.settings.scopes };
        let subject = claims.check(&expected, now)?;
        Ok(Admitted { caller: Caller::Subject(subject), token, expires_at: claims.expires_at() })
    }
}

#[cfg(test)]
mod tests;
