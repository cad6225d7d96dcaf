//! The cached key set of an issuer (JWKS) and the rules for refreshing it.
//!
//! The keys are fetched when the first token arrives, not at startup; again when they are 15 minutes old; and when a
//! token names an unknown key, but for that at most once in 30 seconds. All waiting requests share one fetch, which
//! continues if the request that started it is cancelled: otherwise a client could delay the others by disconnecting.
//! While the issuer is unreachable its cached keys are used for a day.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::DecodingKey;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::keys::{KeyMatch, KeyQuery, Keys};
use crate::authenticate::authority::{AuthorityClient, AuthorityFault, discover_jwks_url};
use crate::authenticate::{Denial, IssuerSettings, TokenFault};

/// Maximum age of keys before they are fetched again.
const MAX_FRESH_AGE: SignedDuration = SignedDuration::from_mins(15);

/// Maximum age of keys if they cannot be fetched.
const MAX_STALE_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Minimum time between two fetches for unknown keys, and after a failed fetch if there are cached keys.
const PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// Minimum time after a failed fetch if there are no cached keys, so that no token can be verified.
const PAUSE_WITHOUT_KEYS: SignedDuration = SignedDuration::from_secs(5);

/// The cached keys of one issuer.
#[derive(Debug)]
pub(crate) struct KeySet {
    settings: IssuerSettings,
    client: AuthorityClient,
    deadline: Duration,
    /// Cached keys and fetch times. Locked only for short accesses, never during a fetch.
    state: Mutex<State>,
    /// Lock that is held during a fetch.
    fetch_lock: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct State {
    keys: Option<(Keys, Timestamp)>,
    tried_at: Option<Timestamp>,
    has_failed: bool,
    /// Time of the last fetch for an unknown key.
    unknown_at: Option<Timestamp>,
}

/// The result of a key lookup.
#[derive(Debug)]
enum Lookup {
    Cached(Arc<DecodingKey>),
    /// The key is cached, but old enough for a refresh.
    Stale(Arc<DecodingKey>),
    Fetch(FetchReason),
    Refused(Denial),
}

/// The reason for a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FetchReason {
    /// The cache is empty or old.
    Age,
    /// The key is not in the cache.
    UnknownKey,
}

impl KeySet {
    pub(crate) fn new(settings: IssuerSettings, deadline: Duration) -> Self {
        let client = AuthorityClient::default();
        Self { settings, client, deadline, state: Mutex::default(), fetch_lock: Arc::default() }
    }

    /// Returns true if this is the key set of the issuer in `settings`.
    pub(crate) fn is_for(&self, settings: &IssuerSettings) -> bool {
        self.settings.issuer == settings.issuer && self.settings.jwks_url == settings.jwks_url
    }

    /// Returns the key that a token requires. Fetches the key set if necessary.
    pub(crate) async fn key(
        self: &Arc<Self>,
        query: &KeyQuery,
        now: Timestamp,
    ) -> Result<Arc<DecodingKey>, Denial> {
        match self.state.lock().find_key(query, now) {
            Lookup::Cached(key) => return Ok(key),
            Lookup::Refused(denial) => return Err(denial),
            Lookup::Stale(_) | Lookup::Fetch(_) => {}
        }
        self.refresh(query, now).await;
        match self.state.lock().find_key(query, now) {
            Lookup::Cached(key) | Lookup::Stale(key) => Ok(key),
            Lookup::Refused(denial) => Err(denial),
            // The keys were fetched for another reason just now.
            Lookup::Fetch(_) => Err(TokenFault::UnknownKey.into()),
        }
    }

    /// Refreshes the keys if necessary. Returns when they are fresh or cannot be fetched.
    async fn refresh(self: &Arc<Self>, query: &KeyQuery, now: Timestamp) {
        let fetch_lock = Arc::clone(&self.fetch_lock);
        // A request with a cached key does not wait for a fetch in progress.
        let has_key = matches!(self.state.lock().find_key(query, now), Lookup::Stale(_));
        let fetch_lock =
            if has_key { fetch_lock.try_lock_owned().ok() } else { Some(fetch_lock.lock_owned().await) };
        let Some(fetch_lock) = fetch_lock else { return };
        let reason = match self.state.lock().find_key(query, now) {
            Lookup::Stale(_) => FetchReason::Age,
            Lookup::Fetch(reason) => reason,
            // Another request has fetched the keys meanwhile.
            Lookup::Cached(_) | Lookup::Refused(_) => return,
        };
        self.state.lock().start(reason, now);
        let fetch = tokio::spawn(Arc::clone(self).fetch(fetch_lock, now));
        // The task fails only at shutdown.
        let _ = fetch.await;
        let mut state = self.state.lock();
        if matches!(state.find_key(query, now), Lookup::Fetch(FetchReason::UnknownKey)) {
            // The keys are new, so fetching them again for this key is useless.
            state.unknown_at = Some(now);
        }
    }

