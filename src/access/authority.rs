//! The HTTP client for authorization servers, with a maximum response size.
//!
//! Timeouts are up to the caller, because one operation can need several requests.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, StatusCode};
use url::Url;

use crate::outbound::{BodyFault, build_client, innermost, read_body};

/// Default timeout of an operation on an authorization server.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// Maximum size of a response in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// A client for authorization servers.
#[derive(Debug, Default)]
pub(super) struct AuthorityClient {
    /// Client for `https` URLs, built on first use because most servers never need one.
    https: OnceLock<Client>,
    /// Client for `http` URLs, which are on this machine.
    http: OnceLock<Client>,
}

/// The reason why there is no usable response. It contains nothing of the request.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuthorityFault {
    #[error("it cannot be reached ({0})")]
    Unreachable(String),
    #[error("it does not answer in time")]
    Timeout,
    #[error("it answers with status {0}")]
    Status(u16),
    #[error("its answer is larger than 256 KiB")]
    TooLarge,
    #[error("{0}")]
    Unusable(String),
}

impl AuthorityClient {
    /// Sends a GET request and returns the body of the response.
    pub(super) async fn get(&self, url: &Url) -> Result<Bytes, AuthorityFault> {
        answer(self.client(url)?.get(url.clone())).await
    }

    /// Sends a form and returns the body of the response.
    pub(super) async fn post(
        &self,
        url: &Url,
        authorization: HeaderValue,
        form: String,
    ) -> Result<Bytes, AuthorityFault> {
        let request = self
            .client(url)?
            .post(url.clone())
            .header(AUTHORIZATION, authorization)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        answer(request).await
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
    if response.status() != StatusCode::OK {
        return Err(AuthorityFault::Status(response.status().as_u16()));
    }
    read_body(response, MAX_BODY_BYTES).await.map_err(|fault| match fault {
        BodyFault::TooLarge => AuthorityFault::TooLarge,
        BodyFault::Broken(error) => broken(&error),
    })
}

fn broken(error: &reqwest::Error) -> AuthorityFault {
    AuthorityFault::Unreachable(innermost(error).unwrap_or_else(|| "the connection broke".to_owned()))
}
