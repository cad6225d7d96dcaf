//! Authentication middleware: attaches the caller's toolbox to every request for records, or refuses the request.
//!
//! It also acquires the caller's concurrency permit and reserves the caller's budget of unsent response bytes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use fetchwell_callers::{
    AdmissionError, AuthenticatedCaller, CallContext, Denial, HOPS_HEADER, authorization,
};
use fetchwell_tools::{Permit, Toolbox};

use super::rate_limit::RATE_LIMITED;
use super::refusal::{ErrorContext, ErrorResponder, Refusal, refused};
use super::served::{AuthMode, Callers};
use crate::body_size::size_of;
use crate::resource_metadata::metadata_url;
use crate::server::connections::{HeldUntilSent, TooMuchUnsent};
use crate::server::forwarded::network_of;

/// Returns the toolbox of the caller of a request.
pub(crate) fn toolbox_of(extensions: &Extensions) -> Option<Arc<Toolbox>> {
    extensions.get::<Arc<Toolbox>>().cloned()
}

/// State of the authentication middleware.
#[derive(Debug, Clone)]
pub(crate) struct Authentication {
    pub(crate) mode: AuthMode,
    pub(crate) responder: ErrorResponder,
}

/// Middleware that authenticates a request and removes its token.
pub(crate) async fn authenticate(
    State(Authentication { mode, responder }): State<Authentication>,
    mut request: Request,
    next: Next,
) -> Response {
    let callers = match mode {
        AuthMode::Unauthenticated(toolbox) => {
            let hops = hops(request.headers());
            request.extensions_mut().insert(toolbox.now().after_hops(hops));
            return next.run(request).await;
        }
        AuthMode::Authenticated(callers) => callers,
    };
    let client = client_of(request.extensions());
    let admitted = admit(&callers, request.headers(), client).await;
    let admission = match admitted {
        Ok(caller) => {
            // Refusals for lack of a permit are recorded for the caller, too.
            request.extensions_mut().insert(caller.caller.grant_id());
            let permit = callers.toolboxes.admit(&caller).await.map_err(admission_refusal);
            permit.map(|permit| (caller, permit))
        }
        Err(denial) => Err(denial_refusal(&denial, &SignIn::at(&callers, request.uri().path()))),
    };
    match admission {
        Ok((caller, Permit { toolbox, permit, person })) => {
            // Handlers do not need the token, and a removed header cannot be logged.
            request.headers_mut().remove(header::AUTHORIZATION);
            let context = CallContext::new(caller).after_hops(hops(request.headers()));
            let toolbox = Arc::new(toolbox.for_call(context));
            request.extensions_mut().insert(toolbox);
            // A streaming response starts before its call ends; the request keeps the permit until then.
            let permit = Arc::new(permit);
            request.extensions_mut().insert(Arc::clone(&permit));
            let context = ErrorContext::new(&request);
            let mut response = next.run(request).await;
            let (unsent, bytes) = (callers.unsent_of(person), size_of(&response));
            match unsent.reserve(bytes).await {
                Ok(share) => {
                    response.extensions_mut().insert(HeldUntilSent::new(permit, Some(share)));
                    response
                }
                Err(TooMuchUnsent) => {
                    drop(response);
                    context.refused(&too_much_unsent(), &responder)
                }
            }
        }
        Err(refusal) => refused(request, &refusal, &responder).await,
    }
}

/// Returns the number of servers of this kind that a request has passed.
fn hops(headers: &HeaderMap) -> u32 {
    headers.get(HOPS_HEADER).and_then(|hops| hops.to_str().ok()?.parse().ok()).unwrap_or_default()
}

/// Middleware of `/health` and `/metrics`: with authentication they require a token with `metrics = true`. A loopback
/// address is no identity, because a proxy on this machine has one too.
pub(crate) async fn authorize_ops(
    State(Authentication { mode, responder }): State<Authentication>,
    request: Request,
    next: Next,
) -> Response {
    let AuthMode::Authenticated(callers) = mode else { return next.run(request).await };
    let shown = authorization(request.headers());
    let refusal = match shown.and_then(|shown| callers.authenticator().may_read_metrics(shown)) {
        Ok(true) => return next.run(request).await,
        Ok(false) => {
            let problem = "only the operator of the server may read this; use a token with metrics = true";
            Refusal::new(StatusCode::FORBIDDEN, "forbidden", FORBIDDEN, problem.to_owned())
        }
        Err(denial) => {
            let refusal = denial_refusal(&denial, &SignIn::default());
            let problem = format!("{}. {OPS_REMEDY}", refusal.problem);
            Refusal { problem, ..refusal }
        }
    };
    refused(request, &refusal, &responder).await
}

