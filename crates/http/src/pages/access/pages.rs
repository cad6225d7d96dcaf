//! Settings and sessions of all pages, and the errors of tokens that do not open one.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::uri::{Authority, Scheme};
use axum::http::{Extensions, HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use fetchwell_callers::{AdmissionError, AuthenticatedCaller, Denial, GrantToken, Session};
use fetchwell_state::StateError;
use fetchwell_state::cursor::LatestKeyMismatch;
use fetchwell_state::redis::RedisState;
use fetchwell_telemetry::{Call, Telemetry};
use fetchwell_tools::Permit;

use super::attempts::UsedAttempts;
use super::cookies::Cookies;
use super::responses::redirect;
use super::sessions::Sessions;
use crate::middleware::rate_limit::RateLimiter;
use crate::middleware::served::{AuthMode, Callers};
use crate::pages::layout::{Visitor, problem, sentence};
use crate::public_url::PublicUrl;
use crate::site::{CurrentConfiguration, Site};

/// Settings and sessions of all pages.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    pub(crate) served: AuthMode,
    pub(crate) telemetry: Telemetry,
    pub(crate) public_url: Option<PublicUrl>,
    pub(crate) sessions: Sessions,
    /// Configuration file without its secrets.
    pub(crate) configuration: CurrentConfiguration,
    /// Redis with the state that servers share.
    pub(crate) shared_state: Option<RedisState>,
    /// Difference between the keys of this server and those of others with the same Redis.
    pub(crate) key_mismatch: LatestKeyMismatch,
    pub(crate) rate_limiter: RateLimiter,
    pub(crate) used_attempts: UsedAttempts,
}

/// Ways to open a page that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessMethod {
    /// By a token, or for one record by a link that an assistant gives.
    Link,
    /// By signing in at the authorization server.
    SignIn,
}

impl AccessMethod {
    /// Returns the way in which people without a session can open pages.
    pub(crate) fn offered_by(callers: &Callers) -> Self {
        match callers.authenticator().sign_in() {
            Some(_) => Self::SignIn,
            None => Self::Link,
        }
    }
}

impl Pages {
    /// Creates the pages of a server, without sessions.
    pub(crate) fn new(site: &Site) -> Self {
        let Site { served, telemetry, rate_limiter, state, key_mismatch, configuration, public_url, .. } =
            site.clone();
        let is_secure = public_url.as_ref().is_some_and(|url| url.as_str().starts_with("https:"));
        let callers = match &served {
            AuthMode::Authenticated(callers) => Some(Arc::clone(callers)),
            AuthMode::Unauthenticated(_) => None,
        };
        let sessions = Sessions::new(callers, Cookies { is_secure });
        Self {
            served,
            telemetry,
            public_url,
            sessions,
            configuration,
            shared_state: state,
            key_mismatch,
            rate_limiter,
            used_attempts: UsedAttempts::default(),
        }
    }

    pub(crate) fn cookies(&self) -> Cookies {
        self.sessions.cookies()
    }

    /// Returns the URL of a path, or the path itself if the server does not know its URL.
    pub(crate) fn url_at(&self, path: &str) -> String {
        self.public_url.as_ref().map_or_else(|| path.to_owned(), |url| url.at(path))
    }

    /// Returns the URL of a path below the public URL, or else under the host that the client called. That host is one of this
    /// server; others are refused before.
    pub(crate) fn called_url(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        extensions: &Extensions,
        path: &str,
    ) -> String {
        if let Some(url) = &self.public_url {
            return url.at(path);
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| uri.authority().map(Authority::as_str));
        match (extensions.get::<Scheme>(), host) {
            (Some(scheme), Some(host)) => format!("{scheme}://{host}{path}"),
            _ => path.to_owned(),
        }
    }

    /// Authenticates the latest token of a grant, and returns its caller with a permit for one call.
    pub(crate) async fn admit(
        &self,
        callers: &Callers,
        cell: &GrantToken,
        client: IpAddr,
        record: &mut Call,
    ) -> Result<(AuthenticatedCaller, Permit), PageRefusal> {
        let token = cell.latest().ok_or_else(|| PageRefusal {
            status: StatusCode::UNAUTHORIZED,
            problem: "The link or session has expired.".to_owned(),
        })?;
        let caller = match callers.authenticator().authenticate_token(&token, client).await {
            Ok(caller) => caller,
            Err(denial) => {
                if denial.retry_after().is_none() {
                    cell.forget(&token);
                }
                return Err(denial.into());
            }
        };
        record.is_by(caller.caller.grant_id());
        let permit = callers.toolboxes.admit(&caller).await?;
        Ok((caller, permit))
    }

    /// Returns true if a form was sent from one of these pages.
    pub(super) fn is_from_here(&self, headers: &HeaderMap) -> bool {
        let Some(public_url) = &self.public_url else { return false };
        headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes() == public_url.as_str().as_bytes())
    }

    /// Returns true if people sign in at an authorization server.
    pub(crate) fn has_sign_in(&self) -> bool {
        match &self.served {
            AuthMode::Authenticated(callers) => AccessMethod::offered_by(callers) == AccessMethod::SignIn,
            AuthMode::Unauthenticated(_) => false,
        }
    }
}

/// Reason why a token does not open a page.
#[derive(Debug)]
pub(crate) struct PageRefusal {
    /// Status of the page; 401 if another token can succeed.
    pub(crate) status: StatusCode,
    pub(crate) problem: String,
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
pub(crate) async fn begin_session(
    pages: &Pages,
    headers: &HeaderMap,
    session: Session,
    path: &str,
) -> Response {
    match pages.sessions.begin(headers, session).await {
        Ok(cookie) => redirect(path, Some(&cookie)),
        Err(StateError::NoRandom(_)) => {
            let text = "The system provides no random bytes; try again.";
            problem(StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong", text, Visitor::Unknown)
        }
        Err(_counted) => without_state(),
    }
}

/// Returns the page for a session that cannot be read or written now.
pub(crate) fn without_state() -> Response {
    let text = "The server cannot reach the store of sessions; try again in a moment.";
    problem(StatusCode::SERVICE_UNAVAILABLE, "Not available now", text, Visitor::Unknown)
}
