//! Requests with a JSON body and a bearer key.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

/// Reason why a request cannot be built.
#[derive(Debug)]
pub enum InvalidRequest {
    /// The key has characters that a header cannot have.
    Key,
    /// The URL cannot be requested.
    Url(http::Error),
}

/// Returns the value of `Authorization` for a secret, or `None` if the secret cannot be in a header.
pub fn bearer(secret: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", secret.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Builds a `POST` request.
pub fn json_request(
    url: &Url,
    key: Option<&SecretString>,
    body: &Value,
) -> Result<Request<Bytes>, InvalidRequest> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(url.as_str())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json");
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, bearer(key).ok_or(InvalidRequest::Key)?);
    }
    request.body(Bytes::from(body.to_string())).map_err(InvalidRequest::Url)
}
