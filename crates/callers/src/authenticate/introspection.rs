//! Token introspection by an authorization server (RFC 7662).
//!
//! The claims of an active token are cached for at most a minute and never beyond the token's expiry, so a revoked
//! token is rejected after a minute at the latest. Negative responses are not cached. Concurrent requests with one
//! token share one introspection, and each client address has a share of the introspections. Without a response the
//! token is rejected.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::lru::{LruCache, LruLimits};
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use url::form_urlencoded;

use super::authority::{AuthorityClient, AuthorityFault, FailureLog, FairQueue, basic};
use super::claims::Claims;
use super::static_token::sha256;
use super::{Denial, IntrospectionSettings, TokenFault};

/// Maximum age of a cached response.
const CACHE_TTL: SignedDuration = SignedDuration::from_secs(60);

/// Maximum number of cached tokens. Most tokens of 10,000 callers are used within the minute.
const MAX_TOKENS: u64 = 10_000;

/// `Retry-After` of a failure.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Introspects tokens at one authorization server and caches the claims.
pub(super) struct Introspection {
    settings: IntrospectionSettings,
    client: AuthorityClient,
    deadline: Duration,
    /// Claims by the SHA-256 of the token.
    cache: LruCache<[u8; 32], CacheEntry>,
    /// Introspections in flight, by the SHA-256 of the token.
    in_flight: LruCache<[u8; 32], Arc<OnceCell<Answer>>>,
    queue: FairQueue,
    log: FailureLog,
}

type Answer = Result<Arc<Claims>, Denial>;

#[derive(Clone)]
struct CacheEntry {
    claims: Arc<Claims>,
    from: Timestamp,
    until: Timestamp,
}

impl Introspection {
    pub(super) fn new(settings: IntrospectionSettings, deadline: Duration) -> Self {
        let limits = LruLimits::new(MAX_TOKENS);
        Self {
            settings,
            client: AuthorityClient::default(),
            deadline,
            cache: LruCache::new(limits.with_lifetime(CACHE_TTL.unsigned_abs())),
            in_flight: LruCache::new(limits),
            queue: FairQueue::new(),
            log: FailureLog::default(),
        }
    }

    /// Returns the settings of the authorization server.
    pub(super) fn settings(&self) -> &IntrospectionSettings {
        &self.settings
    }

    /// Returns the claims of a token that the server says is active. `client` is the address that the token came from.
    pub(super) async fn claims(&self, token: &SecretString, client: IpAddr, now: Timestamp) -> Answer {
        let hash = sha256(token);
        if let Some(claims) = self.cached(&hash, now) {
            return Ok(claims);
        }
        let answer = self.in_flight.get_or_insert_with(hash, Arc::default);
        let introspect = async {
            // Another request may have filled the cache meanwhile.
            if let Some(claims) = self.cached(&hash, now) {
                return Ok(claims);
            }
            let answer = self.introspect(token, client, now).await;
            if let Ok(claims) = &answer {
                self.store(hash, claims, now);
            }
            self.in_flight.remove(&hash);
            answer
        };
        answer.get_or_init(|| introspect).await.clone()
    }

    async fn introspect(&self, token: &SecretString, client: IpAddr, now: Timestamp) -> Answer {
        // A wait in the queue is not the fault of the server, and a client could fill the log with it.
        let Ok(Ok(_permit)) = timeout(self.deadline, self.queue.acquire(client)).await else {
            return Err(Denial::TryLater { after: RETRY_AFTER });
        };
        let answer = timeout(self.deadline, self.post(token)).await;
        let answer = answer.unwrap_or(Err(AuthorityFault::Timeout));
        match answer.and_then(|body| read(&body)) {
            Ok(Some(claims)) => Ok(Arc::new(claims)),
            Ok(None) => Err(TokenFault::Inactive.into()),
            Err(problem) => {
                self.log(&problem, now);
                Err(Denial::TryLater { after: RETRY_AFTER })
            }
        }
    }

    async fn post(&self, token: &SecretString) -> Result<bytes::Bytes, AuthorityFault> {
        let unusable = |problem: &str| AuthorityFault::Unusable(problem.to_owned());
        let IntrospectionSettings { client_id, client_secret, .. } = &self.settings;
        let authorization = basic(client_id, client_secret)
            .ok_or_else(|| unusable("its client cannot be sent as a header"))?;
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token.expose_secret())
            .append_pair("token_type_hint", "access_token")
            .finish();
        self.client.post(self.settings.url.url(), Some(authorization), form).await
    }

    fn cached(&self, hash: &[u8; 32], now: Timestamp) -> Option<Arc<Claims>> {
        let entry = self.cache.get(hash)?;
        // Before `from` the clock was set back, so the age of the entry is unknown.
        (entry.from <= now && now < entry.until).then_some(entry.claims)
    }

    fn store(&self, hash: [u8; 32], claims: &Arc<Claims>, now: Timestamp) {
        let end = now.saturating_add(CACHE_TTL).unwrap_or(now);
        let until = claims.expires_at().map_or(end, |expires_at| expires_at.min(end));
        self.cache.insert(hash, CacheEntry { claims: Arc::clone(claims), from: now, until });
    }

    /// Logs a failure, at most once per interval, because a server that is down fails every request.
    fn log(&self, problem: &AuthorityFault, now: Timestamp) {
        if self.log.is_due(now) {
            tracing::warn!(url = %self.settings.url, %problem, "tokens cannot be introspected");
        }
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Parses an introspection response. Returns `None` if the token is not active.
fn read(body: &[u8]) -> Result<Option<Claims>, AuthorityFault> {
    #[derive(Deserialize)]
    struct State {
        active: bool,
    }
    let unusable = |problem: &str| AuthorityFault::Unusable(problem.to_owned());
    let state: State = serde_json::from_slice(body)
        .map_err(|_error| unusable("its answer is no JSON that says whether a token is active"))?;
    if !state.active {
        return Ok(None);
    }
    let claims = Claims::read(body).ok_or_else(|| unusable("its answer has claims of a wrong type"))?;
    Ok(Some(claims))
}
