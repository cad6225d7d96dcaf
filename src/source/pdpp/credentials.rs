//! The credential that `pdpp connect` left in its cache.
//!
//! It is read when it is used, not only at start: a token can be dead after ten minutes, and a new one
//! that `pdpp connect` wrote is taken up without a restart. Owner credentials are refused, because this
//! program gives what it reads to a model and must see no more than a client was granted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;

use super::ProviderUrl;
use crate::source::SourceError;

/// Where a credential is kept, and the last one read from there.
#[derive(Debug)]
pub struct Credentials {
    file: PathBuf,
    provider: String,
    read: Mutex<Option<Read>>,
}

#[derive(Debug, Clone)]
struct Read {
    modified: SystemTime,
    credential: Credential,
}

#[derive(Debug, Clone)]
struct Credential {
    token: SecretString,
    expires_at: Option<Timestamp>,
}

/// Why there is no usable credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// `pdpp connect` was never run for this provider.
    #[error("not connected to {provider}: there is no {}", .file.display())]
    NotConnected {
        /// The provider.
        provider: String,
        /// Where the credential was looked for.
        file: PathBuf,
    },
    /// The token's time is over.
    #[error("the credential for {provider} expired at {at}")]
    Expired {
        /// The provider.
        provider: String,
        /// When.
        at: Timestamp,
    },
    /// The file is not what `pdpp connect` writes.
    #[error("the credential file {} is malformed: {problem}", .file.display())]
    Malformed {
        /// The provider.
        provider: String,
        /// The file.
        file: PathBuf,
        /// What is wrong with it, without its content.
        problem: String,
    },
    /// The credential is an owner's.
    #[error("the credential for {provider} is an owner credential; fetchwell takes client credentials only")]
    Owner {
        /// The provider.
        provider: String,
    },
}

impl CredentialError {
    /// The command that mends it.
    #[must_use]
    pub fn command(&self) -> String {
        let (Self::NotConnected { provider, .. }
        | Self::Expired { provider, .. }
        | Self::Malformed { provider, .. }
        | Self::Owner { provider }) = self;
        format!("pdpp connect {provider}")
    }

    /// The exit code that `pdpp` tools agreed on: 77 for an owner credential, 78 for none that works.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Owner { .. } => 77,
            Self::NotConnected { .. } | Self::Expired { .. } | Self::Malformed { .. } => 78,
        }
    }
}

impl From<CredentialError> for SourceError {
    fn from(error: CredentialError) -> Self {
        Self::Reauthorize { problem: error.to_string(), command: error.command() }
    }
}

impl Credentials {
    /// The credential of `provider` below `cache_root` (`.pdpp` by default). Nothing is read yet.
    #[must_use]
    pub fn of(provider: &ProviderUrl, cache_root: &Path) -> Self {
        let file = cache_root.join("clients").join(provider.cache_file_name());
        Self { file, provider: provider.to_string(), read: Mutex::new(None) }
    }

    /// Whether there is a credential that works now, and until when.
    ///
    /// # Errors
    ///
    /// There is none, or it is expired, malformed, or an owner's.
    pub fn check(&self, now: Timestamp) -> Result<Option<Timestamp>, CredentialError> {
        self.current(now).map(|credential| credential.expires_at)
    }

    /// The token, if it is good at `now`.
    pub(super) fn token(&self, now: Timestamp) -> Result<SecretString, CredentialError> {
        self.current(now).map(|credential| credential.token)
    }

    /// The token as it is in the file now, if it is good at `now` and another than `refused`.
    pub(super) fn other_than(&self, refused: &SecretString, now: Timestamp) -> Option<SecretString> {
        // A file that was replaced within the clock's tick looks unchanged.
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let token = self.token(now).ok()?;
        (token.expose_secret() != refused.expose_secret()).then_some(token)
    }

    fn current(&self, now: Timestamp) -> Result<Credential, CredentialError> {
        let not_connected = |_missing| CredentialError::NotConnected {
            provider: self.provider.clone(),
            file: self.file.clone(),
        };
        let modified = fs::metadata(&self.file).and_then(|file| file.modified()).map_err(not_connected)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let credential = match &*read {
            Some(known) if known.modified == modified => known.credential.clone(),
            _ => {
                let text =
                    fs::read_to_string(&self.file).map_err(|error| self.malformed(&error.to_string()))?;
                let credential = self.parse(&text)?;
                *read = Some(Read { modified, credential: credential.clone() });
                credential
            }
        };
        match credential.expires_at {
            Some(at) if at <= now => Err(CredentialError::Expired { provider: self.provider.clone(), at }),
            _ => Ok(credential),
        }
    }

