//! A sign-in as it is stored: the registered client and the tokens, as a text that is bound to its MCP server.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

use super::account::Account;

/// Format version of the text.
const VERSION: u8 = 1;

/// Time before its expiry at which a token is refreshed, so that no token expires in flight. At most a tenth of its
/// lifetime.
const REFRESH_BEFORE: SignedDuration = SignedDuration::from_secs(60);

/// Maximum lifetime of a token in seconds: ten years. Longer ones are cut, so that no time overflows.
const MAX_LIFETIME: i64 = 10 * 366 * 24 * 60 * 60;

/// Client that is registered with an authorization server.
#[derive(Debug, Clone)]
pub struct RegisteredClient {
    /// Client id, or the URL of a client id metadata document.
    pub client_id: String,
    /// Client secret of a confidential client.
    pub client_secret: Option<SecretString>,
    /// Issuer of the authorization server, if its metadata names one.
    pub issuer: Option<String>,
    /// Redirect URI of the sign-in.
    pub redirect_uri: String,
}

impl RegisteredClient {
    /// Returns true if both are the same client of one authorization server.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let secret =
            |client: &Self| client.client_secret.clone().map(|secret| secret.expose_secret().to_owned());
        (&self.client_id, &self.issuer) == (&other.client_id, &other.issuer) && secret(self) == secret(other)
    }
}

/// A stored sign-in. `Debug` prints no token.
#[derive(Clone)]
pub struct StoredLogin {
    /// Id of the sign-in, which refreshes keep; empty for one of an earlier release. It is no secret.
    pub id: String,
    /// Client that the tokens were issued to.
    pub client: RegisteredClient,
    /// URL of the protected resource metadata (RFC 9728), if the server named it in a challenge.
    pub resource_metadata: Option<Url>,
    /// Scopes that were granted.
    pub scopes: Vec<String>,
    /// Token of the requests.
    pub access_token: SecretString,
    /// Refresh token; `None` if there is none, or if it was refused.
    pub refresh_token: Option<SecretString>,
    /// Time at which the access token was received.
    pub received_at: Timestamp,
    /// Expiry of the access token, if the server stated it.
    pub expires_at: Option<Timestamp>,
}

/// Reason why a text is no sign-in at this server. Contains no part of the text but a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginTextFault {
    /// The text cannot be parsed.
    Damaged {
        /// Position or kind of the error.
        problem: String,
    },
    /// The sign-in is at another MCP server.
    OtherServer {
        /// URL of that server.
        url: String,
    },
}

/// Serialized form. Times are in seconds since 1970.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginText {
    version: u8,
    #[serde(default)]
    id: String,
    server: String,
    issuer: Option<String>,
    resource_metadata: Option<String>,
    client_id: String,
    client_secret: Option<String>,
    redirect_uri: String,
    scopes: Vec<String>,
    access_token: String,
    refresh_token: Option<String>,
    received_at: i64,
    expires_at: Option<i64>,
}

impl StoredLogin {
    /// Returns true if the token has to be refreshed before a call.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| {
            let margin = REFRESH_BEFORE.min(expires_at.duration_since(self.received_at) / 10);
            expires_at.duration_since(now) <= margin
        })
    }

    /// Returns true if the token has not expired.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| now < expires_at)
    }

    /// Returns true if `token` is the stored access token.
    #[must_use]
    pub fn has_access_token(&self, token: &SecretString) -> bool {
        self.access_token.expose_secret() == token.expose_secret()
    }

    /// Returns the sign-in as a text that [`StoredLogin::from_text`] accepts for the server of this account.
    #[must_use]
    pub fn to_text(&self, account: &Account) -> SecretString {
        let exposed =
            |secret: &Option<SecretString>| secret.as_ref().map(|secret| secret.expose_secret().to_owned());
        let text = LoginText {
            version: VERSION,
            id: self.id.clone(),
            server: account.server(),
            issuer: self.client.issuer.clone(),
            resource_metadata: self.resource_metadata.as_ref().map(Url::to_string),
            client_id: self.client.client_id.clone(),
            client_secret: exposed(&self.client.client_secret),
            redirect_uri: self.client.redirect_uri.clone(),
            scopes: self.scopes.clone(),
            access_token: self.access_token.expose_secret().to_owned(),
            refresh_token: exposed(&self.refresh_token),
            received_at: self.received_at.as_second(),
            expires_at: self.expires_at.map(Timestamp::as_second),
        };
        SecretString::from(serde_json::to_string_pretty(&text).unwrap_or_default())
    }

    /// Parses a text of [`StoredLogin::to_text`].
    ///
    /// # Errors
    ///
    /// It is damaged, of another version, or of another MCP server than that of the account.
    pub fn from_text(text: &str, account: &Account) -> Result<Self, LoginTextFault> {
        let damaged = |problem: String| LoginTextFault::Damaged { problem };
        // The parser's own message would quote the unexpected text, which may be a secret.
        let text: LoginText = serde_json::from_str(text)
            .map_err(|error| damaged(format!("line {}, column {}", error.line(), error.column())))?;
        if text.version != VERSION {
            return Err(damaged(format!("version {}, and {VERSION} is known", text.version)));
        }
        if text.server != account.server() {
            return Err(LoginTextFault::OtherServer { url: text.server });
        }
        let tokens = [Some(&text.access_token), text.refresh_token.as_ref()];
        if tokens.into_iter().flatten().any(|token| !is_token(token)) {
            return Err(damaged("a token is not a token".to_owned()));
        }
        let resource_metadata = text.resource_metadata.map(|url| Url::parse(&url)).transpose();
        let resource_metadata =
            resource_metadata.map_err(|_error| damaged("a URL is not a URL".to_owned()))?;
        let time = |seconds| {
            Timestamp::from_second(seconds).map_err(|_range| damaged("a time is out of range".to_owned()))
        };
        Ok(Self {
            id: text.id,
            client: RegisteredClient {
                client_id: text.client_id,
                client_secret: text.client_secret.map(SecretString::from),
                issuer: text.issuer,
                redirect_uri: text.redirect_uri,
            },
            resource_metadata,
            scopes: text.scopes,
            access_token: SecretString::from(text.access_token),
            refresh_token: text.refresh_token.map(SecretString::from),
            received_at: time(text.received_at)?,
            expires_at: text.expires_at.map(time).transpose()?,
        })
    }
}

