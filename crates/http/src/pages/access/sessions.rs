//! Sessions of browsers, by the token in their cookie: in memory, or encrypted in the state that servers share.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use fetchwell_callers::{Session, TokenLimits, TokenStore, random_token};
use fetchwell_state::StateError;
use fetchwell_state::cursor::{SharedValue, SharedValues};
use fetchwell_state::redis::{IfExists, OwnerLimits};
use fetchwell_tools::CallerToolboxes;

use super::cookies::Cookies;
use crate::middleware::served::Callers;

/// Name of the session cookie.
const COOKIE: &str = "fetchwell_session";

/// Kind of the sessions in shared state.
const KIND: &str = "session";

/// Quota of the sessions of a person in shared state.
const SHARED_LIMITS: OwnerLimits = OwnerLimits { max_bytes: 16 * 1024 * 1024, max_values: 100 };

/// Limits of sessions.
const LIMITS: TokenLimits =
    TokenLimits { max_tokens: 10_000, max_per_person: 100, lifetime: Duration::from_secs(12 * 60 * 60) };

/// The sessions of all browsers.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    /// Sessions of a server that shares no state.
    known: TokenStore<Session>,
    /// Callers of an authenticated server, with the state that servers share.
    callers: Option<Arc<Callers>>,
    cookies: Cookies,
}

impl Sessions {
    /// Creates an empty store for a server with these cookies.
    pub(super) fn new(callers: Option<Arc<Callers>>, cookies: Cookies) -> Self {
        Self { known: TokenStore::new(LIMITS), callers, cookies }
    }

    pub(super) fn cookies(&self) -> Cookies {
        self.cookies
    }

    /// Returns the session of a browser.
    ///
    /// # Errors
    ///
    /// The shared state cannot be read.
    pub(crate) async fn get(&self, headers: &HeaderMap) -> Result<Option<Session>, StateError> {
        let Some(token) = self.cookies.value(headers, COOKIE) else { return Ok(None) };
        let Some((toolboxes, shared)) = self.shared() else { return Ok(self.known.get(token)) };
        let text = shared.get(KIND, token).await?;
        let Some(session) = text.and_then(|text| Session::from_text(&text)) else { return Ok(None) };
        if session.shows_all() {
            return Ok(Some(session));
        }
        let latest = toolboxes.latest_reader(session.reader().grant).await?;
        Ok(Some(session.with_latest_token(latest)))
    }

    /// Starts a session in place of the one that the browser had, and returns its cookie.
    ///
    /// # Errors
    ///
    /// The system provides no random bytes, or the shared state cannot be written.
    pub(super) async fn begin(&self, headers: &HeaderMap, session: Session) -> Result<String, StateError> {
        let person = session.reader().person;
        let token = match self.shared() {
            None => self.known.issue(person, session)?,
            Some((_, shared)) => {
                let token = random_token()?;
                let value = SharedValue {
                    kind: KIND,
                    name: &token,
                    owner: &person.to_string(),
                    text: &session.to_text(),
                    lifetime: LIMITS.lifetime,
                    limits: SHARED_LIMITS,
                    if_exists: IfExists::Keep,
                };
                shared.put(value).await?;
                token
            }
        };
        self.forget(headers).await?;
        Ok(self.cookies.set(COOKIE, &token, LIMITS.lifetime))
    }

    /// Ends the session of a browser, and returns the cookie that removes the browser's own.
    ///
    /// # Errors
    ///
    /// The shared state cannot be written; the session has not ended.
    pub(super) async fn end(&self, headers: &HeaderMap) -> Result<String, StateError> {
        self.forget(headers).await?;
        Ok(self.cookies.set(COOKIE, "", Duration::ZERO))
    }

    async fn forget(&self, headers: &HeaderMap) -> Result<(), StateError> {
        let Some(token) = self.cookies.value(headers, COOKIE) else { return Ok(()) };
        let Some((_, shared)) = self.shared() else {
            self.known.take(token);
            return Ok(());
        };
        let text = shared.get(KIND, token).await?;
        if let Some(session) = text.and_then(|text| Session::from_text(&text)) {
            shared.take(KIND, token, &session.reader().person.to_string()).await?;
        }
        Ok(())
    }

    /// Returns the state that servers share, if this one shares its own.
    fn shared(&self) -> Option<(&CallerToolboxes, SharedValues<'_>)> {
        let callers = self.callers.as_ref()?;
        Some((&callers.toolboxes, callers.toolboxes.cursors().shared_values()?))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;
    use secrecy::SecretString;

    use super::*;
    use fetchwell_callers::{AuthenticatedCaller, Caller};

    fn session() -> Session {
        let caller = Caller::Token { name: "ann".to_owned() };
        Session::from_sign_in(AuthenticatedCaller {
            caller,
            token: SecretString::from("t"),
            expires_at: None,
            is_admin: false,
        })
    }

    fn sent(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        HeaderMap::from_iter([(header::COOKIE, format!("a=b; {pair}; c=d").parse().unwrap())])
    }

    #[tokio::test]
    async fn sessions_end_when_replaced_or_signed_out() {
        let sessions = Sessions::new(None, Cookies { is_secure: true });
        let nothing = HeaderMap::new();
        let cookie = sessions.begin(&nothing, session()).await.unwrap();
        assert!(
            cookie.starts_with("__Host-fetchwell_session=")
                && cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure"),
            "{cookie}"
        );
        assert!(sessions.get(&sent(&cookie)).await.unwrap().is_some());
        assert!(sessions.get(&sent("__Host-fetchwell_session=guessed")).await.unwrap().is_none());
        assert!(sessions.get(&sent(cookie.trim_start_matches("__Host-"))).await.unwrap().is_none());
        assert!(sessions.get(&nothing).await.unwrap().is_none());
        let before = sent(&cookie);
        let cookie = sessions.begin(&before, session()).await.unwrap();
        assert!(
            sessions.get(&before).await.unwrap().is_none()
                && sessions.get(&sent(&cookie)).await.unwrap().is_some()
        );
        assert!(
            sessions
                .end(&sent(&cookie))
                .await
                .unwrap()
                .starts_with("__Host-fetchwell_session=; Path=/; Max-Age=0;")
        );
        assert!(sessions.get(&sent(&cookie)).await.unwrap().is_none());
    }
}
