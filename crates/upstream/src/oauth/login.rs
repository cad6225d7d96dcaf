//! Sign-in at the authorization server of an MCP server: authorization code with PKCE and `resource` (RFC 8707).
//!
//! The client is the configured one, or described by a metadata document, or registered for this sign-in (RFC 7591), in
//! this order.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest, AuthorizationSession,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use url::Url;

use super::account::Account;
use super::client::{OutboundClient, REQUEST_WITHIN, is_error_code};
use super::discovery::{Challenge, Discovery, challenge, discover, fault_of};
use super::fault::{OAuthError, OAuthFault};
use super::redirect::{RedirectListener, RedirectReply};
use super::stored_login::{RegisteredClient, StoredLogin};
use super::token_response::login_of_response;
use super::tokens::Tokens;

/// Timeout of a sign-in in the browser.
const BROWSER_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Maximum length of a code that is sent on, in bytes.
const MAX_CODE_BYTES: usize = 4 * 1024;

/// Name with which this program registers.
const CLIENT_NAME: &str = "fetchwell";

/// Settings of a sign-in.
#[derive(Debug, Clone, Default)]
pub struct LoginSettings {
    /// Client id of a client that the operator has registered.
    pub client_id: Option<String>,
    /// Secret of that client, if it is confidential.
    pub client_secret: Option<SecretString>,
    /// URL of a client id metadata document, for servers that accept one.
    pub client_metadata_url: Option<Url>,
    /// Scopes to request; empty for those that the server asks for.
    pub scopes: Vec<String>,
    /// Port of the redirect URI, for a client that is registered with one; any free port otherwise.
    pub redirect_port: Option<u16>,
}

/// Sign-in of the person at this machine.
#[derive(Debug)]
pub struct Login {
    account: Account,
    settings: LoginSettings,
    tokens: Arc<dyn Tokens>,
    browser_within: Duration,
    request_within: Duration,
}

/// Sign-in that waits for the browser to return.
pub struct PendingLogin {
    account: Account,
    client: Arc<OutboundClient>,
    session: AuthorizationSession,
    registered: RegisteredClient,
    resource_metadata: Option<Url>,
    url: Url,
    state: String,
}

impl Login {
    /// Creates a sign-in to an account. Sends nothing yet.
    #[must_use]
    pub fn new(account: Account, settings: LoginSettings, tokens: Arc<dyn Tokens>) -> Self {
        let (browser_within, request_within) = (BROWSER_WITHIN, REQUEST_WITHIN);
        Self { account, settings, tokens, browser_within, request_within }
    }

    /// Replaces the timeouts of the browser and of each request.
    #[cfg(test)]
    pub(super) fn with_timeouts(mut self, browser: Duration, request: Duration) -> Self {
        (self.browser_within, self.request_within) = (browser, request);
        self
    }

    /// Signs in: passes the URL for the browser to `open`, waits up to five minutes for the browser to return, and stores
    /// the tokens.
    ///
    /// # Errors
    ///
    /// See [`OAuthFault`]. Stored tokens of an earlier sign-in remain then.
    pub async fn run(&self, open: impl FnOnce(&Url)) -> Result<StoredLogin, OAuthError> {
        // A person who has signed in must not learn then that nothing can be stored.
        drop(self.tokens.lock().await?);
        let port = self.settings.redirect_port.unwrap_or(0);
        let listener = RedirectListener::bind(port)
            .await
            .map_err(|error| self.account.error(OAuthFault::Listener { problem: error.to_string() }))?;
        let client = Arc::new(OutboundClient::new(self.account.clone(), self.request_within));
        let redirect_uri = listener.redirect_uri();
        let pending = PendingLogin::with_client(self.account.clone(), &self.settings, redirect_uri, client);
        let pending = Box::pin(pending).await?;
        open(pending.url());
        let minutes = self.browser_within.as_secs() / 60;
        let browser = timeout(self.browser_within, listener.wait(&pending.state)).await;
        let mut browser = browser.map_err(|_late| self.account.error(OAuthFault::NoReply { minutes }))?;
        let reply = std::mem::take(&mut browser.reply);
        let outcome = Box::pin(pending.finish(reply, self.tokens.as_ref())).await;
        match &outcome {
            Ok(_) => browser.show("Signed in", "You can close this page and return to the terminal.").await,
            Err(_) => browser.show("Not signed in", "The reason is in the terminal.").await,
        }
        outcome
    }
}

impl PendingLogin {
    /// Discovers the authorization server of an account and prepares a sign-in that returns to `redirect_uri`.
    ///
    /// # Errors
    ///
    /// The server offers no sign-in that can be used, or a request failed.
    pub async fn begin(
        account: Account,
        settings: &LoginSettings,
        redirect_uri: String,
    ) -> Result<Self, OAuthError> {
        let client = Arc::new(OutboundClient::new(account.clone(), REQUEST_WITHIN));
        Self::with_client(account, settings, redirect_uri, client).await
    }

