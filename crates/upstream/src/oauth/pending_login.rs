//! Sign-in at the authorization server of an MCP server: authorization code with PKCE and `resource` (RFC 8707).
//!
//! A sign-in that waits for its browser can be written as a text, and another process can finish it: that discovers the
//! authorization server again, which must be the one that the browser was sent to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::AuthorizationReply;
use fetchwell_core::hex::hexadecimal;
use jiff::Timestamp;
use parking_lot::Mutex;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, StateStore,
    StoredAuthorizationState,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use super::account::Account;
use super::client::{OutboundClient, REQUEST_WITHIN, is_error_code};
use super::discovery::{Challenge, Discovery, discover_sign_in, fault_of, rediscover};
use super::fault::{OAuthError, OAuthFault};
use super::registration::{LoginSettings, Registration, register};
use super::storage::Tokens;
use super::stored_login::{RegisteredClient, StoredLogin};
use super::token_response::login_of_response;

/// Maximum length of a code that is sent on, in bytes.
const MAX_CODE_BYTES: usize = 4 * 1024;

/// Sign-in that waits for the browser to return.
pub struct PendingLogin {
    exchange: CodeExchange,
    url: Url,
}

/// The second half of a sign-in: the exchange of the code that the browser returns with.
pub struct CodeExchange {
    account: Account,
    client: Arc<OutboundClient>,
    manager: AuthorizationManager,
    attempt: Attempt,
    registered: RegisteredClient,
    resource_metadata: Option<Url>,
    state: String,
}

/// The attempt of a sign-in as rmcp stores it, with the verifier of PKCE. Clones share it.
#[derive(Clone, Default)]
struct Attempt(Arc<Mutex<Option<StoredAuthorizationState>>>);

/// Serialized form of an exchange.
#[derive(Serialize, Deserialize)]
struct ExchangeText {
    server: String,
    client_id: String,
    client_secret: Option<String>,
    issuer: Option<String>,
    redirect_uri: String,
    resource_metadata: Option<String>,
    attempt: StoredAuthorizationState,
}

impl PendingLogin {
    /// Discovers the authorization server of an account and prepares a sign-in that returns to `redirect_uri`. Registers a
    /// client, if none is configured or kept beside the tokens.
    ///
    /// # Errors
    ///
    /// The server offers no sign-in that can be used, or a request failed.
    pub async fn begin(
        account: Account,
        settings: &LoginSettings,
        redirect_uri: String,
        tokens: &dyn Tokens,
    ) -> Result<Self, OAuthError> {
        let client = Arc::new(OutboundClient::new(account.clone(), REQUEST_WITHIN));
        Self::with_client(account, settings, redirect_uri, tokens, client).await
    }

    pub(super) async fn with_client(
        account: Account,
        settings: &LoginSettings,
        redirect_uri: String,
        tokens: &dyn Tokens,
        client: Arc<OutboundClient>,
    ) -> Result<Self, OAuthError> {
        let (challenge, found) = discover_sign_in(&account, &client).await?;
        let scopes = match settings.scopes.as_slice() {
            [] => found.manager.select_initial_scopes(&[]).await,
            scopes => scopes.to_vec(),
        };
        let Discovery { mut manager, metadata, .. } = found;
        let registered = register(
            &account,
            &client,
            &mut manager,
            &metadata,
            Registration { settings, redirect_uri, scopes: &scopes, registrations: tokens.registrations() },
        );
        let registered = registered.await?;
        let mut request = AuthorizationRequest::new(registered.redirect_uri.as_str())
            .with_preregistered_client(registered.client_id.as_str())
            .with_initial_scope_selection()
            .with_scopes(scopes);
        if let Some(secret) = &registered.client_secret {
            request = request.with_client_secret(secret.expose_secret());
        }
        let attempt = Attempt::default();
        manager.set_state_store(attempt.clone());
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_manager, error)| account.error(fault_of(&error, &client)))?;
        let url = Url::parse(session.get_authorization_url()).ok();
        let state = url.as_ref().and_then(|url| parameter(url, "state"));
        let (Some(url), Some(state)) = (url, state) else {
            let problem = "the authorization endpoint of its authorization server is not a URL";
            return Err(account.error(OAuthFault::Metadata { problem }));
        };
        let (manager, Challenge { resource_metadata, .. }) = (session.auth_manager, challenge);
        let exchange =
            CodeExchange { account, client, manager, attempt, registered, resource_metadata, state };
        Ok(Self { exchange, url })
    }

    /// Returns the URL that the browser has to open.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the state that the browser returns with.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.exchange.state
    }

    /// Returns the exchange that is left, for the process that the browser returns to.
    #[must_use]
    pub fn into_exchange(self) -> CodeExchange {
        self.exchange
    }
}

