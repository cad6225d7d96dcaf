//! The HTTP client of rmcp's state machine: our limits, roots and redaction instead of rmcp's own.
//!
//! It follows no redirect: rmcp follows those of metadata within one origin itself, and nothing else may be redirected.
//! rmcp turns failures into messages, so the client remembers the fault of the last request as a value.

use std::sync::OnceLock;
use std::time::Duration;

use fetchwell_outbound::{
    BodyFault, PublicClient, PublicFault, build_client_without_redirects, innermost, read_body,
};
use http::header::{CONTENT_TYPE, HeaderMap};
use http::{Request, Response, StatusCode};
use parking_lot::Mutex;
use reqwest::Client;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde::Deserialize;
use url::Url;

use super::account::{Account, ForbiddenUrl, origin};
use super::fault::OAuthFault;

/// Timeout of a request with its body.
pub(super) const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// Maximum size of a response in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Maximum length of an error code in bytes.
const MAX_CODE_BYTES: usize = 40;

/// Client for the requests of one account's sign-in.
#[derive(Debug)]
pub(super) struct OutboundClient {
    account: Account,
    within: Duration,
    /// Client of a server of the internet, and those of a server of this network for `https` and `http` URLs, built on first
    /// use.
    public: OnceLock<PublicClient>,
    https: OnceLock<Client>,
    http: OnceLock<Client>,
    last: Mutex<Option<HttpFault>>,
}

/// Fault of a request. Contains nothing of the request or the response but an origin, a status and an error code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a request to {origin} failed")]
pub(super) struct HttpFault {
    /// Origin of the server.
    pub(super) origin: String,
    /// Kind of the fault.
    pub(super) fault: HttpFaultKind,
}

/// Kind of a fault of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HttpFaultKind {
    /// The server did not respond.
    Unreachable(String),
    /// A response with an error status.
    Status(u16),
    /// A response with an error status and an error code of OAuth (RFC 6749, 5.2).
    Refused { status: u16, code: String },
    /// A response above the size limit.
    TooLarge,
    /// Nothing may be sent to the URL.
    Forbidden(ForbiddenUrl),
}

impl OutboundClient {
    /// Creates a client for an account, with a timeout for each request.
    pub(super) fn new(account: Account, within: Duration) -> Self {
        let (public, https, http) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { account, within, public, https, http, last: Mutex::default() }
    }

    /// Sends a request and returns the response, whatever its status.
    pub(super) async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, HttpFault> {
        let url = Url::parse(&request.uri().to_string());
        let origin = url.as_ref().map(origin).unwrap_or_default();
        let permitted = url
            .map_err(|_invalid| ForbiddenUrl::Insecure)
            .and_then(|url| self.account.check_url(&url).map(|()| url));
        let sent = match permitted {
            Ok(url) => {
                let late = |_late| HttpFaultKind::Unreachable(format!("no answer within {:?}", self.within));
                let sent = tokio::time::timeout(self.within, self.exchange(&url, request)).await;
                sent.map_err(late).and_then(|answer| answer)
            }
            Err(forbidden) => Err(HttpFaultKind::Forbidden(forbidden)),
        };
        let fault = match &sent {
            Ok(response) => error_status(response.status(), response.body()),
            Err(fault) => Some(fault.clone()),
        };
        *self.last.lock() = fault.map(|fault| HttpFault { origin: origin.clone(), fault });
        sent.map_err(|fault| HttpFault { origin, fault })
    }

    /// Returns the fault of the last request, if it failed or was answered with an error status.
    pub(super) fn last_fault(&self) -> Option<HttpFault> {
        self.last.lock().clone()
    }

    async fn exchange(
        &self,
        url: &Url,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, HttpFaultKind> {
        let broken = |error: &reqwest::Error| {
            HttpFaultKind::Unreachable(innermost(error).unwrap_or_else(|| "the connection broke".to_owned()))
        };
        let request = reqwest::Request::try_from(request).map_err(|error| broken(&error))?;
        let answer = if self.account.is_internal() {
            let client = self.client(url).map_err(HttpFaultKind::Unreachable)?;
            client.execute(request).await.map_err(|error| broken(&error))?
        } else {
            let client = self.public_client().map_err(HttpFaultKind::Unreachable)?;
            client.execute(request).await.map_err(|fault| match fault {
                PublicFault::Internal => HttpFaultKind::Forbidden(ForbiddenUrl::Internal),
                PublicFault::Failed(error) => broken(&error),
            })?
        };
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = if is_event_stream(&headers) {
            // The stream of an MCP server does not end, and it is no answer to a question about sign-in.
            Vec::new()
        } else {
            let body = read_body(answer, MAX_BODY_BYTES).await.map_err(|fault| match fault {
                BodyFault::TooLarge => HttpFaultKind::TooLarge,
                BodyFault::Broken(error) => broken(&error),
            })?;
            body.to_vec()
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    fn public_client(&self) -> Result<&PublicClient, String> {
        if let Some(client) = self.public.get() {
            return Ok(client);
        }
        let client = PublicClient::new(self.account.url())?;
        Ok(self.public.get_or_init(|| client))
    }

    fn client(&self, url: &Url) -> Result<&Client, String> {
        let cell = if url.scheme() == "https" { &self.https } else { &self.http };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = build_client_without_redirects(url)?;
        Ok(cell.get_or_init(|| client))
    }
}

impl OAuthHttpClient for OutboundClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move { self.send(request.request).await.map_err(Into::into) })
    }
}