const OPS_REMEDY: &str =
    "/health and /metrics need a token with metrics = true, or can be read at the address of ops_listen";

/// Returns the client address of a request, as resolved by [`forwarded`](crate::server::forwarded).
pub(crate) fn client_of(extensions: &Extensions) -> IpAddr {
    let client = extensions.get::<ConnectInfo<SocketAddr>>().map(|client| client.0.ip());
    network_of(client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

async fn admit(
    callers: &Callers,
    headers: &HeaderMap,
    client: IpAddr,
) -> Result<AuthenticatedCaller, Denial> {
    callers.authenticator().authenticate(authorization(headers)?, client).await
}

/// Data with which a client can obtain a token; empty without an authorization server.
#[derive(Debug, Default)]
struct SignIn {
    /// URL of the protected resource metadata.
    metadata: Option<String>,
    /// Scopes that every token needs.
    scopes: Vec<String>,
}

impl SignIn {
    /// Returns the sign-in data for the resource at a path.
    fn at(callers: &Callers, path: &str) -> Self {
        let authenticator = callers.authenticator();
        let settings = authenticator.settings();
        if !settings.has_authorization_server() {
            // A client that sees a resource URL tries to register and shows the failure to its user.
            return Self::default();
        }
        Self { metadata: metadata_url(callers.public_url.as_ref(), path), scopes: settings.scopes.clone() }
    }
}

fn denial_refusal(denial: &Denial, sign_in: &SignIn) -> Refusal {
    let status = denial.status();
    let (code, json_rpc) = match status {
        StatusCode::FORBIDDEN => ("forbidden", FORBIDDEN),
        StatusCode::SERVICE_UNAVAILABLE => ("authorization_unavailable", AUTHORIZATION_UNAVAILABLE),
        _ => ("unauthorized", UNAUTHORIZED),
    };
    Refusal {
        retry_after: denial.retry_after().map(|after| after.as_secs().max(1)),
        challenge: challenge(denial, sign_in),
        resource_metadata: sign_in.metadata.clone(),
        ..Refusal::new(status, code, json_rpc, denial.to_string())
    }
}

/// JSON-RPC error codes, from the range for implementation-defined server errors.
const UNAUTHORIZED: i32 = -32_001;
pub(crate) const FORBIDDEN: i32 = -32_003;
const AUTHORIZATION_UNAVAILABLE: i32 = -32_004;

/// Returns the `WWW-Authenticate` header of a denial (RFC 6750, RFC 9728).
fn challenge(denial: &Denial, sign_in: &SignIn) -> Option<HeaderValue> {
    if denial.status() == StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let mut parameters = Vec::new();
    parameters.extend(denial.error().map(|error| format!("error=\"{error}\"")));
    parameters
        .extend(denial.error().map(|_| format!("error_description=\"{}\"", quotable(&denial.to_string()))));
    let scopes = match denial {
        Denial::AskForScopes { needed } => needed,
        _ => &sign_in.scopes,
    };
    if !scopes.is_empty() {
        parameters.push(format!("scope=\"{}\"", quotable(&scopes.join(" "))));
    }
    parameters.extend(sign_in.metadata.as_ref().map(|url| format!("resource_metadata=\"{url}\"")));
    let challenge =
        if parameters.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", parameters.join(", ")) };
    HeaderValue::from_str(&challenge).ok()
}

/// Removes the characters that RFC 6750 does not allow in a quoted value.
fn quotable(text: &str) -> String {
    text.chars().filter(|c| (' '..='~').contains(c) && *c != '"' && *c != '\\').collect()
}

fn too_much_unsent() -> Refusal {
    let problem = "too many responses to you are not read; read them before you call again";
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too_many_calls", RATE_LIMITED, problem.to_owned()).after(1)
}

fn admission_refusal(reason: AdmissionError) -> Refusal {
    match reason {
        AdmissionError::NoSources => {
            Refusal::new(StatusCode::FORBIDDEN, "no_sources", FORBIDDEN, reason.to_string())
        }
        AdmissionError::TooManyCalls => {
            let status = StatusCode::TOO_MANY_REQUESTS;
            Refusal::new(status, "too_many_calls", RATE_LIMITED, reason.to_string()).after(1)
        }
    }
}