impl CodeExchange {
    /// Returns the exchange as a text that [`CodeExchange::resume`] accepts. It is a secret.
    #[must_use]
    pub fn to_text(&self) -> SecretString {
        let RegisteredClient { client_id, client_secret, issuer, redirect_uri } = self.registered.clone();
        let attempt = self.attempt.0.lock().clone();
        let text = attempt.map(|attempt| ExchangeText {
            server: self.account.server(),
            client_id,
            client_secret: client_secret.map(|secret| secret.expose_secret().to_owned()),
            issuer,
            redirect_uri,
            resource_metadata: self.resource_metadata.as_ref().map(Url::to_string),
            attempt,
        });
        SecretString::from(serde_json::to_string(&text).unwrap_or_default())
    }

    /// Continues the exchange of a text, for the account that began it. Discovers the authorization server again.
    ///
    /// # Errors
    ///
    /// The text is of another release or another server, the MCP server names another authorization server by now, or a
    /// request failed.
    pub async fn resume(account: Account, text: &SecretString) -> Result<Self, OAuthError> {
        let parsed = serde_json::from_str::<ExchangeText>(text.expose_secret()).ok();
        let parsed = parsed.filter(|text| text.server == account.server());
        let unusable = || account.error(refused("unusable_attempt".to_owned()));
        let text = parsed.ok_or_else(unusable)?;
        let resource_metadata = text.resource_metadata.map(|url| Url::parse(&url)).transpose();
        let resource_metadata = resource_metadata.map_err(|_invalid| unusable())?;
        let registered = RegisteredClient {
            client_id: text.client_id,
            client_secret: text.client_secret.map(SecretString::from),
            issuer: text.issuer,
            redirect_uri: text.redirect_uri,
        };
        let client = Arc::new(OutboundClient::new(account.clone(), REQUEST_WITHIN));
        let mut manager = rediscover(&account, &client, &registered, resource_metadata.as_ref()).await?;
        let state = text.attempt.csrf_token.clone();
        let attempt = Attempt(Arc::new(Mutex::new(Some(text.attempt))));
        manager.set_state_store(attempt.clone());
        Ok(Self { account, client, manager, attempt, registered, resource_metadata, state })
    }

    /// Exchanges the code of the reply for tokens, and stores them.
    ///
    /// # Errors
    ///
    /// The sign-in was refused, the reply is from another authorization server, a request failed, or the tokens cannot be
    /// stored.
    pub async fn finish(
        self,
        reply: AuthorizationReply,
        tokens: &dyn Tokens,
    ) -> Result<StoredLogin, OAuthError> {
        let outcome = self.exchange(reply, tokens).await;
        if let Some(registrations) = tokens.registrations() {
            let noted = match &outcome {
                Err(error) if error.fault.is_of_client() => registrations.forget(&self.registered).await,
                Ok(_)
                | Err(OAuthError { fault: OAuthFault::AccessDenied | OAuthFault::Refused { .. }, .. }) => {
                    registrations.returned(&self.registered).await
                }
                Err(_) => Ok(()),
            };
            if let Err(error) = noted {
                tracing::warn!(%error, "clients that are registered for a source");
            }
        }
        outcome
    }