    fn parse(&self, text: &str) -> Result<Credential, CredentialError> {
        #[derive(Deserialize)]
        struct File {
            credential: Stored,
            #[serde(flatten)]
            kind: Kind,
        }
        #[derive(Deserialize)]
        struct Stored {
            access_token: String,
            #[serde(default)]
            expires_at: Value,
            #[serde(flatten)]
            kind: Kind,
        }
        let file: File = serde_json::from_str(text).map_err(|error| {
            // The parser's message may quote a value, and the values are secrets.
            self.malformed(&format!("it is not the JSON that `pdpp connect` writes (line {})", error.line()))
        })?;
        if file.kind.is_owner() || file.credential.kind.is_owner() {
            return Err(CredentialError::Owner { provider: self.provider.clone() });
        }
        let token = file.credential.access_token;
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(self.malformed("its access token is not a token"));
        }
        let expires_at =
            expiry(&file.credential.expires_at).ok_or_else(|| self.malformed("its expires_at is no time"))?;
        Ok(Credential { token: SecretString::from(token), expires_at })
    }

    fn malformed(&self, problem: &str) -> CredentialError {
        CredentialError::Malformed {
            provider: self.provider.clone(),
            file: self.file.clone(),
            problem: problem.to_owned(),
        }
    }
}

/// The fields that can say whose credential it is.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    pdpp_token_kind: Value,
    #[serde(default)]
    token_kind: Value,
    #[serde(default)]
    kind: Value,
    #[serde(default)]
    role: Value,
}

impl Kind {
    fn is_owner(&self) -> bool {
        let said = [&self.pdpp_token_kind, &self.token_kind, &self.kind, &self.role];
        said.iter().any(|value| value.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("owner")))
    }
}

/// RFC 3339 text, or seconds or milliseconds since 1970. `None` for anything else; `Some(None)` when
/// there is no expiry.
fn expiry(value: &Value) -> Option<Option<Timestamp>> {
    /// Later than this many seconds is the year 5138: the number must be milliseconds.
    const MILLISECONDS_FROM: i64 = 100_000_000_000;
    match value {
        Value::Null => Some(None),
        Value::String(text) => text.parse().ok().map(Some),
        Value::Number(number) => {
            let number = number.as_i64()?;
            let time = if number >= MILLISECONDS_FROM {
                Timestamp::from_millisecond(number)
            } else {
                Timestamp::from_second(number)
            };
            time.ok().map(Some)
        }
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The header value of a token.
pub(super) fn bearer(token: &SecretString) -> Option<reqwest::header::HeaderValue> {
    let mut value =
        reqwest::header::HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(folder: &Path, text: Option<&str>) -> Credentials {
        let provider = "https://records.example.com".parse().unwrap();
        let credentials = Credentials::of(&provider, folder);
        if let Some(text) = text {
            fs::create_dir_all(credentials.file.parent().unwrap()).unwrap();
            fs::write(&credentials.file, text).unwrap();
        }
        credentials
    }

    fn now() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_client_credential_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        for expires in [
            "",
            r#","expires_at":"2026-11-20T12:00:01Z""#,
            r#","expires_at":1895000000"#,
            r#","expires_at":null"#,
        ] {
            let text = format!(
                r#"{{"provider_url":"x","credential":{{"access_token":"tok","token_kind":"client"{expires}}}}}"#
            );
            assert_eq!(credentials(folder.path(), Some(&text)).token(now()).unwrap().expose_secret(), "tok");
        }
    }

    #[test]
    fn refusals_have_their_exit_codes_and_never_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let cases = [
            (None, 78, "not connected"),
            (
                Some(r#"{"credential":{"access_token":"sekret","expires_at":"2026-11-20T12:00:00Z"}}"#),
                78,
                "expired",
            ),
            (Some(r#"{"credential":{"access_token":"sekret","expires_at":1700000000000}}"#), 78, "expired"),
            (Some(r#"{"credential":{"access_token":"sekret","role":"OWNER"}}"#), 77, "owner"),
            (Some(r#"{"kind":"owner","credential":{"access_token":"sekret"}}"#), 77, "owner"),
            (Some(r#"{"credential":{"pdpp_token_kind":"Owner","access_token":"sekret"}}"#), 77, "owner"),
            (Some(r#"{"credential":{"access_token":"sekret","expires_at":"soon"}}"#), 78, "malformed"),
            (Some(r#"{"credential":{"access_token":"sek\nret"}}"#), 78, "malformed"),
            (Some(r#"{"access_token":"sekret"}"#), 78, "malformed"),
            (Some("not json sekret"), 78, "malformed"),
        ];
        for (text, code, word) in cases {
            let refused = credentials(folder.path(), text).check(now()).unwrap_err();
            let shown = format!("{refused} {refused:?}");
            assert_eq!(refused.exit_code(), code, "{shown}");
            assert!(shown.contains(word) && !shown.contains("sek"), "{shown}");
            assert_eq!(refused.command(), "pdpp connect https://records.example.com");
            let _ = fs::remove_dir_all(folder.path().join("clients"));
        }
    }

    #[test]
    fn a_new_credential_is_taken_up_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = credentials(folder.path(), Some(r#"{"credential":{"access_token":"old"}}"#));
        assert_eq!(credentials.token(now()).unwrap().expose_secret(), "old");
        fs::write(&credentials.file, r#"{"credential":{"access_token":"new"}}"#).unwrap();
        let later =
            fs::metadata(&credentials.file).unwrap().modified().unwrap() + std::time::Duration::from_secs(2);
        fs::File::options().append(true).open(&credentials.file).unwrap().set_modified(later).unwrap();
        assert_eq!(credentials.token(now()).unwrap().expose_secret(), "new");
    }
}
