//! Sessions of browsers, by the token in their cookie.

use std::time::Duration;

use axum::http::HeaderMap;

use super::cookies::Cookies;
use crate::callers::{Session, TokenLimits, TokenStore};

/// Name of the session cookie.
const COOKIE: &str = "fetchwell_session";

/// Limits of sessions.
const LIMITS: TokenLimits =
    TokenLimits { max_tokens: 10_000, max_per_person: 100, lifetime: Duration::from_secs(12 * 60 * 60) };

/// The sessions of all browsers.
#[derive(Debug, Clone)]
pub(in crate::http::pages) struct Sessions {
    known: TokenStore<Session>,
    cookies: Cookies,
}

impl Sessions {
    /// Creates an empty store for a server with these cookies.
    pub(super) fn new(cookies: Cookies) -> Self {
        Self { known: TokenStore::new(LIMITS), cookies }
    }

    pub(super) fn cookies(&self) -> Cookies {
        self.cookies
    }

    /// Returns the session of a browser.
    pub(in crate::http::pages) fn get(&self, headers: &HeaderMap) -> Option<Session> {
        self.known.get(self.cookies.value(headers, COOKIE)?)
    }

    /// Starts a session in place of the one that the browser had, and returns its cookie. Returns `None` if the system
    /// provides no random bytes.
    pub(super) fn begin(&self, headers: &HeaderMap, session: Session) -> Option<String> {
        let key = self.known.issue(session.reader().person, session)?;
        self.forget(headers);
        Some(self.cookies.set(COOKIE, &key, LIMITS.lifetime))
    }

    /// Ends the session of a browser, and returns the cookie that removes the browser's own.
    pub(super) fn end(&self, headers: &HeaderMap) -> String {
        self.forget(headers);
        self.cookies.set(COOKIE, "", Duration::ZERO)
    }

    fn forget(&self, headers: &HeaderMap) {
        if let Some(key) = self.cookies.value(headers, COOKIE) {
            self.known.take(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;
    use secrecy::SecretString;

    use super::*;
    use crate::callers::{AuthenticatedCaller, Caller};

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

    #[test]
    fn sessions_end_when_replaced_or_signed_out() {
        let sessions = Sessions::new(Cookies { is_secure: true });
        let nothing = HeaderMap::new();
        let cookie = sessions.begin(&nothing, session()).unwrap();
        assert!(
            cookie.starts_with("__Host-fetchwell_session=")
                && cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure"),
            "{cookie}"
        );
        assert!(sessions.get(&sent(&cookie)).is_some());
        assert!(sessions.get(&sent("__Host-fetchwell_session=guessed")).is_none());
        assert!(sessions.get(&sent(cookie.trim_start_matches("__Host-"))).is_none());
        assert!(sessions.get(&nothing).is_none());
        let before = sent(&cookie);
        let cookie = sessions.begin(&before, session()).unwrap();
        assert!(sessions.get(&before).is_none() && sessions.get(&sent(&cookie)).is_some());
        assert!(sessions.end(&sent(&cookie)).starts_with("__Host-fetchwell_session=; Path=/; Max-Age=0;"));
        assert!(sessions.get(&sent(&cookie)).is_none());
    }
}