    async fn with_client(
        account: Account,
        settings: &LoginSettings,
        redirect_uri: String,
        client: Arc<OutboundClient>,
    ) -> Result<Self, OAuthError> {
        let challenge = challenge(&account, &client).await?;
        let found = discover(&account, &client, &challenge).await?;
        if !found.is_published && !challenge.is_unauthorized {
            return Err(account.error(OAuthFault::NoSignIn));
        }
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
            Registration { settings, redirect_uri, scopes: &scopes },
        );
        let registered = registered.await?;
        let mut request = AuthorizationRequest::new(registered.redirect_uri.as_str())
            .with_preregistered_client(registered.client_id.as_str())
            .with_initial_scope_selection()
            .with_scopes(scopes);
        if let Some(secret) = &registered.client_secret {
            request = request.with_client_secret(secret.expose_secret());
        }
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_manager, error)| account.error(fault_of(&error, &client)))?;
        let url = Url::parse(session.get_authorization_url()).ok();
        let state = url.as_ref().and_then(|url| parameter(url, "state"));
        let (Some(url), Some(state)) = (url, state) else {
            let problem = "the authorization endpoint of its authorization server is not a URL";
            return Err(account.error(OAuthFault::Metadata { problem }));
        };
        let Challenge { resource_metadata, .. } = challenge;
        Ok(Self { account, client, session, registered, resource_metadata, url, state })
    }

    /// Returns the URL that the browser has to open.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the state that the browser returns with.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Exchanges the code of the reply for tokens, and stores them.
    ///
    /// # Errors
    ///
    /// The sign-in was refused, the reply is from another authorization server, a request failed, or the tokens cannot be
    /// stored.
    pub async fn finish(self, reply: RedirectReply, tokens: &dyn Tokens) -> Result<StoredLogin, OAuthError> {
        let failed = |fault| self.account.error(fault);
        if let Some(error) = reply.error {
            return Err(failed(refused(error)));
        }
        let code = reply.code.filter(|code| code.expose_secret().len() <= MAX_CODE_BYTES);
        let code = code.ok_or_else(|| failed(refused("no_code".to_owned())))?;
        let issuer = reply.issuer.as_deref();
        let exchanged = self.session.handle_callback_with_issuer(code.expose_secret(), &self.state, issuer);
        let response = exchanged.await.map_err(|error| {
            failed(match error {
                AuthError::AuthorizationFailed(_)
                | AuthError::AuthorizationServerMismatch { .. }
                | AuthError::AuthorizationServerMissingIssuer { .. } => OAuthFault::OtherIssuer,
                error => fault_of(&error, &self.client),
            })
        })?;
        let scopes = self.session.auth_manager.get_current_scopes().await;
        let login = login_of_response(&response, self.registered.clone(), Timestamp::now());
        let resource_metadata = self.resource_metadata.clone();
        let login = StoredLogin { scopes, resource_metadata, ..login.map_err(failed)? };
        let _lock = tokens.lock().await?;
        tokens.save(&login).await?;
        Ok(login)
    }
}

impl fmt::Debug for PendingLogin {
    /// Prints neither the URL nor the state: with both, another program could return instead of the browser.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin").field("account", &self.account).finish_non_exhaustive()
    }
}

/// Parts of the registration of a client.
struct Registration<'a> {
    settings: &'a LoginSettings,
    redirect_uri: String,
    scopes: &'a [String],
}

/// Returns the client of a sign-in. Registers one if none is configured and the server accepts no metadata document.
async fn register(
    account: &Account,
    client: &OutboundClient,
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    registration: Registration<'_>,
) -> Result<RegisteredClient, OAuthError> {
    let Registration { settings, redirect_uri, scopes } = registration;
    let issuer = metadata.issuer.clone();
    if let Some(client_id) = &settings.client_id {
        let (client_id, client_secret) = (client_id.clone(), settings.client_secret.clone());
        return Ok(RegisteredClient { client_id, client_secret, issuer, redirect_uri });
    }
    let accepts_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    let accepts_documents = accepts_documents.and_then(serde_json::Value::as_bool).unwrap_or_default();
    if let Some(url) = settings.client_metadata_url.as_ref().filter(|_| accepts_documents) {
        return Ok(RegisteredClient {
            client_id: url.to_string(),
            client_secret: None,
            issuer,
            redirect_uri,
        });
    }
    if metadata.registration_endpoint.is_none() {
        let problem = "it has no registration endpoint".to_owned();
        return Err(account.error(OAuthFault::NoRegistration { problem }));
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let config = manager.register_client(CLIENT_NAME, &redirect_uri, &scopes).await.map_err(|error| {
        account.error(match fault_of(&error, client) {
            OAuthFault::Malformed { problem, .. } => OAuthFault::NoRegistration { problem },
            OAuthFault::Refused { code } => OAuthFault::NoRegistration { problem: code },
            fault => fault,
        })
    })?;
    let client_secret = config.client_secret.map(SecretString::from);
    Ok(RegisteredClient { client_id: config.client_id, client_secret, issuer, redirect_uri })
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