impl fmt::Debug for StoredLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredLogin")
            .field("client", &self.client)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Returns true if a text can be sent as a token: visible ASCII characters, at least one.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the expiry of a token with a lifetime in seconds. A lifetime of 0 says nothing, as some servers send it for
/// tokens without an expiry.
pub(super) fn expiry(received_at: Timestamp, lifetime: Option<u64>) -> Option<Timestamp> {
    let seconds = lifetime.filter(|seconds| *seconds > 0)?;
    let seconds = i64::try_from(seconds).unwrap_or(MAX_LIFETIME).min(MAX_LIFETIME);
    received_at.checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(url: &str) -> Account {
        Account::new("wiki".parse().unwrap(), url.parse().unwrap(), None).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_000_000 + seconds).unwrap()
    }

    fn login(lifetime: Option<u64>) -> StoredLogin {
        StoredLogin {
            id: "one".to_owned(),
            client: RegisteredClient {
                client_id: "client".to_owned(),
                client_secret: Some("sekret-of-client".into()),
                issuer: Some("https://login.example".to_owned()),
                redirect_uri: "http://127.0.0.1:1/callback".to_owned(),
            },
            resource_metadata: Some(
                "https://a.example/.well-known/oauth-protected-resource".parse().unwrap(),
            ),
            scopes: vec!["read".to_owned()],
            access_token: "sekret-access".into(),
            refresh_token: Some("sekret-refresh".into()),
            received_at: at(0),
            expires_at: expiry(at(0), lifetime),
        }
    }

    #[test]
    fn a_token_is_due_in_the_last_minute_or_tenth_of_its_life() {
        for (lifetime, second, is_due, is_valid) in [
            (Some(3600), 0, false, true),
            (Some(3600), 3539, false, true),
            (Some(3600), 3540, true, true),
            (Some(3600), 3600, true, false),
            (Some(30), 26, false, true),
            (Some(30), 27, true, true),
            (Some(u64::MAX), 9 * 366 * 86_400, false, true),
            (Some(0), 1_000_000, false, true),
            (None, 1_000_000, false, true),
        ] {
            let login = login(lifetime);
            let found = (login.is_due(at(second)), login.is_valid(at(second)));
            assert_eq!(found, (is_due, is_valid), "{lifetime:?} after {second} s");
        }
    }

    #[test]
    fn a_text_is_read_back_for_its_server_only() {
        let own = account("https://a.example/mcp?team=1");
        let text = login(Some(3600)).to_text(&own);
        let text = text.expose_secret();
        let read = StoredLogin::from_text(text, &own).unwrap();
        assert_eq!(read.to_text(&own).expose_secret(), text);
        assert!(read.client.is_same(&login(None).client) && read.has_access_token(&"sekret-access".into()));
        assert_eq!((read.id.as_str(), read.expires_at), ("one", Some(at(3600))));
        // A text of an earlier release has no id.
        let earlier = text.replace("  \"id\": \"one\",\n", "");
        assert!(earlier != text && StoredLogin::from_text(&earlier, &own).unwrap().id.is_empty());
        assert!(!format!("{read:?}").contains("sekret"), "{read:?}");
        assert!(StoredLogin::from_text(text, &account("https://a.example/mcp?team=2")).is_ok());
        for other in [
            "http://localhost/mcp",
            "https://b.example/mcp",
            "https://a.example:8443/mcp",
            "https://a.example/mcp2",
            "https://a.example/",
        ] {
            let fault = StoredLogin::from_text(text, &account(other)).unwrap_err();
            assert_eq!(fault, LoginTextFault::OtherServer { url: "https://a.example/mcp".to_owned() });
        }
    }

    #[test]
    fn a_damaged_text_is_refused_without_quoting_it() {
        let own = account("https://a.example/mcp");
        let text = login(Some(3600)).to_text(&own);
        let text = text.expose_secret();
        for damaged in [
            String::new(),
            "sekret".to_owned(),
            "[]".to_owned(),
            text.replace("\"version\": 1", "\"version\": 2"),
            text.replace("\"sekret-access\"", "7"),
            text.replace("sekret-access", "sekret access"),
            text.replace("sekret-refresh", ""),
            text.replace("\"client_id\"", "\"sekret\""),
            text.replace("\"scopes\"", "\"more\": 1, \"scopes\""),
            text.replace("\"received_at\": 1795000000", "\"received_at\": 9223372036854775807"),
            text.replace("https://a.example/.well-known", "sekret"),
            text.get(..text.len() / 2).unwrap().to_owned(),
        ] {
            let fault = StoredLogin::from_text(&damaged, &own).unwrap_err();
            let shown = format!("{fault:?}");
            assert!(shown.starts_with("Damaged") && !shown.contains("sekret"), "{damaged}: {shown}");
        }
    }
}