    async fn fetch(self: Arc<Self>, fetch_lock: OwnedMutexGuard<()>, now: Timestamp) {
        let fetched = timeout(self.deadline, self.read()).await.unwrap_or(Err(AuthorityFault::Timeout));
        if let Err(problem) = &fetched {
            tracing::warn!(issuer = %self.settings.issuer, %problem, "the keys of the issuer cannot be fetched");
        }
        self.state.lock().store(fetched.ok(), now);
        drop(fetch_lock);
    }

    async fn read(&self) -> Result<Keys, AuthorityFault> {
        let discovered;
        let url = match &self.settings.jwks_url {
            Some(url) => url,
            None => {
                discovered = discover_jwks_url(&self.client, &self.settings.issuer).await?;
                &discovered
            }
        };
        let body = self.client.get(url.url()).await?;
        Keys::read(&body).map_err(AuthorityFault::Unusable)
    }
}

impl State {
    fn find_key(&self, query: &KeyQuery, now: Timestamp) -> Lookup {
        let good =
            self.keys.as_ref().filter(|(_, fetched_at)| is_within(MAX_STALE_AGE, Some(*fetched_at), now));
        let Some((keys, fetched_at)) = good else {
            return match self.remaining_pause(PAUSE_WITHOUT_KEYS, now) {
                Some(rest) => Lookup::Refused(Denial::TryLater { after: rest }),
                None => Lookup::Fetch(FetchReason::Age),
            };
        };
        let is_fresh =
            is_within(MAX_FRESH_AGE, Some(*fetched_at), now) || self.remaining_pause(PAUSE, now).is_some();
        match keys.find(query) {
            KeyMatch::Key(key) if is_fresh => Lookup::Cached(key),
            KeyMatch::Key(key) => Lookup::Stale(key),
            KeyMatch::OtherType | KeyMatch::Unknown if !is_fresh => Lookup::Fetch(FetchReason::Age),
            KeyMatch::OtherType => Lookup::Refused(TokenFault::OtherKeyType.into()),
            KeyMatch::Unknown if !is_within(PAUSE, self.unknown_at, now) => {
                Lookup::Fetch(FetchReason::UnknownKey)
            }
            KeyMatch::Unknown => Lookup::Refused(match self.remaining_pause(PAUSE, now) {
                Some(after) => Denial::TryLater { after },
                None => TokenFault::UnknownKey.into(),
            }),
        }
    }

    fn start(&mut self, reason: FetchReason, now: Timestamp) {
        self.tried_at = Some(now);
        if reason == FetchReason::UnknownKey {
            self.unknown_at = Some(now);
        }
    }

    /// Stores the result of a fetch. Old keys stay after a failure.
    fn store(&mut self, keys: Option<Keys>, now: Timestamp) {
        self.has_failed = keys.is_none();
        if let Some(keys) = keys {
            self.keys = Some((keys, now));
        }
    }

    /// Returns the rest of a pause after a failed fetch, in whole seconds.
    fn remaining_pause(&self, pause: SignedDuration, now: Timestamp) -> Option<Duration> {
        let tried_at =
            self.tried_at.filter(|tried_at| self.has_failed && is_within(pause, Some(*tried_at), now))?;
        let rest = (pause - now.duration_since(tried_at)).clamp(SignedDuration::from_secs(1), pause);
        u64::try_from(rest.as_secs()).ok().map(Duration::from_secs)
    }
}

/// Returns true if the time between `at` and `now` is less than `span`. A timestamp further in the future means that
/// the clock was set back.
fn is_within(span: SignedDuration, at: Option<Timestamp>, now: Timestamp) -> bool {
    at.is_some_and(|at| now.duration_since(at).abs() < span)
}
