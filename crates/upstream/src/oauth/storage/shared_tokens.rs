//! Tokens of a caller's account in the state that servers share, with the registered clients of its source.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_state::cursor::Cursors;
use secrecy::ExposeSecret;

use super::super::account::Account;
use super::super::fault::OAuthError;
use super::super::stored_login::StoredLogin;
use super::lock::TokenLock;
use super::registrations::Registrations;
use super::secret_text::SecretText;
use super::shared_text::{SharedText, ValueKinds};
use super::tokens::Tokens;

/// Kinds of the values with tokens.
const TOKENS: ValueKinds = ValueKinds { text: "mcp-tokens", lock: "mcp-token-lock" };

/// Kinds of the values with registered clients, which all callers share.
const CLIENTS: ValueKinds = ValueKinds { text: "mcp-clients", lock: "mcp-client-lock" };

/// Tokens of one account in shared state.
#[derive(Debug, Clone)]
pub struct SharedTokens {
    account: Account,
    text: SharedText,
    registrations: Registrations,
}

impl SharedTokens {
    /// Creates the storage of an account. Reads nothing yet.
    #[must_use]
    pub fn new(account: Account, cursors: Arc<Cursors>) -> Self {
        let text = SharedText::new(account.clone(), TOKENS, Arc::clone(&cursors));
        let clients = SharedText::new(account.without_caller(), CLIENTS, cursors);
        let registrations = Registrations::new(account.clone(), Arc::new(clients));
        Self { account, text, registrations }
    }
}

#[async_trait]
impl Tokens for SharedTokens {
    async fn load(&self) -> Result<Option<StoredLogin>, OAuthError> {
        let text = self.text.read().await?;
        // A text of another release is no sign-in.
        Ok(text.and_then(|text| StoredLogin::from_text(text.expose_secret(), &self.account).ok()))
    }

    async fn save(&self, login: &StoredLogin) -> Result<(), OAuthError> {
        self.text.write(&login.to_text(&self.account)).await
    }

    async fn clear(&self) -> Result<(), OAuthError> {
        self.text.delete().await
    }

    async fn lock(&self) -> Result<TokenLock, OAuthError> {
        self.text.lock().await
    }

    fn registrations(&self) -> Option<&Registrations> {
        Some(&self.registrations)
    }
}
