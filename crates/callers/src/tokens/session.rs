//! The session of a browser that reads record pages.
//!
//! A session reads with a token, which is checked for each page. A session that began with a sign-in ends with its token.
//! One that began with a link reads with the latest token of the grant, and shows only the records of links that were
//! followed.

use fetchwell_core::handle::RecordAddress;

use super::record_links::Reader;
use crate::{AuthenticatedCaller, GrantToken};

/// Maximum number of records of a session that began with a link; the first ones are removed.
const MAX_RECORDS: usize = 200;

/// A session with the records that it may show.
#[derive(Debug, Clone)]
pub struct Session {
    reader: Reader,
    scope: Scope,
}

#[derive(Debug, Clone)]
pub(super) enum Scope {
    /// All records that the token may read.
    Grant,
    /// The records of the links that were followed.
    Records(Vec<RecordAddress>),
}

impl Session {
    /// Creates the session of a caller who signed in.
    #[must_use]
    pub fn from_sign_in(caller: AuthenticatedCaller) -> Self {
        let token = GrantToken::new(caller.token, caller.expires_at);
        Self { reader: Reader::new(&caller.caller, token), scope: Scope::Grant }
    }

    /// Creates the session of a reader who followed the link of a record. It keeps the records of the session `before`, if
    /// that has the same grant.
    #[must_use]
    pub fn from_link(reader: Reader, record: &RecordAddress, before: Option<Self>) -> Self {
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

    pub(super) fn new(reader: Reader, scope: Scope) -> Self {
        Self { reader, scope }
    }

    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Sets the latest token of the grant, which a session that began with a link reads with.
    #[must_use]
    pub fn with_latest_token(self, latest: Option<Reader>) -> Self {
        match (&self.scope, latest) {
            (Scope::Records(_), Some(latest)) if latest.grant == self.reader.grant => {
                Self { reader: latest, ..self }
            }
            (_, _) => self,
        }
    }

    /// Returns true if the session may show a record.
    #[must_use]
    pub fn shows(&self, address: &RecordAddress) -> bool {
        match &self.scope {
            Scope::Grant => true,
            Scope::Records(records) => records.contains(address),
        }
    }

    /// Returns true if the session may show all records that its token may read.
    #[must_use]
    pub fn shows_all(&self) -> bool {
        matches!(self.scope, Scope::Grant)
    }

    /// Returns the reader of the records that the session shows.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::Caller;
    use fetchwell_core::handle::Handle;

    fn caller(name: &str) -> AuthenticatedCaller {
        let caller = Caller::Token { name: name.to_owned() };
        AuthenticatedCaller { caller, token: SecretString::from("t"), expires_at: None, is_admin: false }
    }

    fn follow(name: &str, handle: &str, before: Option<Session>) -> Session {
        let handle: Handle = handle.parse().unwrap();
        let reader = Reader::new(&caller(name).caller, GrantToken::default());
        Session::from_link(reader, handle.address(), before)
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
        let whole = follow(ann, "c/s:4", Some(Session::from_sign_in(caller(ann))));
        assert!(shows(&whole, "c/s:1"));
    }
}
