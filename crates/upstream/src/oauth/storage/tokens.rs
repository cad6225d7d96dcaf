//! Storage of the tokens of one account, behind a trait: files of the state directory, or state that servers share.

use std::fmt;

use async_trait::async_trait;

use super::super::fault::OAuthError;
use super::super::stored_login::StoredLogin;
use super::lock::TokenLock;
use super::registrations::Registrations;

/// Storage of the tokens of one account.
///
/// A refresh token can often be used only once. It is therefore read, used and replaced under one lock, which excludes
/// everything else that uses the same storage, in this process and in others.
#[async_trait]
pub trait Tokens: fmt::Debug + Send + Sync {
    /// Returns the stored sign-in, or `None` if there is none. Needs no lock.
    ///
    /// # Errors
    ///
    /// The storage cannot be read, or has tokens of another server.
    async fn load(&self) -> Result<Option<StoredLogin>, OAuthError>;

    /// Stores a sign-in in place of an earlier one. The caller holds the lock.
    ///
    /// # Errors
    ///
    /// The storage cannot be written.
    async fn save(&self, login: &StoredLogin) -> Result<(), OAuthError>;

    /// Deletes the stored sign-in, if there is one. The caller holds the lock.
    ///
    /// # Errors
    ///
    /// The storage cannot be written.
    async fn clear(&self) -> Result<(), OAuthError>;

    /// Waits for the lock, up to a timeout. A `load` after that returns the latest tokens.
    ///
    /// # Errors
    ///
    /// The timeout has passed, or the storage cannot be used.
    async fn lock(&self) -> Result<TokenLock, OAuthError>;

    /// Returns the registered clients that are kept beside the tokens, if any are.
    fn registrations(&self) -> Option<&Registrations> {
        None
    }
}
