//! The access token of one account, refreshed before it expires or when it was refused.
//!
//! One refresh runs at a time, in this process and in all that share the storage. It runs in a task of its own: cancelling
//! a call does not stop it, since the response has the only refresh token that is valid from then on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use oauth2::TokenResponse;
use rmcp::transport::auth::{AuthError, AuthorizationManager};
use secrecy::SecretString;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::account::Account;
use super::client::{OutboundClient, REQUEST_WITHIN};
use super::discovery::{fault_of, rediscover};
use super::fault::{OAuthError, OAuthFault};
use super::refresh_store::RefreshStore;
use super::storage::{TokenLock, Tokens};
use super::stored_login::{RegisteredClient, StoredLogin};

/// Access token of one account. Clones share everything.
#[derive(Debug, Clone)]
pub struct Bearer(Arc<Refresher>);

struct Refresher {
    account: Account,
    tokens: Arc<dyn Tokens>,
    client: Arc<OutboundClient>,
    /// Held during a refresh.
    state: Mutex<RefreshState>,
}

#[derive(Default)]
struct RefreshState {
    /// State machine of rmcp with the client that it is configured for, kept from the last refresh.
    manager: Option<(RegisteredClient, AuthorizationManager)>,
    /// Error of the last refresh with its time.
    failure: Option<(Instant, OAuthError)>,
}

impl Bearer {
    /// Creates the access token of an account. Reads nothing yet.
    #[must_use]
    pub fn new(account: Account, tokens: Arc<dyn Tokens>) -> Self {
        Self::with_timeout(account, tokens, REQUEST_WITHIN)
    }

    /// Creates the access token of an account, with a timeout for each request.
    pub(super) fn with_timeout(account: Account, tokens: Arc<dyn Tokens>, within: Duration) -> Self {
        let client = Arc::new(OutboundClient::new(account.clone(), within));
        Self(Arc::new(Refresher { account, tokens, client, state: Mutex::default() }))
    }

    /// Returns the account of the token.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.0.account
    }

    /// Returns the access token. Refreshes it first if it expires within a minute.
    ///
    /// # Errors
    ///
    /// There is no sign-in, or the refresh failed and the token has expired.
    pub async fn token(&self) -> Result<SecretString, OAuthError> {
        let login = self.0.stored().await?;
        if !login.is_due(Timestamp::now()) {
            return Ok(login.access_token);
        }
        match self.refresh(None).await {
            // The next call tries again.
            Err(_failed) if login.is_valid(Timestamp::now()) => Ok(login.access_token),
            refreshed => refreshed,
        }
    }

    /// Returns another access token than the one that the server refused: the stored one, if that is another one by now,
    /// or a refreshed one.
    ///
    /// # Errors
    ///
    /// There is no sign-in, or the refresh failed.
    pub async fn refused(&self, token: &SecretString) -> Result<SecretString, OAuthError> {
        self.refresh(Some(token.clone())).await
    }

    async fn refresh(&self, refused: Option<SecretString>) -> Result<SecretString, OAuthError> {
        let refresher = Arc::clone(&self.0);
        let task = tokio::spawn(async move { refresher.refresh(refused.as_ref()).await });
        task.await.unwrap_or_else(|_stopped| Err(self.0.account.error(OAuthFault::Stopped)))
    }
}

impl Refresher {
    async fn stored(&self) -> Result<StoredLogin, OAuthError> {
        let login = self.tokens.load().await?;
        login.ok_or_else(|| self.account.error(OAuthFault::NotSignedIn))
    }

    async fn refresh(&self, refused: Option<&SecretString>) -> Result<SecretString, OAuthError> {
        let asked = Instant::now();
        let mut state = self.state.lock().await;
        // Calls that waited for a refresh that failed do not repeat it one after the other.
        if let Some((at, error)) = &state.failure
            && *at >= asked
        {
            return Err(error.clone());
        }
        let outcome = self.refresh_alone(&mut state, refused).await;
        state.failure = outcome.as_ref().err().map(|error| (Instant::now(), error.clone()));
        outcome
    }

    async fn refresh_alone(
        &self,
        state: &mut RefreshState,
        refused: Option<&SecretString>,
    ) -> Result<SecretString, OAuthError> {
        let lock = self.tokens.lock().await?;
        let login = self.stored().await?;
        let is_refused = refused.is_some_and(|refused| login.has_access_token(refused));
        if !is_refused && !login.is_due(Timestamp::now()) {
            // Another call or another process has refreshed it meanwhile.
            return Ok(login.access_token);
        }
        if login.refresh_token.is_none() {
            return Err(self.account.error(OAuthFault::Expired));
        }
        // A refused token is not sent again if the refresh token is refused, too.
        let expires_at = if is_refused { Some(Timestamp::now()) } else { login.expires_at };
        self.exchange(state, StoredLogin { expires_at, ..login }, lock).await
    }

    async fn exchange(
        &self,
        state: &mut RefreshState,
        login: StoredLogin,
        lock: TokenLock,
    ) -> Result<SecretString, OAuthError> {
        let registered = login.client.clone();
        let known = state.manager.take().filter(|(client, _manager)| client.is_same(&registered));
        let mut manager = match known {
            Some((_client, manager)) => manager,
            None => {
                let (account, metadata) = (&self.account, login.resource_metadata.as_ref());
                Box::pin(rediscover(account, &self.client, &registered, metadata)).await?
            }
        };
        let store = RefreshStore::new(self.account.clone(), Arc::clone(&self.tokens), login, lock);
        manager.set_credential_store(store.clone());
        let refreshed = Box::pin(manager.refresh_token()).await;
        let refreshed = refreshed.map_err(|error| {
            store.take_failure().unwrap_or_else(|| self.account.error(self.refresh_fault(&error)))
        });
        if let Err(error) = &refreshed
            && error.fault.is_of_client()
            && let Some(registrations) = self.tokens.registrations()
            && let Err(error) = registrations.forget(&registered).await
        {
            tracing::warn!(%error, "clients that are registered for a source");
        }
        let response = refreshed?;
        state.manager = Some((registered, manager));
        Ok(SecretString::from(response.access_token().secret().as_str()))
    }

    /// Returns the fault of a refresh. An error code of OAuth is final, unless it asks to try again.
    fn refresh_fault(&self, error: &AuthError) -> OAuthFault {
        match fault_of(error, &self.client) {
            OAuthFault::Refused { code } => OAuthFault::Rejected { code },
            fault => fault,
        }
    }
}

impl fmt::Debug for Refresher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refresher").field("account", &self.account).finish_non_exhaustive()
    }
}
