//! The latest token of each grant, for record servers that are read with the token of the caller.
//!
//! A call sends the token that it came with. Work that outlives a call, such as reading schemas in the background, sends
//! the latest token of the grant, and so do record pages that a link opens.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use fetchwell_core::lru::{LruCache, LruLimits};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

use super::GrantId;

/// Maximum number of grants with a token; the least recently used is evicted.
const MAX_GRANTS: u64 = 10_000;

/// The latest token of one grant; empty where callers are not authenticated. Clones share the token.
#[derive(Debug, Clone, Default)]
pub struct GrantToken(Arc<ArcSwapOption<LatestToken>>);

#[derive(Debug)]
struct LatestToken {
    token: SecretString,
    expires_at: Option<Timestamp>,
}

impl GrantToken {
    /// Creates a cell with a token and its expiry, if it has one.
    #[must_use]
    pub fn new(token: SecretString, expires_at: Option<Timestamp>) -> Self {
        Self(Arc::new(ArcSwapOption::from_pointee(LatestToken { token, expires_at })))
    }

    /// Stores a token of the grant, unless it expires before the stored one.
    pub fn replace(&self, token: SecretString, expires_at: Option<Timestamp>) {
        let ends_before =
            |latest: &LatestToken| latest.expires_at.zip(expires_at).is_some_and(|(known, new)| new < known);
        if !self.0.load().as_deref().is_some_and(ends_before) {
            self.0.store(Some(Arc::new(LatestToken { token, expires_at })));
        }
    }

    /// Returns the latest token.
    #[must_use]
    pub fn latest(&self) -> Option<SecretString> {
        self.0.load().as_ref().map(|latest| latest.token.clone())
    }

    /// Returns the latest token with its expiry, if it has one.
    #[must_use]
    pub fn latest_with_expiry(&self) -> Option<(SecretString, Option<Timestamp>)> {
        self.0.load().as_ref().map(|latest| (latest.token.clone(), latest.expires_at))
    }

    /// Removes a token that was rejected, unless another one is stored.
    pub fn forget(&self, token: &SecretString) {
        let latest = self.0.load();
        if latest.as_ref().is_some_and(|latest| latest.token.expose_secret() == token.expose_secret()) {
            // Another thread may have stored a newer token since the load.
            self.0.compare_and_swap(&*latest, None);
        }
    }
}

/// The latest tokens of all grants.
#[derive(Debug)]
pub struct GrantTokens(LruCache<GrantId, GrantToken>);

impl GrantTokens {
    /// Creates an empty store, in which the token of an unused grant is kept for `max_idle`.
    #[must_use]
    pub fn new(max_idle: Duration) -> Self {
        Self(LruCache::new(LruLimits::new(MAX_GRANTS).with_max_idle(max_idle)))
    }

    /// Returns the token of a grant.
    #[must_use]
    pub fn get(&self, grant: GrantId) -> Option<GrantToken> {
        self.0.get(&grant)
    }

    /// Stores the token of a grant.
    pub fn insert(&self, grant: GrantId, token: GrantToken) {
        self.0.insert(grant, token);
    }

    /// Restarts the idle time of a grant in use, and stores its token again if it was evicted.
    pub fn renew(&self, grant: GrantId, token: &GrantToken) {
        self.0.get_or_insert_with(grant, || token.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Option<Timestamp> {
        Some(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn token_that_expires_first_does_not_replace_the_latest() {
        let cell = GrantToken::new("old".into(), at(10));
        let latest = || cell.latest().unwrap().expose_secret().to_owned();
        assert_eq!(latest(), "old");
        cell.replace("new".into(), at(20));
        cell.replace("older".into(), at(5));
        assert_eq!(latest(), "new");
        assert!(GrantToken::default().latest().is_none());
    }

    #[test]
    fn a_token_that_was_taken_back_makes_room_for_one_that_ends_sooner() {
        let cell = GrantToken::new("long".into(), at(20));
        let latest = || cell.latest().map(|token| token.expose_secret().to_owned());
        cell.forget(&"another".into());
        assert_eq!(latest().unwrap(), "long");
        cell.forget(&"long".into());
        assert_eq!(latest(), None);
        cell.replace("short".into(), at(10));
        assert_eq!(latest().unwrap(), "short");
    }
}
