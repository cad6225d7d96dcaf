//! State of record pages, and the errors of tokens that do not open one.

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::responses::redirect;
use super::sessions::Sessions;
use super::view::{self, sentence};
use crate::callers::Session;
use crate::callers::{AdmissionError, Denial};
use crate::http::middleware::served::AuthMode;
use crate::http::public_url::PublicUrl;
use crate::state::StateError;
use crate::telemetry::Telemetry;

/// Settings and sessions of all pages.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    pub(super) served: AuthMode,
    pub(super) telemetry: Telemetry,
    pub(super) public_url: PublicUrl,
    pub(super) sessions: Sessions,
}

/// Reason why a token does not open a page.
#[derive(Debug)]
pub(super) struct PageRefusal {
    /// Status of the page; 401 if another token can succeed.
    pub(super) status: StatusCode,
    pub(super) problem: String,
}

impl From<Denial> for PageRefusal {
    fn from(denial: Denial) -> Self {
        Self { status: denial.status(), problem: sentence(&denial.to_string()) }
    }
}

impl From<AdmissionError> for PageRefusal {
    fn from(reason: AdmissionError) -> Self {
        let status = match reason {
            AdmissionError::NoSources => StatusCode::FORBIDDEN,
            AdmissionError::TooManyCalls => StatusCode::TOO_MANY_REQUESTS,
        };
        Self { status, problem: sentence(&reason.to_string()) }
    }
}

/// Begins a session and sends the browser to a page.
pub(super) async fn begin_session(
    pages: &Pages,
    headers: &HeaderMap,
    session: Session,
    path: &str,
) -> Response {
    match pages.sessions.begin(headers, session).await {
        Ok(cookie) => redirect(path, Some(&cookie)),
        Err(StateError::NoRandom(_)) => {
            let problem = "The system provides no random bytes; try again.";
            view::problem(StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong", problem, false)
        }
        Err(_counted) => without_state(),
    }
}

/// Returns the page for a person whose session cannot be read or written now.
pub(super) fn without_state() -> Response {
    let problem = "The server cannot reach the store of sessions; try again in a moment.";
    view::problem(StatusCode::SERVICE_UNAVAILABLE, "Not available now", problem, false)
}
