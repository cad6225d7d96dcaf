//! Who reads pages in a browser.
//!
//! A session is as good as the token behind it, which is checked at every page. One that a token began ends with it. One that a
//! link began ends with the grant, and goes on where the grant's client gets new tokens; it shows the records whose links were
//! followed, and no others.

use std::time::Duration;

use axum::http::HeaderMap;

use super::cookies::Cookies;
use crate::callers::{AuthenticatedCaller, GrantToken, Reader, TokenLimits, TokenStore};
use crate::handle::RecordAddress;

/// The name of the cookie.
const COOKIE: &str = "fetchwell_session";

/// Browsers that are told apart, and for how long.
const SESSIONS: TokenLimits =
    TokenLimits { max_tokens: 10_000, max_per_person: 100, lifetime: Duration::from_secs(12 * 60 * 60) };

/// Records that a session of links shows; the first are forgotten first.
const MAX_RECORDS: usize = 200;

/// The sessions of all browsers.
#[derive(Debug, Clone)]
pub(super) struct Sessions {
    known: TokenStore<Session>,
    cookies: Cookies,
}

/// What a browser may read.
#[derive(Debug, Clone)]
pub(super) struct Session {
    reader: Reader,
    scope: Scope,
}

#[derive(Debug, Clone)]
enum Scope {
    /// All that the token may.
    Grant,
    /// These.
    Records(Vec<RecordAddress>),
}

impl Sessions {
    /// Returns no sessions, of a server with these cookies.
    pub(super) fn new(cookies: Cookies) -> Self {
        Self { known: TokenStore::new(SESSIONS), cookies }
    }

    pub(super) fn cookies(&self) -> Cookies {
        self.cookies
    }

    /// The session of a browser.
    pub(super) fn of(&self, headers: &HeaderMap) -> Option<Session> {
        self.known.get(self.cookies.value(headers, COOKIE)?)
    }

    /// Begins a session in place of what the browser had, and gives the cookie for it. `None` when the system gives no random
    /// bytes.
    pub(super) fn begin(&self, headers: &HeaderMap, session: Session) -> Option<String> {
        let key = self.known.issue(session.reader.person, session)?;
        self.forget(headers);
        Some(self.cookies.set(COOKIE, &key, SESSIONS.lifetime))
    }

    /// Ends the session of a browser and gives the cookie that says so.
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

impl Session {
    /// Of somebody who showed a token.
    pub(super) fn signed_in(caller: AuthenticatedCaller) -> Self {
        let token = GrantToken::new(caller.token, caller.expires_at);
        Self { reader: Reader::new(&caller.caller, token), scope: Scope::Grant }
    }

    /// Of somebody who followed a link, with what they could read `before`.
    pub(super) fn of_link(reader: Reader, record: &RecordAddress, before: Option<Self>) -> Self {
        let mut records = match before {
            Some(session) if session.reader.grant == reader.grant => match session.scope {
                Scope::Grant => return session,
                Scope::Records(records) => records,
            },
            _ => Vec::new(),
        };
        records.retain(|address| address != record);
        records.push(record.clone());
        if records.len() > MAX_RECORDS {
            records.remove(0);
        }
        Self { reader, scope: Scope::Records(records) }
    }

    /// Whether a record is among what it shows.
    pub(super) fn shows(&self, address: &RecordAddress) -> bool {
        match &self.scope {
            Scope::Grant => true,
            Scope::Records(records) => records.contains(address),
        }
    }

    /// Whether it shows whatever its token may.
    pub(super) fn shows_all(&self) -> bool {
        matches!(self.scope, Scope::Grant)
    }

    pub(super) fn token(&self) -> &GrantToken {
        &self.reader.token
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;
    use secrecy::SecretString;

    use super::*;
    use crate::callers::Caller;
    use crate::handle::Handle;

    fn caller(name: &str) -> AuthenticatedCaller {
        let caller = Caller::Token { name: name.to_owned() };
        AuthenticatedCaller { caller, token: SecretString::from("t"), expires_at: None }
    }

    fn follow(name: &str, handle: &str, before: Option<Session>) -> Session {
        let handle: Handle = handle.parse().unwrap();
        let reader = Reader::new(&caller(name).caller, GrantToken::default());
        Session::of_link(reader, handle.address(), before)
    }

    fn sent(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        HeaderMap::from_iter([(header::COOKIE, format!("a=b; {pair}; c=d").parse().unwrap())])
    }

    #[test]
    fn a_session_of_links_shows_what_was_followed() {
        let ann = "ann";
        let one = follow(ann, "c/s:1", None);
        let both = follow(ann, "c/s:2", Some(one.clone()));
        let shows =
            |session: &Session, handle: &str| session.shows(handle.parse::<Handle>().unwrap().address());
        assert!(shows(&one, "c/s:1") && !shows(&one, "c/s:2"));
        assert!(shows(&both, "c/s:1") && shows(&both, "c/s:2") && !shows(&both, "c/s:3"));
        let bob = "bob";
        let other = follow(bob, "c/s:3", Some(both));
        assert!(shows(&other, "c/s:3") && !shows(&other, "c/s:1"), "another grant takes nothing over");
        let whole = follow(ann, "c/s:4", Some(Session::signed_in(caller(ann))));
        assert!(shows(&whole, "c/s:1"));
    }

    #[test]
    fn a_browser_keeps_its_session_until_it_ends_it() {
        let sessions = Sessions::new(Cookies { is_secure: true });
        let nothing = HeaderMap::new();
        let cookie = sessions.begin(&nothing, Session::signed_in(caller("ann"))).unwrap();
        assert!(
            cookie.starts_with("__Host-fetchwell_session=")
                && cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure"),
            "{cookie}"
        );
        assert!(sessions.of(&sent(&cookie)).is_some());
        assert!(sessions.of(&sent("__Host-fetchwell_session=guessed")).is_none());
        assert!(sessions.of(&sent(cookie.trim_start_matches("__Host-"))).is_none());
        assert!(sessions.of(&nothing).is_none());
        let before = sent(&cookie);
        let cookie = sessions.begin(&before, Session::signed_in(caller("ann"))).unwrap();
        assert!(sessions.of(&before).is_none() && sessions.of(&sent(&cookie)).is_some());
        assert!(sessions.end(&sent(&cookie)).starts_with("__Host-fetchwell_session=; Path=/; Max-Age=0;"));
        assert!(sessions.of(&sent(&cookie)).is_none());
    }
}
