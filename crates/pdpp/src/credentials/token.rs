//! Parser of tokens: a bare token, JSON with one, or the file of `pdpp connect`.

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

use super::CredentialFault;
use crate::ProviderUrl;

/// Token with its expiry.
#[derive(Debug, Clone)]
pub(super) struct Credential {
    pub(super) token: SecretString,
    pub(super) expires_at: Option<Timestamp>,
}

/// Maximum lifetime of a token in seconds: ten years.
const MAX_LIFE: u64 = 10 * 366 * 24 * 60 * 60;

#[derive(Deserialize)]
struct StoredToken {
    access_token: String,
    #[serde(default)]
    expires_at: Value,
    #[serde(default)]
    expires_in: Value,
    #[serde(flatten)]
    kind: Kind,
}

impl Credential {
    /// Parses the file of `pdpp connect` for `provider`: `{"provider_url": …, "credential": {"access_token": …}}`.
    ///
    /// Servers of one host share the name of the file whatever their scheme, so the credential is refused unless
    /// `provider_url` has the origin of `provider`. Without a `provider_url` it is refused where it would be sent unencrypted.
    pub(super) fn of_pdpp_cache(
        text: &str,
        since: Timestamp,
        provider: &ProviderUrl,
    ) -> Result<Self, CredentialFault> {
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            provider_url: Value,
            credential: StoredToken,
            #[serde(flatten)]
            kind: Kind,
        }
        let file: File = serde_json::from_str(text).map_err(|error| {
            // The parser's message may quote a value, and the values are secrets.
            CredentialFault::malformed(format!(
                "it is not the JSON that `pdpp connect` writes (line {})",
                error.line()
            ))
        })?;
        if file.kind.is_owner() {
            return Err(CredentialFault::Owner);
        }
        let kept_for = match &file.provider_url {
            Value::Null => None,
            Value::String(url) => ProviderUrl::parse_insecure(url).ok(),
            _ => return Err(CredentialFault::malformed("its provider_url is not a string")),
        };
        match kept_for {
            Some(kept_for) if kept_for.origin() == provider.origin() => {}
            Some(kept_for) => {
                let origin = kept_for.origin().ascii_serialization();
                return Err(CredentialFault::OtherOrigin { origin });
            }
            None if file.provider_url.is_null() && provider.is_confidential() => {}
            None => return Err(CredentialFault::malformed("its provider_url is missing or not a URL")),
        }
        Self::of_stored(file.credential, since)
    }

    /// Parses a bare token, or `{"access_token": …, "expires_at" or "expires_in": …, "token_kind": …}`. `expires_in`
    /// counts from `since`.
    pub(super) fn of_text(text: &str, since: Timestamp) -> Result<Self, CredentialFault> {
        let text = text.trim();
        if !text.starts_with('{') {
            return Ok(Self { token: token(text.to_owned())?, expires_at: None });
        }
        let stored: StoredToken = serde_json::from_str(text).map_err(|error| {
            CredentialFault::malformed(format!("it is not JSON with an access_token (line {})", error.line()))
        })?;
        Self::of_stored(stored, since)
    }

    fn of_stored(stored: StoredToken, since: Timestamp) -> Result<Self, CredentialFault> {
        if stored.kind.is_owner() {
            return Err(CredentialFault::Owner);
        }
        let token = token(stored.access_token)?;
        let at = expiry(&stored.expires_at)
            .ok_or_else(|| CredentialFault::malformed("its expires_at is no time"))?;
        let after = lifetime(&stored.expires_in)
            .ok_or_else(|| CredentialFault::malformed("its expires_in is no number of seconds"))?;
        let expires_at = at.or_else(|| since.checked_add(after?).ok());
        Ok(Self { token, expires_at })
    }
}

fn token(text: String) -> Result<SecretString, CredentialFault> {
    match text.as_str() {
        "" => Err(CredentialFault::malformed("it is empty")),
        text if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(CredentialFault::malformed("its access token is not a token"))
        }
        _ => Ok(SecretString::from(text)),
    }
}

/// Fields that can state the kind of a credential.
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

/// Parses RFC 3339, or seconds or milliseconds since 1970. Returns `None` for anything else, and `Some(None)` if
/// there is no expiry.
fn expiry(value: &Value) -> Option<Option<Timestamp>> {
    /// Seconds of this size are in the year 5138, so a greater number is in milliseconds.
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

/// Parses seconds, as a number or a string. Returns `None` for anything else, and `Some(None)` if there are none.
fn lifetime(value: &Value) -> Option<Option<SignedDuration>> {
    let seconds = match value {
        Value::Null => return Some(None),
        Value::String(text) => text.parse().ok()?,
        Value::Number(number) => number.as_u64()?,
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    i64::try_from(seconds.min(MAX_LIFE)).ok().map(|seconds| Some(SignedDuration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn since() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_token_is_bare_or_json_with_an_end() {
        for (text, expires_at) in [
            ("tok\n", None),
            ("  tok  ", None),
            (r#"{"access_token":"tok"}"#, None),
            (r#"{"access_token":"tok","expires_at":null,"expires_in":null}"#, None),
            (r#"{"access_token":"tok","expires_in":60,"token_type":"Bearer"}"#, Some("2026-11-20T12:01:00Z")),
            (r#"{"access_token":"tok","expires_in":"60"}"#, Some("2026-11-20T12:01:00Z")),
            (
                r#"{"access_token":"tok","expires_at":"2026-11-20T12:05:00Z","expires_in":60}"#,
                Some("2026-11-20T12:05:00Z"),
            ),
            (r#"{"access_token":"tok","expires_at":1895000000}"#, Some("2030-01-18T20:53:20Z")),
            (r#"{"access_token":"tok","expires_at":1895000000000}"#, Some("2030-01-18T20:53:20Z")),
        ] {
            let credential = Credential::of_text(text, since()).unwrap();
            assert_eq!(credential.token.expose_secret(), "tok", "{text}");
            assert_eq!(credential.expires_at, expires_at.map(|at| at.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused_without_quoting_it() {
        for (text, problem) in [
            ("", "empty"),
            ("sek ret", "not a token"),
            ("sek\nret", "not a token"),
            ("{sekret", "line 1"),
            (r#"{"token":"sekret"}"#, "access_token"),
            (r#"{"access_token":"sekret","expires_at":"soon"}"#, "expires_at"),
            (r#"{"access_token":"sekret","expires_in":-1}"#, "expires_in"),
            (r#"{"access_token":"sekret","expires_in":true}"#, "expires_in"),
            (r#"{"access_token":"sekret","token_kind":"Owner"}"#, "Owner"),
        ] {
            let fault = format!("{:?}", Credential::of_text(text, since()).unwrap_err());
            assert!(fault.contains(problem) && !fault.contains("sek"), "{text}: {fault}");
        }
    }
}
