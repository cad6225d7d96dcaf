//! `/sources`: accounts with their numbers of records, freshness, synchronization and failures.
//!
//! Only connections and sources of the visitor's grant are shown. Imports that the server keeps current have a state; of other
//! accounts the time of the newest record is shown.
//!
//! Visitors sign in here to MCP servers that are read with the sign-in of each caller.
//!
//! * `paths`: paths of the page
//! * `sign_ins`: sign-ins of visitors
//! * `freshness`: times of the newest records
//! * `view`: HTML

mod freshness;
mod paths;
mod sign_ins;
mod view;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{get, post};
use fetchwell_source::BoundSource;
use fetchwell_telemetry::ImportProgress;

pub use self::paths::{SIGNED_IN, SOURCES};

use self::freshness::newest_records;
use self::paths::{BEGIN_SIGN_IN, SIGN_OUT_OF_SOURCE};
use self::sign_ins::{begin_sign_in, finish_sign_in, sign_ins_of, sign_out_of_source};
use self::view::{SourcesView, sources};
use super::access::{PageContent, Pages, Visit, serve_page};
use super::layout::Section;
use crate::error::RequestError;

/// Returns the routes of the page and of its forms.
pub(super) fn routes(pages: Pages) -> Router {
    Router::new()
        .route(SOURCES, get(show))
        .route(BEGIN_SIGN_IN, post(begin_sign_in))
        .route(SIGNED_IN, get(finish_sign_in))
        .route(SIGN_OUT_OF_SOURCE, post(sign_out_of_source))
        .with_state(pages)
}

/// Answers `GET /sources`.
async fn show(State(pages): State<Pages>, request: Request) -> Response {
    serve_page(&pages, SOURCES, request, |pages, visit, request| Box::pin(content(pages, visit, request)))
        .await
}

async fn content(pages: &Pages, visit: &Visit, _request: &Parts) -> PageContent {
    let source = visit.toolbox.source();
    let (title, section) = ("Accounts and sources", Section::Sources);
    let sign_ins = sign_ins_of(pages, visit).await;
    let schema = match source.schema().await {
        Ok(schema) => schema,
        Err(error) => {
            let error = RequestError::from(error);
            return PageContent::new(title, section, view::failure(&error, &sign_ins))
                .with_error(error.status, "source_error");
        }
    };
    let newest = newest_records(source, &schema.connections).await;
    let imports = pages.telemetry.imports();
    let imports: Vec<ImportProgress> =
        imports.into_iter().filter(|import| is_readable(source, &import.source)).collect();
    let shown = SourcesView {
        schema: &schema,
        sign_ins: &sign_ins,
        newest: &newest,
        imports: &imports,
        circuits: &source.shared().circuits(),
        backends: &source.shared().source().backends().await,
    };
    PageContent::new(title, section, sources(&shown))
}

/// Returns true if a grant has the source with a name.
fn is_readable(source: &BoundSource, name: &str) -> bool {
    let named = name.parse().ok().and_then(|name| source.named(&name));
    named.is_some() || (!source.is_federation() && source.name().as_str() == name)
}
