//! Asking an authorization server about a token (RFC 7662).
//!
//! What it says of a good token is remembered for a minute at most and never beyond the token's end, so a token that
//! was revoked is refused a minute later. That a token is not good is not remembered. All who bring one token at once
//! wait for one answer, and tokens from one client address have a share of the questions. Without an answer nobody is
//! admitted.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use url::form_urlencoded;

use super::authority::{AuthorityClient, AuthorityFault};
use super::claims::Claims;
use super::fair_queue::FairQueue;
use super::static_token::sha256;
use super::{Denial, IntrospectionSettings, TokenFault};

/// How long an answer is good.
const REMEMBERED_FOR: SignedDuration = SignedDuration::from_secs(60);

/// Tokens whose answers are remembered. A token of 10,000 callers is used within the minute by most of them.
const TOKENS_MOST: u64 = 10_000;

/// When to ask again after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How often a failure is logged.
const LOGGED_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// An authorization server that knows tokens.
pub(super) struct Introspection {
    settings: IntrospectionSettings,
    client: AuthorityClient,
    deadline: Duration,
    /// By the SHA-256 of the token. The least recently used is forgotten first: the usual policy would refuse new ones.
    remembered: Cache<[u8; 32], Remembered>,
    /// Questions that are being answered.
    asked: Cache<[u8; 32], Arc<OnceCell<Answer>>>,
    queue: FairQueue,
    logged_at: Mutex<Option<Timestamp>>,
}

type Answer = Result<Arc<Claims>, Denial>;

#[derive(Clone)]
struct Remembered {
    claims: Arc<Claims>,
    from: Timestamp,
    until: Timestamp,
}

impl Introspection {
    pub(super) fn new(settings: IntrospectionSettings, deadline: Duration) -> Self {
        let remembered = Cache::builder()
            .max_capacity(TOKENS_MOST)
            .time_to_live(REMEMBERED_FOR.unsigned_abs())
            .eviction_policy(EvictionPolicy::lru());
        let asked = Cache::builder().max_capacity(TOKENS_MOST).eviction_policy(EvictionPolicy::lru());
        Self {
            settings,
            client: AuthorityClient::default(),
            deadline,
            remembered: remembered.build(),
            asked: asked.build(),
            queue: FairQueue::new(),
            logged_at: Mutex::default(),
        }
    }

    /// The server that is asked.
    pub(super) fn settings(&self) -> &IntrospectionSettings {
        &self.settings
    }

    /// Returns the claims of a token that the server says is active. `client` is the address that the token came from.
    pub(super) async fn claims(&self, token: &SecretString, client: IpAddr, now: Timestamp) -> Answer {
        let hash = sha256(token);
        if let Some(claims) = self.remembered_at(&hash, now) {
            return Ok(claims);
        }
        let answer = self.asked.get_with(hash, Arc::default);
        let ask = async {
            // Somebody else may have been answered since the first look.
            if let Some(claims) = self.remembered_at(&hash, now) {
                return Ok(claims);
            }
            let answer = self.ask(token, client, now).await;
            if let Ok(claims) = &answer {
                self.remember(hash, claims, now);
            }
            self.asked.invalidate(&hash);
            answer
        };
        answer.get_or_init(|| ask).await.clone()
    }

    async fn ask(&self, token: &SecretString, client: IpAddr, now: Timestamp) -> Answer {
        // A wait in the queue is no fault of the server, and a client could fill the log with it.
        let Ok(Ok(_place)) = timeout(self.deadline, self.queue.place(client)).await else {
            return Err(Denial::TryLater { after: RETRY_AFTER });
        };
        let answer = timeout(self.deadline, self.post(token)).await;
        let answer = answer.unwrap_or(Err(AuthorityFault::Slow));
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
        let authorization =
            basic(&self.settings).ok_or_else(|| unusable("its client cannot be sent as a header"))?;
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token.expose_secret())
            .append_pair("token_type_hint", "access_token")
            .finish();
        self.client.post(self.settings.url.url(), authorization, form).await
    }

    fn remembered_at(&self, hash: &[u8; 32], now: Timestamp) -> Option<Arc<Claims>> {
        let remembered = self.remembered.get(hash)?;
        // Before `from` the clock was set back, and nothing is known of how long ago that was.
        (remembered.from <= now && now < remembered.until).then_some(remembered.claims)
    }

    fn remember(&self, hash: [u8; 32], claims: &Arc<Claims>, now: Timestamp) {
        let end = now.saturating_add(REMEMBERED_FOR).unwrap_or(now);
        let until = claims.expires_at().map_or(end, |expires_at| expires_at.min(end));
        self.remembered.insert(hash, Remembered { claims: Arc::clone(claims), from: now, until });
    }

    /// A server that is down is down for every call.
    fn log(&self, problem: &AuthorityFault, now: Timestamp) {
        let mut logged_at = self.logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_none_or(|at| now.duration_since(at).abs() >= LOGGED_EVERY) {
            *logged_at = Some(now);
            tracing::warn!(url = %self.settings.url, %problem, "tokens cannot be introspected");
        }
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// HTTP Basic as OAuth has it: both parts are form-encoded first (RFC 6749, 2.3.1).
fn basic(settings: &IntrospectionSettings) -> Option<HeaderValue> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let (id, secret) = (encoded(&settings.client_id), encoded(settings.client_secret.expose_secret()));
    let value = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// What the server says; `None` when it says that the token is not active.
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
