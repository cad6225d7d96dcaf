//! Readers and sessions as texts, for a store that several servers share. The texts contain bearer tokens, so that store
//! gets them encrypted.

use fetchwell_core::handle::RecordAddress;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::record_links::Reader;
use super::session::{Scope, Session};
use crate::{GrantId, GrantToken};

#[derive(Serialize, Deserialize)]
struct StoredReader {
    grant: GrantId,
    person: GrantId,
    can_sign_in: bool,
    token: Option<String>,
    /// Seconds since 1970.
    expires_at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct StoredSession {
    reader: StoredReader,
    /// Records of a session that began with a link; `None` for all records of the token.
    records: Option<Vec<RecordAddress>>,
}

impl From<&Reader> for StoredReader {
    fn from(reader: &Reader) -> Self {
        let (token, expires_at) = reader.token.latest_with_expiry().unzip();
        Self {
            grant: reader.grant,
            person: reader.person,
            can_sign_in: reader.can_sign_in,
            token: token.map(|token: SecretString| token.expose_secret().to_owned()),
            expires_at: expires_at.flatten().map(|at: Timestamp| at.as_second()),
        }
    }
}

impl From<StoredReader> for Reader {
    fn from(stored: StoredReader) -> Self {
        let expires_at = stored.expires_at.and_then(|at| Timestamp::from_second(at).ok());
        let token = stored.token.map(|token| GrantToken::new(SecretString::from(token), expires_at));
        Self {
            grant: stored.grant,
            person: stored.person,
            token: token.unwrap_or_default(),
            can_sign_in: stored.can_sign_in,
        }
    }
}

impl Reader {
    /// Returns the reader with its latest token as a text.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(&StoredReader::from(self)).unwrap_or_default()
    }

    /// Parses the text of a reader, or returns `None` for that of another release.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str::<StoredReader>(text).ok().map(Self::from)
    }
}

impl Session {
    /// Returns the session as a text. One that began with a link has no token: it reads with the latest token of its
    /// grant.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (records, reader) = match self.scope() {
            Scope::Grant => (None, StoredReader::from(self.reader())),
            Scope::Records(records) => {
                let without_token = Reader { token: GrantToken::default(), ..self.reader().clone() };
                (Some(records.clone()), StoredReader::from(&without_token))
            }
        };
        serde_json::to_string(&StoredSession { reader, records }).unwrap_or_default()
    }

    /// Parses the text of a session, or returns `None` for that of another release.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let StoredSession { reader, records } = serde_json::from_str(text).ok()?;
        Some(Self::new(reader.into(), records.map_or(Scope::Grant, Scope::Records)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuthenticatedCaller, Caller};
    use fetchwell_core::handle::Handle;

    fn caller() -> AuthenticatedCaller {
        let expires_at = Some(Timestamp::from_second(1_900_000_000).unwrap());
        let caller = Caller::Token { name: "ann".to_owned() };
        AuthenticatedCaller { caller, token: SecretString::from("secret-1"), expires_at, is_admin: false }
    }

    #[test]
    fn session_of_a_sign_in_keeps_its_token() {
        let session = Session::from_text(&Session::from_sign_in(caller()).to_text()).unwrap();
        assert!(session.shows_all());
        let (token, expires_at) = session.reader().token.latest_with_expiry().unwrap();
        assert_eq!((token.expose_secret(), expires_at), ("secret-1", caller().expires_at));
        assert_eq!(session.reader().person, caller().caller.person_id());
    }

    #[test]
    fn session_of_a_link_has_its_records_and_no_token() {
        let handle: Handle = "c/s:1".parse().unwrap();
        let reader = Reader::new(&caller().caller, GrantToken::new(caller().token, None));
        let text = Session::from_link(reader.clone(), handle.address(), None).to_text();
        assert!(!text.contains("secret-1"));
        let session = Session::from_text(&text).unwrap();
        assert!(session.shows(handle.address()) && !session.shows_all());
        assert!(session.reader().token.latest().is_none());
        let latest = session.with_latest_token(Some(reader));
        assert_eq!(latest.reader().token.latest().unwrap().expose_secret(), "secret-1");
        assert!(Session::from_text("{}").is_none() && Reader::from_text("").is_none());
    }
}