impl From<HttpFault> for OAuthFault {
    fn from(HttpFault { origin, fault }: HttpFault) -> Self {
        let status_problem = |status: u16| format!("it responds with status {status}");
        match fault {
            HttpFaultKind::Unreachable(problem) => Self::Unreachable { origin, problem },
            HttpFaultKind::Forbidden(forbidden) => forbidden.fault(origin),
            HttpFaultKind::TooLarge => Self::Malformed {
                origin,
                problem: format!("its response is larger than {MAX_BODY_BYTES} bytes"),
            },
            HttpFaultKind::Status(429) | HttpFaultKind::Refused { status: 429, .. } => {
                Self::RateLimited { origin }
            }
            HttpFaultKind::Status(status) | HttpFaultKind::Refused { status, .. }
                if status >= 500 || status == 408 =>
            {
                Self::Unreachable { origin, problem: status_problem(status) }
            }
            HttpFaultKind::Refused { code, .. } if is_temporary(&code) => {
                Self::Unreachable { origin, problem: format!("it responds with {code}") }
            }
            HttpFaultKind::Refused { code, .. } => Self::Refused { code },
            HttpFaultKind::Status(status) => Self::Malformed { origin, problem: status_problem(status) },
        }
    }
}

/// Returns the fault of a response with an error status.
fn error_status(status: StatusCode, body: &[u8]) -> Option<HttpFaultKind> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let is_error = status.is_client_error() || status.is_server_error();
    let refusal =
        || serde_json::from_slice::<Refusal>(body).ok().filter(|refusal| is_error_code(&refusal.error));
    let status = is_error.then(|| status.as_u16())?;
    Some(match refusal() {
        Some(refusal) => HttpFaultKind::Refused { status, code: refusal.error },
        None => HttpFaultKind::Status(status),
    })
}

/// Returns true if a text is a short error code of OAuth: letters, digits and underscores.
pub(super) fn is_error_code(text: &str) -> bool {
    (1..=MAX_CODE_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns true for an error code that asks to try again.
pub(super) fn is_temporary(code: &str) -> bool {
    matches!(code, "temporarily_unavailable" | "server_error" | "slow_down")
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_type.to_ascii_lowercase().starts_with("text/event-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expect: Option<&OAuthFault>) {
        let fault = error_status(StatusCode::from_u16(status).unwrap(), body.as_bytes());
        let origin = || "https://a.example".to_owned();
        let fault = fault.map(|fault| OAuthFault::from(HttpFault { origin: origin(), fault }));
        assert_eq!(fault.as_ref(), expect, "{status} {body}");
    }

    #[tokio::test]
    async fn a_remote_server_does_not_choose_urls_of_this_network() {
        let account = Account::new("wiki".parse().unwrap(), "https://a.example/mcp".parse().unwrap(), None);
        let client = OutboundClient::new(account.unwrap(), Duration::from_secs(60));
        for origin in ["https://127.0.0.1:1", "https://169.254.169.254", "https://vault.internal"] {
            let request = Request::get(format!("{origin}/token")).body(Vec::new()).unwrap();
            let fault = client.send(request).await.unwrap_err();
            assert_eq!(OAuthFault::from(fault), OAuthFault::Internal { origin: origin.to_owned() });
        }
    }

    #[test]
    fn faults_are_those_of_the_status_and_the_error_code() {
        let origin = || "https://a.example".to_owned();
        let refused = |code: &str| OAuthFault::Refused { code: code.to_owned() };
        let unreachable =
            |problem: &str| OAuthFault::Unreachable { origin: origin(), problem: problem.to_owned() };
        let malformed =
            |problem: &str| OAuthFault::Malformed { origin: origin(), problem: problem.to_owned() };
        check(200, r#"{"error":"invalid_grant"}"#, None);
        check(302, "", None);
        check(400, r#"{"error":"invalid_grant","error_description":"x"}"#, Some(&refused("invalid_grant")));
        check(401, r#"{"error":"invalid_client"}"#, Some(&refused("invalid_client")));
        check(400, r#"{"error":"<b>sekret</b>"}"#, Some(&malformed("it responds with status 400")));
        check(404, "<html>", Some(&malformed("it responds with status 404")));
        check(400, r#"{"error":"slow_down"}"#, Some(&unreachable("it responds with slow_down")));
        check(503, r#"{"error":"invalid_grant"}"#, Some(&unreachable("it responds with status 503")));
        check(500, "", Some(&unreachable("it responds with status 500")));
        check(429, "", Some(&OAuthFault::RateLimited { origin: origin() }));
    }
}
