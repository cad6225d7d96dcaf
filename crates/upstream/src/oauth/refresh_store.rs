//! rmcp's view of the tokens during one refresh.
//!
//! rmcp refreshes whatever is stored once it has the guard. So the lock is acquired before, the tokens are read again, and
//! the lock is handed over to rmcp, which holds it until the new tokens are saved.
//!
//! A lock can expire. It is checked before the refresh token is sent, and before anything is saved.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use oauth2::basic::BasicTokenType;
use oauth2::{AccessToken, RefreshToken};
use parking_lot::Mutex;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, OAuthTokenResponse, StoredCredentials,
    VendorExtraTokenFields,
};
use secrecy::ExposeSecret;

use super::account::Account;
use super::client::REQUEST_WITHIN;
use super::fault::{OAuthError, OAuthFault};
use super::storage::{TokenLock, Tokens};
use super::stored_login::StoredLogin;
use super::token_response::login_of_response;

/// Time that a lock must remain when the refresh token is sent: that of the request, and of saving its response.
const EXCHANGE_WITHIN: Duration = REQUEST_WITHIN.saturating_mul(2);

/// Tokens of one account during a refresh. Clones share the lock and the outcome.
#[derive(Debug, Clone)]
pub(super) struct RefreshStore(Arc<Refresh>);

#[derive(Debug)]
struct Refresh {
    account: Account,
    tokens: Arc<dyn Tokens>,
    /// Sign-in that was read under the lock.
    login: StoredLogin,
    /// The lock until rmcp takes it.
    lock: Mutex<Option<Arc<TokenLock>>>,
    /// The lock as long as anything holds it.
    held: Weak<TokenLock>,
    failure: Mutex<Option<OAuthError>>,
}

impl RefreshStore {
    /// Creates the view of a sign-in that was read under `lock`.
    pub(super) fn new(
        account: Account,
        tokens: Arc<dyn Tokens>,
        login: StoredLogin,
        lock: TokenLock,
    ) -> Self {
        let lock = Arc::new(lock);
        let (held, lock, failure) = (Arc::downgrade(&lock), Mutex::new(Some(lock)), Mutex::default());
        Self(Arc::new(Refresh { account, tokens, login, lock, held, failure }))
    }

    /// Returns the error of the storage, of which rmcp keeps only the text.
    pub(super) fn take_failure(&self) -> Option<OAuthError> {
        self.0.failure.lock().take()
    }

    /// Returns an error if the lock was lost, or does not remain for a time. Its next holder may have used the refresh token by
    /// then, and the tokens of that holder are not replaced.
    async fn check_lock(&self, time: Duration) -> Result<(), OAuthError> {
        let is_held = match self.0.held.upgrade() {
            Some(lock) => lock.is_held_for(time).await?,
            None => false,
        };
        if is_held { Ok(()) } else { Err(self.0.account.error(OAuthFault::Locked)) }
    }

    async fn store(&self, login: &StoredLogin) -> Result<(), OAuthError> {
        self.check_lock(Duration::ZERO).await?;
        self.0.tokens.save(login).await
    }

    fn failed(&self, error: OAuthError) -> AuthError {
        let text = error.to_string();
        *self.0.failure.lock() = Some(error);
        AuthError::CredentialStoreError(text)
    }
}

#[async_trait]
impl CredentialStore for RefreshStore {
    /// Returns the sign-in, which rmcp then refreshes.
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.check_lock(EXCHANGE_WITHIN).await.map_err(|error| self.failed(error))?;
        let login = &self.0.login;
        let access = AccessToken::new(login.access_token.expose_secret().to_owned());
        let mut response =
            OAuthTokenResponse::new(access, BasicTokenType::Bearer, VendorExtraTokenFields::default());
        let refresh = login.refresh_token.as_ref();
        response.set_refresh_token(refresh.map(|token| RefreshToken::new(token.expose_secret().to_owned())));
        let client_id = login.client.client_id.clone();
        let credentials = StoredCredentials::new(client_id, Some(response), login.scopes.clone(), None);
        Ok(Some(credentials.with_issuer(login.client.issuer.clone())))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let Some(response) = credentials.token_response else { return Ok(()) };
        let Refresh { account, login, .. } = &*self.0;
        let refreshed = login_of_response(&response, login.client.clone(), Timestamp::now());
        let refreshed = refreshed.map_err(|fault| account.error(fault)).map(|refreshed| StoredLogin {
            id: login.id.clone(),
            scopes: credentials.granted_scopes,
            resource_metadata: login.resource_metadata.clone(),
            ..refreshed
        });
        let stored = match refreshed {
            Ok(refreshed) => self.store(&refreshed).await,
            Err(error) => Err(error),
        };
        stored.map_err(|error| self.failed(error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.0.tokens.clear().await.map_err(|error| self.failed(error))
    }

    /// Deletes the refused refresh token, so that no call sends it again.
    async fn on_refresh_token_rejected(&self, _credentials: &StoredCredentials) -> Result<(), AuthError> {
        let login = StoredLogin { refresh_token: None, ..self.0.login.clone() };
        // The refusal is the error that counts, so one of the storage is not remembered.
        self.store(&login).await.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        Ok(self.0.lock.lock().take().map(CredentialRefreshGuard::new))
    }
}
