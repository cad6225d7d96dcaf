//! Sign-in of the person at this machine, whose browser returns to a port here.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::account::Account;
use super::client::{OutboundClient, REQUEST_WITHIN};
use super::fault::{OAuthError, OAuthFault};
use super::pending_login::PendingLogin;
use super::redirect::RedirectListener;
use super::registration::LoginSettings;
use super::storage::Tokens;
use super::stored_login::StoredLogin;

/// Timeout of a sign-in in the browser.
const BROWSER_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Sign-in of the person at this machine.
#[derive(Debug)]
pub struct Login {
    account: Account,
    settings: LoginSettings,
    tokens: Arc<dyn Tokens>,
    browser_within: Duration,
    request_within: Duration,
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
    pub async fn run(&self, open: impl FnOnce(&url::Url)) -> Result<StoredLogin, OAuthError> {
        // A person who has signed in must not learn then that nothing can be stored.
        drop(self.tokens.lock().await?);
        let listener = self.listen().await?;
        let client = Arc::new(OutboundClient::new(self.account.clone(), self.request_within));
        let redirect_uri = listener.redirect_uri();
        let (account, tokens) = (self.account.clone(), self.tokens.as_ref());
        let pending = PendingLogin::with_client(account, &self.settings, redirect_uri, tokens, client);
        let pending = Box::pin(pending).await?;
        open(pending.url());
        let minutes = self.browser_within.as_secs() / 60;
        let browser = timeout(self.browser_within, listener.wait(pending.state())).await;
        let mut browser = browser.map_err(|_late| self.account.error(OAuthFault::NoReply { minutes }))?;
        let reply = std::mem::take(&mut browser.reply);
        let outcome = Box::pin(pending.into_exchange().finish(reply, self.tokens.as_ref())).await;
        match &outcome {
            Ok(_) => browser.show("Signed in", "You can close this page and return to the terminal.").await,
            Err(_) => browser.show("Not signed in", "The reason is in the terminal.").await,
        }
        outcome
    }

    /// Listens on the configured port, or on that of the client that was registered before, or else on any free port.
    async fn listen(&self) -> Result<RedirectListener, OAuthError> {
        let mut earlier = None;
        if let (None, None, Some(registrations)) =
            (self.settings.redirect_port, &self.settings.client_id, self.tokens.registrations())
        {
            earlier = registrations.latest_port().await?;
        }
        if let Some(port) = earlier
            && let Ok(listener) = RedirectListener::bind(port).await
        {
            return Ok(listener);
        }
        let listener = RedirectListener::bind(self.settings.redirect_port.unwrap_or(0)).await;
        listener.map_err(|error| self.account.error(OAuthFault::Listener { problem: error.to_string() }))
    }
}
