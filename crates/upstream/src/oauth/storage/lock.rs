//! The lock of the secrets of one account.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::super::fault::OAuthError;

/// Guard of a lock. Dropping it releases the lock.
#[async_trait]
pub trait LockGuard: Send + Sync {
    /// Returns true if the lock is still held, and remains so for a time.
    ///
    /// # Errors
    ///
    /// The storage cannot be read.
    async fn is_held_for(&self, time: Duration) -> Result<bool, OAuthError>;
}

/// Guard of a lock that does not expire.
struct Lasting {
    _guard: Box<dyn Send + Sync>,
}

#[async_trait]
impl LockGuard for Lasting {
    async fn is_held_for(&self, _time: Duration) -> Result<bool, OAuthError> {
        Ok(true)
    }
}

/// Lock of the tokens of one account. Dropping it releases the lock.
#[must_use = "dropping the lock releases it"]
pub struct TokenLock {
    guard: Box<dyn LockGuard>,
}

impl TokenLock {
    /// Wraps the guard of a storage whose locks do not expire.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self::expiring(Lasting { _guard: Box::new(guard) })
    }

    /// Wraps the guard of a storage whose locks expire.
    pub fn expiring(guard: impl LockGuard + 'static) -> Self {
        Self { guard: Box::new(guard) }
    }

    /// Returns true if the lock is still held, and remains so for a time.
    ///
    /// # Errors
    ///
    /// The storage cannot be read.
    pub async fn is_held_for(&self, time: Duration) -> Result<bool, OAuthError> {
        self.guard.is_held_for(time).await
    }
}

impl fmt::Debug for TokenLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenLock")
    }
}
