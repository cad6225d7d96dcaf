//! Storage of one secret text, behind a trait.

use std::fmt;

use async_trait::async_trait;
use secrecy::SecretString;

use super::super::fault::OAuthError;
use super::lock::TokenLock;

/// Storage of one secret text.
#[async_trait]
pub(super) trait SecretText: fmt::Debug + Send + Sync {
    /// Returns the stored text, or `None` if there is none. One that was encrypted with other keys is none.
    async fn read(&self) -> Result<Option<SecretString>, OAuthError>;

    /// Stores a text in place of an earlier one. The caller holds the lock.
    async fn write(&self, text: &SecretString) -> Result<(), OAuthError>;

    /// Deletes the text, if there is one. The caller holds the lock.
    async fn delete(&self) -> Result<(), OAuthError>;

    /// Waits for the lock, up to a timeout.
    async fn lock(&self) -> Result<TokenLock, OAuthError>;
}