    async fn exchange(
        &self,
        reply: AuthorizationReply,
        tokens: &dyn Tokens,
    ) -> Result<StoredLogin, OAuthError> {
        let failed = |fault| self.account.error(fault);
        if !self.attempt.is_from(reply.issuer.as_deref()) {
            return Err(failed(OAuthFault::OtherIssuer));
        }
        if let Some(error) = reply.error {
            return Err(failed(refused(error)));
        }
        let code = reply.code.filter(|code| code.expose_secret().len() <= MAX_CODE_BYTES);
        let code = code.ok_or_else(|| failed(refused("no_code".to_owned())))?;
        let (code, issuer) = (code.expose_secret(), reply.issuer.as_deref());
        // Nothing waits once there are tokens, and no refresh of the earlier sign-in is saved after them.
        let lock = tokens.lock().await?;
        let exchanged = self.manager.exchange_code_for_token_with_issuer(code, &self.state, issuer);
        let response = exchanged.await.map_err(|error| {
            failed(match error {
                AuthError::AuthorizationFailed(_)
                | AuthError::AuthorizationServerMismatch { .. }
                | AuthError::AuthorizationServerMissingIssuer { .. } => OAuthFault::OtherIssuer,
                error => fault_of(&error, &self.client),
            })
        })?;
        let scopes = self.manager.get_current_scopes().await;
        let login = login_of_response(&response, self.registered.clone(), Timestamp::now());
        let resource_metadata = self.resource_metadata.clone();
        let id = hexadecimal(Sha256::digest(&self.state).iter().take(16));
        let login = StoredLogin { id, scopes, resource_metadata, ..login.map_err(failed)? };
        if lock.is_held_for(Duration::ZERO).await? {
            tokens.save(&login).await?;
            return Ok(login);
        }
        // The lock expired meanwhile. A new sign-in replaces what another holder has stored.
        let _lock = tokens.lock().await?;
        tokens.save(&login).await?;
        Ok(login)
    }
}

impl fmt::Debug for PendingLogin {
    /// Prints neither the URL nor the state: with both, another program could return instead of the browser.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin").field("account", &self.exchange.account).finish_non_exhaustive()
    }
}

impl fmt::Debug for CodeExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeExchange").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Attempt {
    /// Returns true if a reply with this `iss` is from the authorization server of the attempt (RFC 9207, 2.4). rmcp checks only
    /// replies with a code.
    fn is_from(&self, issuer: Option<&str>) -> bool {
        let stored = self.0.lock();
        let Some(stored) = &*stored else { return false };
        match (issuer, &stored.expected_issuer) {
            (Some(issuer), Some(expected)) => issuer == expected,
            (Some(_), None) => false,
            (None, _) => !stored.require_issuer,
        }
    }
}

#[async_trait]
impl StateStore for Attempt {
    async fn save(&self, _state: &str, stored: StoredAuthorizationState) -> Result<(), AuthError> {
        *self.0.lock() = Some(stored);
        Ok(())
    }

    async fn load(&self, state: &str) -> Result<Option<StoredAuthorizationState>, AuthError> {
        Ok(self.0.lock().clone().filter(|stored| stored.csrf_token == state))
    }

    async fn delete(&self, _state: &str) -> Result<(), AuthError> {
        *self.0.lock() = None;
        Ok(())
    }
}

/// Returns the fault of an error code in a reply.
fn refused(code: String) -> OAuthFault {
    match code.as_str() {
        "access_denied" => OAuthFault::AccessDenied,
        _ if is_error_code(&code) => OAuthFault::Refused { code },
        _ => OAuthFault::Refused { code: "unknown_error".to_owned() },
    }
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _value)| key == name).map(|(_key, value)| value.into_owned())
}
