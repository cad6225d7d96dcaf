//! The HTTP client for authorization servers, with a maximum response size.
//!
//! Timeouts are up to the caller, because one operation can need several requests.

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fetchwell_outbound::{BodyFault, build_client, innermost, read_body};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::{Url, form_urlencoded};

/// Default timeout of an operation on an authorization server.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);

/// Maximum size of a response in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Maximum size of an error response that is read for its error code, in bytes.
const MAX_ERROR_BODY_BYTES: usize = 16 * 1024;

/// Maximum length of an error code in bytes.
const MAX_ERROR_BYTES: usize = 40;

/// A client for authorization servers.
#[derive(Debug, Default)]
pub(crate) struct AuthorityClient {
    /// Client for `https` URLs, built on first use because most servers never need one.
    https: OnceLock<Client>,
    /// Client for `http` URLs, which are on this machine.
    http: OnceLock<Client>,
}

/// The reason why there is no usable response. It contains nothing of the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthorityFault {
    #[error("it cannot be reached ({0})")]
    Unreachable(String),
    #[error("it does not respond in time")]
    Timeout,
    #[error("it responds with status {0}")]
    Status(u16),
    /// With the error code of OAuth (RFC 6749, 5.2).
    #[error("it responds with status {status}, {error}")]
    Refused { status: u16, error: String },
    #[error("its response is larger than 256 KiB")]
    TooLarge,
    #[error("{0}")]
    Unusable(String),
}

impl AuthorityClient {
    /// Sends a GET request and returns the body of the response.
    pub(crate) async fn get(&self, url: &Url) -> Result<Bytes, AuthorityFault> {
        answer(self.client(url)?.get(url.clone())).await
    }

    /// Sends a form and returns the body of the response.
    pub(crate) async fn post(
        &self,
        url: &Url,
        authorization: Option<HeaderValue>,
        form: String,
    ) -> Result<Bytes, AuthorityFault> {
        let mut request = self.client(url)?.post(url.clone());
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        answer(request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form)).await
    }

    fn client(&self, url: &Url) -> Result<&Client, AuthorityFault> {
        let cell = if url.scheme() == "https" { &self.https } else { &self.http };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = build_client(url).map_err(AuthorityFault::Unusable)?;
        Ok(cell.get_or_init(|| client))
    }
}

async fn answer(request: RequestBuilder) -> Result<Bytes, AuthorityFault> {
    let response = request.header(ACCEPT, "application/json").send().await.map_err(|error| broken(&error))?;
    let status = response.status();
    if status.is_client_error() {
        let body = read_body(response, MAX_ERROR_BODY_BYTES).await.unwrap_or_default();
        let status = status.as_u16();
        return Err(match error_code(&body) {
            Some(error) => AuthorityFault::Refused { status, error },
            None => AuthorityFault::Status(status),
        });
    }
    if status != StatusCode::OK {
        return Err(AuthorityFault::Status(status.as_u16()));
    }
    read_body(response, MAX_BODY_BYTES).await.map_err(|fault| match fault {
        BodyFault::TooLarge => AuthorityFault::TooLarge,
        BodyFault::Broken(error) => broken(&error),
    })
}

/// Returns the error code of an error response, if its body has one.
fn error_code(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let refusal: Refusal = serde_json::from_slice(body).ok()?;
    Some(refusal.error).filter(|error| is_error_code(error))
}

/// Returns true if a text is a short error code of OAuth: letters, digits and underscores.
pub(crate) fn is_error_code(text: &str) -> bool {
    (1..=MAX_ERROR_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the header of HTTP Basic authentication. OAuth form-encodes both parts first (RFC 6749, 2.3.1).
pub(crate) fn basic(client_id: &str, secret: &SecretString) -> Option<HeaderValue> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let (id, secret) = (encoded(client_id), encoded(secret.expose_secret()));
    let value = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn broken(error: &reqwest::Error) -> AuthorityFault {
    AuthorityFault::Unreachable(innermost(error).unwrap_or_else(|| "the connection broke".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_short_words() {
        for (code, expect) in
            [("invalid_grant", true), ("", false), ("<b>", false), ("a b", false), (&"a".repeat(41), false)]
        {
            assert_eq!(is_error_code(code), expect, "{code}");
        }
    }
}
