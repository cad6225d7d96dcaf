//! One secret text of an account in the state that servers share, encrypted and bound to source, server and caller.
//!
//! The lock is a value that expires: a server that ends while it has the lock delays others by at most a minute.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::random_token;
use fetchwell_state::cursor::{Cursors, SharedValue, SharedValues};
use fetchwell_state::redis::{IfExists, OwnerLimits};
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::super::account::Account;
use super::super::fault::{OAuthError, OAuthFault};
use super::lock::{LockGuard, TokenLock};
use super::secret_text::SecretText;

/// Time after which a text that was not written again is deleted.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Lifetime of a lock, and timeout of waiting for it. A holder discovers the authorization server within 25 seconds, and sends
/// one request of at most 10 seconds, before which it checks that the lock remains that long.
const LOCK_LIFETIME: Duration = Duration::from_secs(60);

/// Time after which a holder does not delete its lock, which may be another one's by then.
const RELEASED_WITHIN: Duration = Duration::from_secs(50);

/// Pause before the next attempt to get the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Quota of a caller: the accounts at a thousand sources.
const LIMITS: OwnerLimits = OwnerLimits { max_bytes: 16 * 1024 * 1024, max_values: 1_000 };

/// Kinds of the values: the text, and its lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueKinds {
    pub(super) text: &'static str,
    pub(super) lock: &'static str,
}

/// One secret text of an account in shared state.
#[derive(Debug, Clone)]
pub(super) struct SharedText {
    account: Account,
    kinds: ValueKinds,
    cursors: Arc<Cursors>,
    name: String,
    owner: String,
}

impl SharedText {
    /// Creates the storage of an account. Reads nothing yet.
    pub(super) fn new(account: Account, kinds: ValueKinds, cursors: Arc<Cursors>) -> Self {
        let owner = account.person().map(|person| person.to_string()).unwrap_or_default();
        let name = format!("{}\0{}\0{owner}", account.source_name(), account.server());
        Self { account, kinds, cursors, name, owner }
    }

    fn shared(&self) -> Result<SharedValues<'_>, OAuthError> {
        let problem = "this server shares no state; set `state` in its configuration";
        self.cursors.shared_values().ok_or_else(|| self.failed(&problem))
    }

    fn failed(&self, problem: &dyn fmt::Display) -> OAuthError {
        self.account.error(OAuthFault::SharedState { problem: problem.to_string() })
    }

    fn lock_value<'a>(&'a self, holder: &'a str) -> SharedValue<'a> {
        SharedValue {
            kind: self.kinds.lock,
            name: &self.name,
            owner: &self.owner,
            text: holder,
            lifetime: LOCK_LIFETIME,
            limits: LIMITS,
            if_exists: IfExists::Keep,
        }
    }
}

#[async_trait]
impl SecretText for SharedText {
    async fn read(&self) -> Result<Option<SecretString>, OAuthError> {
        let text = self.shared()?.get(self.kinds.text, &self.name).await;
        text.map(|text| text.map(SecretString::from)).map_err(|error| self.failed(&error))
    }

    async fn write(&self, text: &SecretString) -> Result<(), OAuthError> {
        let value = SharedValue {
            kind: self.kinds.text,
            name: &self.name,
            owner: &self.owner,
            text: text.expose_secret(),
            lifetime: LIFETIME,
            limits: LIMITS,
            if_exists: IfExists::Replace,
        };
        self.shared()?.put(value).await.map(drop).map_err(|error| self.failed(&error))
    }

    async fn delete(&self) -> Result<(), OAuthError> {
        let taken = self.shared()?.take(self.kinds.text, &self.name, &self.owner).await;
        taken.map(drop).map_err(|error| self.failed(&error))
    }

    async fn lock(&self) -> Result<TokenLock, OAuthError> {
        let holder = random_token().map_err(|error| self.failed(&error))?;
        let deadline = Instant::now() + LOCK_LIFETIME;
        loop {
            let acquired_at = Instant::now();
            let is_acquired = self.shared()?.put(self.lock_value(&holder)).await;
            if is_acquired.map_err(|error| self.failed(&error))? {
                let value = LockValue { text: self.clone(), holder, acquired_at };
                return Ok(TokenLock::expiring(HeldLock(value)));
            }
            if Instant::now() >= deadline {
                return Err(self.account.error(OAuthFault::Locked));
            }
            sleep(LOCK_PAUSE).await;
        }
    }
}

/// Lock that is released in the background when it is dropped.
struct HeldLock(LockValue);

/// Value with which a holder has the lock.
#[derive(Clone)]
struct LockValue {
    text: SharedText,
    holder: String,
    acquired_at: Instant,
}

impl LockValue {
    /// Returns true if the holder still has the lock.
    async fn is_own(&self) -> Result<bool, OAuthError> {
        let held = self.text.shared()?.get(self.text.kinds.lock, &self.text.name).await;
        let held = held.map_err(|error| self.text.failed(&error))?;
        Ok(held.is_some_and(|held| held == self.holder))
    }

    async fn release(self) {
        let (text, is_own) = (&self.text, self.is_own().await.unwrap_or(false));
        if let Some(shared) = text.cursors.shared_values()
            && is_own
            && self.acquired_at.elapsed() < RELEASED_WITHIN
        {
            // A lock that cannot be released expires.
            let _ = shared.take(text.kinds.lock, &text.name, &text.owner).await;
        }
    }
}

#[async_trait]
impl LockGuard for HeldLock {
    async fn is_held_for(&self, time: Duration) -> Result<bool, OAuthError> {
        Ok(self.0.acquired_at.elapsed() + time < LOCK_LIFETIME && self.0.is_own().await?)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.0.clone().release());
        }
    }
}
