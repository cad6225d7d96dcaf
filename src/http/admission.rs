//! Who gets in: every request to records brings the tools of its caller to whoever answers it, or goes no further.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use secrecy::{ExposeSecret, SecretString};

use super::answers::sent_bytes;
use super::refusal::{Refusal, size_of};
use super::served::{Callers, Served};
use super::well_known::metadata_url;
use crate::access::{Admitted, Denial, authorization};
use crate::telemetry::{Endpoint, Refused, RequestId, Telemetry};
use crate::tools::{NoTurn, Toolbox, Turn};

/// The tools of the caller of a request.
pub(super) fn toolbox_of(extensions: &Extensions) -> Option<Arc<Toolbox>> {
    extensions.get::<Arc<Toolbox>>().cloned()
}

/// Passes on what a caller may ask, with their tools and without their token.
pub(super) async fn admitted(
    State((served, telemetry)): State<(Served, Telemetry)>,
    mut request: Request,
    next: Next,
) -> Response {
    let callers = match served {
        Served::Everybody(live) => {
            request.extensions_mut().insert(live.now());
            return next.run(request).await;
        }
        Served::Callers(callers) => callers,
    };
    match let_in(&callers, request.headers(), request.uri().path()).await {
        Ok((caller, Turn { toolbox, permit })) => {
            // Nobody behind needs it, and what nobody has nobody can log.
            request.headers_mut().remove(header::AUTHORIZATION);
            request.extensions_mut().insert(toolbox);
            request.extensions_mut().insert(caller);
            let response = next.run(request).await;
            drop(permit);
            response
        }
        Err(refusal) => {
            let id = request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::fresh);
            // What it was for is not looked at: a path that nobody serves is no endpoint.
            let record = telemetry.call(Endpoint::route("/{any}"), Some(id.to_string()));
            let code = refusal.code;
            let response = refusal.response(request.uri().path(), &id);
            let bytes = sent_bytes(request.method(), size_of(&response));
            record.refused(code, Refused { bytes, reason: None });
            response
        }
    }
}

async fn let_in(callers: &Callers, headers: &HeaderMap, path: &str) -> Result<(Admitted, Turn), Refusal> {
    let metadata = || metadata_url(callers.public_url.as_ref(), path);
    let caller = admit(callers, headers).await.map_err(|denial| of_denial(&denial, metadata()))?;
    let turn = callers.grants.turn(&caller).await.map_err(of_no_turn)?;
    Ok((caller, turn))
}

/// Who shows the token in these headers.
pub(super) async fn admit(callers: &Callers, headers: &HeaderMap) -> Result<Admitted, Denial> {
    callers.access().admit(authorization(headers)?).await
}

/// Who has this token, which came in another way.
pub(super) async fn admit_token(callers: &Callers, token: &SecretString) -> Result<Admitted, Denial> {
    let shown = SecretString::from(format!("Bearer {}", token.expose_secret()));
    callers.access().admit(Some(shown.expose_secret())).await
}

fn of_denial(denial: &Denial, metadata: Option<String>) -> Refusal {
    let status = denial.status();
    let (code, title, json_rpc) = match status {
        StatusCode::FORBIDDEN => ("forbidden", "Forbidden", -32_003),
        StatusCode::SERVICE_UNAVAILABLE => {
            ("authorization_unavailable", "Authorization unavailable", -32_004)
        }
        _ => ("unauthorized", "Unauthorized", -32_001),
    };
    Refusal {
        status,
        code,
        title,
        json_rpc,
        problem: denial.to_string(),
        retry_after: denial.retry_after().map(|after| after.as_secs().max(1)),
        challenge: challenge(denial, metadata.as_deref()),
        resource_metadata: metadata,
    }
}

/// `WWW-Authenticate` of a denial (RFC 6750, RFC 9728).
fn challenge(denial: &Denial, metadata: Option<&str>) -> Option<HeaderValue> {
    if denial.status() == StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let mut parameters = Vec::new();
    parameters.extend(denial.error().map(|error| format!("error=\"{error}\"")));
    let described = |_| format!("error_description=\"{}\"", quotable(&denial.to_string()));
    parameters.extend(denial.error().map(described));
    if let Denial::AskForScopes { needed } = denial {
        parameters.push(format!("scope=\"{}\"", quotable(&needed.join(" "))));
    }
    parameters.extend(metadata.map(|url| format!("resource_metadata=\"{url}\"")));
    let challenge = match parameters.is_empty() {
        true => "Bearer".to_owned(),
        false => format!("Bearer {}", parameters.join(", ")),
    };
    HeaderValue::from_str(&challenge).ok()
}

/// What RFC 6750 lets stand between quotes.
fn quotable(text: &str) -> String {
    let is_allowed = |c: &char| (' '..='~').contains(c) && *c != '"' && *c != '\\';
    text.chars().filter(is_allowed).collect()
}

fn of_no_turn(reason: NoTurn) -> Refusal {
    let (status, code, title, json_rpc, retry_after) = match reason {
        NoTurn::NoSources => (StatusCode::FORBIDDEN, "no_sources", "Forbidden", -32_003, None),
        NoTurn::TooMany => {
            (StatusCode::TOO_MANY_REQUESTS, "too_many_calls", "Rate limited", -32_029, Some(1))
        }
    };
    let problem = reason.to_string();
    Refusal { status, code, title, json_rpc, problem, retry_after, challenge: None, resource_metadata: None }
}
