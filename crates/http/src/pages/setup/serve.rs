//! Routes of the set-up page, and the server that has only this page.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use fetchwell_telemetry::Telemetry;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;

use super::actions::{SetupActions, SetupChoice};
use super::state::{Progress, SetupWork};
use super::view::{self, SETUP};
use crate::error_format;
use crate::middleware::catch_panic::catch_panic;
use crate::middleware::check_host::{AllowedNames, HostCheck, check_host};
use crate::middleware::refusal::ErrorResponder;
use crate::middleware::refuse_proxied::{ProxyGuard, refuse_proxied};
use crate::middleware::request_id::set_request_id;
use crate::pages::access::parameter;
use crate::pages::layout::{Visitor, problem};
use crate::server::connections::Connections;
use crate::server::forwarded::TrustedProxies;
use crate::server::limits::Limits;

/// Maximum size of the form in bytes.
const MAX_FORM: usize = 256 * 1024;

/// Timeout for receiving the form.
const FORM_WITHIN: Duration = Duration::from_secs(10);

/// Maximum number of connections.
const MAX_CONNECTIONS: u32 = 32;

/// The page with its key.
#[derive(Debug, Clone)]
struct SetupPage {
    work: SetupWork,
    /// Random key that every request must have.
    key: Arc<str>,
}

/// Serves the page at a loopback address until `stop` is cancelled. Only requests with `key` are answered.
///
/// # Errors
///
/// The address of the socket cannot be read, or is not a loopback address.
pub async fn serve_setup(
    listener: TcpListener,
    actions: Arc<dyn SetupActions>,
    key: &str,
    stop: CancellationToken,
) -> io::Result<()> {
    if !listener.local_addr()?.ip().is_loopback() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the address is not a loopback address"));
    }
    let page = SetupPage { work: SetupWork::new(actions), key: key.into() };
    let responder = ErrorResponder::new(Telemetry::in_memory(1), error_format::render);
    let names = HostCheck { names: AllowedNames::default(), responder: responder.clone() };
    let guard = ProxyGuard::new_for_records(TrustedProxies::default(), responder.clone());
    let app = Router::new()
        .route(SETUP, get(show).post(submit))
        .fallback(async || refused())
        .with_state(page)
        .layer(from_fn_with_state(names, check_host))
        .layer(from_fn_with_state(responder, catch_panic))
        .layer(from_fn_with_state(guard, refuse_proxied))
        .layer(from_fn(set_request_id));
    let limits = Limits {
        connections: MAX_CONNECTIONS,
        connections_per_address: MAX_CONNECTIONS,
        ..Limits::default()
    };
    Connections::without_callers(app, limits, stop).serve(listener).await;
    Ok(())
}

/// Shows the plan, the progress or the results.
async fn show(State(page): State<SetupPage>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default().as_bytes();
    if !page.is_key(parameter(query, "key").as_deref()) {
        return refused();
    }
    if parameter(query, "again").is_some() {
        page.work.reset();
    }
    match page.work.progress() {
        Progress::Open => page.plan(StatusCode::OK, None).await,
        Progress::Running => {
            let mut response = view::running(&page.key);
            response.headers_mut().insert(header::REFRESH, HeaderValue::from_static("2"));
            response
        }
        Progress::Done(outcome) => view::done(&outcome, &page.key),
    }
}

/// Starts the chosen imports and changes. Refuses a form of another page, and one with an outdated plan.
async fn submit(State(page): State<SetupPage>, request: Request) -> Response {
    let (request, body) = request.into_parts();
    if !is_from_here(&request.headers) {
        return refused();
    }
    let Ok(Ok(form)) = timeout(FORM_WITHIN, to_bytes(body, MAX_FORM)).await else {
        return problem(
            StatusCode::PAYLOAD_TOO_LARGE,
            "Invalid form",
            "The form is too long or incomplete.",
            Visitor::Unknown,
        );
    };
    if !page.is_key(parameter(&form, "key").as_deref()) {
        return refused();
    }
    match page.work.plan().await {
        Ok(plan) if parameter(&form, "plan").as_deref() != Some(&plan.digest()) => {
            let text = "Something changed since this page was shown. Nothing was done; look at it again.";
            return page.plan(StatusCode::CONFLICT, Some(text)).await;
        }
        Ok(_) => {}
        Err(text) => return view::failed(&text, &page.key),
    }
    let chosen = |name: &str| -> BTreeSet<String> {
        let pairs = form_urlencoded::parse(&form);
        pairs.filter(|(key, _)| key == name).map(|(_, value)| value.into_owned()).collect()
    };
    page.work.start(SetupChoice {
        imports: chosen("import"),
        sources: chosen("source"),
        clients: chosen("client"),
    });
    let mut response = view::running(&page.key);
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(target) = HeaderValue::from_str(&view::path(&page.key)) {
        response.headers_mut().insert(header::LOCATION, target);
    }
    response
}

impl SetupPage {
    async fn plan(&self, status: StatusCode, notice: Option<&str>) -> Response {
        match self.work.plan().await {
            Ok(plan) => view::plan(status, &plan, &self.key, notice),
            Err(text) => view::failed(&text, &self.key),
        }
    }

    fn is_key(&self, key: Option<&str>) -> bool {
        key.is_some_and(|key| key.as_bytes().ct_eq(self.key.as_bytes()).into())
    }
}

/// Returns true if a form was sent from a page of the host that is called.
fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match (text(header::ORIGIN), text(header::HOST)) {
        (Some(origin), Some(host)) => origin.strip_prefix("http://") == Some(host),
        _ => false,
    }
}

fn refused() -> Response {
    let text =
        "Open the address that `fetchwell setup --page` printed. It has a key that changes with each run.";
    problem(StatusCode::FORBIDDEN, "This page needs its key", text, Visitor::Unknown)
}
