//! `/sources`: accounts with their numbers of records, freshness, synchronization and failures.
//!
//! Only connections and sources of the visitor's grant are shown. Imports that the server keeps current have a state; of other
//! accounts the time of the newest record is shown.
//!
//! * `freshness`: times of the newest records
//! * `view`: HTML

mod freshness;
mod view;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use fetchwell_source::BoundSource;
use fetchwell_telemetry::ImportProgress;

use self::freshness::newest_records;
use self::view::{SourcesView, sources};
use super::access::{PageContent, Pages, Visit, serve_page};
use super::layout::Section;
use crate::error::RequestError;

/// Answers `GET /sources`.
pub(super) async fn show(State(pages): State<Pages>, request: Request) -> Response {
    serve_page(&pages, "/sources", request, |pages, visit, request| Box::pin(content(pages, visit, request)))
        .await
}

async fn content(pages: &Pages, visit: &Visit, _request: &Parts) -> PageContent {
    let source = visit.toolbox.source();
    let (title, section) = ("Accounts and sources", Section::Sources);
    let schema = match source.schema().await {
        Ok(schema) => schema,
        Err(error) => {
            let error = RequestError::from(error);
            return PageContent::new(title, section, view::failure(&error))
                .with_error(error.status, "source_error");
        }
    };
    let newest = newest_records(source, &schema.connections).await;
    let imports = pages.telemetry.imports();
    let imports: Vec<ImportProgress> =
        imports.into_iter().filter(|import| is_readable(source, &import.source)).collect();
    let shown = SourcesView {
        schema: &schema,
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
