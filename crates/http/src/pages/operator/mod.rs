//! `/operator`: calls, sources, imports, budgets and configuration of this process, for the operator of the server.
//!
//! Without authentication, every browser on this machine may open it; with authentication, a session of a token with
//! `admin = true`. Nothing of a query, a record or a token is shown. The numbers are of this process: each replica has its own.
//! Only calls over time are those of all processes with the same state directory.
//!
//! * `window`: the time that is shown
//! * `numbers`: calls, latencies, sizes and outcomes
//! * `over_time`: calls over time
//! * `processes`: this process, and the state and databases that it shares with others
//! * `state`: sources, circuit breakers, imports, vectors and budgets
//! * `caches`: hits and misses of caches
//! * `configuration`: the configuration file without its secrets
//! * `chart`: charts and bars

mod caches;
mod chart;
mod configuration;
mod numbers;
mod over_time;
mod processes;
mod state;
mod window;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use fetchwell_telemetry::RECORDS_IN_MEMORY;
use jiff::Timestamp;
use maud::html;

pub(super) use self::window::OPERATOR;

use self::over_time::CallsOverTime;
use self::window::Window;
use super::access::{PageContent, Pages, Visit, serve_page};
use super::layout::{Section, Visitor};
use crate::ops::shared_state::SharedStateHealth;

/// Number of calls in the list of recent ones.
const RECENT: usize = 50;

/// Shows the page.
pub(super) async fn show(State(pages): State<Pages>, request: Request) -> Response {
    serve_page(&pages, OPERATOR, request, |pages, visit, request| Box::pin(content(pages, visit, request)))
        .await
}

/// Returns the content of the page, or a refusal for visitors who are not operators.
async fn content(pages: &Pages, visit: &Visit, request: &Parts) -> PageContent {
    if !matches!(visit.visitor, Visitor::Local | Visitor::Operator) {
        let main = html! {
            h1 { "Only for operators" }
            p { "This page needs a token with " code { "admin = true" } ". Sign out, and sign in with such a token." }
        };
        return PageContent::new("Only for operators", Section::Operator, main)
            .with_error(StatusCode::FORBIDDEN, "forbidden");
    }
    let window = Window::from_query(request.uri.query().unwrap_or_default());
    let records = pages.telemetry.latest(RECORDS_IN_MEMORY);
    let over_time = CallsOverTime::read(&pages.telemetry, &records, Timestamp::now(), window).await;
    let sources = state::SourceStates::read(&pages.served, &visit.toolbox).await;
    let Pages { shared_state, rate_limiter, key_mismatch, .. } = pages;
    let shared = SharedStateHealth::read(shared_state.as_ref(), rate_limiter, key_mismatch).await;
    let main = html! {
        h1 { "This server" }
        (numbers::summary(&pages.telemetry.aggregates(), records.len()))
        (over_time.render())
        (numbers::endpoints(&records))
        (numbers::outcomes(&records))
        (processes::processes(&processes::ProcessName::read(), shared.as_ref(), sources.backends()))
        (state::sources(&sources))
        (state::imports(&pages.telemetry.imports()))
        (state::embeddings(&pages.telemetry.embeddings()))
        (state::budgets(&records))
        (caches::caches(&pages.served.cache_lookups()))
        (numbers::recent(&records, RECENT))
        (configuration::configuration(&pages.configuration.get()))
    };
    PageContent::new("Operator", Section::Operator, main)
}
