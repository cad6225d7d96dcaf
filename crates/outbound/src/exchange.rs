//! Sends requests that a library has built.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use reqwest::Client;
use url::Url;

use super::{BodyFault, build_client, innermost, read_body};

/// Client for requests that a library has built.
#[derive(Debug, Clone)]
pub struct Exchange {
    client: Client,
    /// Timeout of a request, including its body.
    within: Duration,
    /// Maximum size of a response body in bytes.
    max_body_bytes: usize,
}

impl Exchange {
    /// Creates a client for the origin of `url`.
    pub fn new(url: &Url, within: Duration, max_body_bytes: usize) -> Result<Self, String> {
        Ok(Self { client: build_client(url)?, within, max_body_bytes })
    }

    /// Returns the response, or a description of the failure that contains no part of the request.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let answered = tokio::time::timeout(self.within, self.answer(request)).await;
        answered.unwrap_or_else(|_late| Err(format!("no answer within {:?}", self.within)))
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let broken = |error: &reqwest::Error| innermost(error).unwrap_or_else(|| "no connection".to_owned());
        let request = reqwest::Request::try_from(request).map_err(|error| broken(&error))?;
        let answer = self.client.execute(request).await.map_err(|error| broken(&error))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = read_body(answer, self.max_body_bytes).await.map_err(|fault| match fault {
            BodyFault::TooLarge => format!("an answer of more than {} bytes", self.max_body_bytes),
            BodyFault::Broken(error) => broken(&error),
        })?;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}
