//! The search page: a form with facets, and the records that match, in the same order as the tool `search` has them.
//!
//! * `request`: the parameters of the page
//! * `choices`: accounts, streams and kinds to choose from
//! * `matches`: reads of the source, and cursors
//! * `highlight`: words of the query in titles and passages
//! * `view`, `overview`: HTML

mod choices;
mod highlight;
mod matches;
mod overview;
mod request;
mod view;

use axum::http::request::Parts;

use self::choices::Choices;
use self::matches::find;
use self::request::SearchRequest;
use super::access::{PageContent, Pages, Visit};
use super::layout::Section;

/// Returns the content of the search page: results, or an overview without a query.
pub(super) async fn search_page(pages: &Pages, visit: &Visit, parts: &Parts) -> PageContent {
    let request = SearchRequest::from_query(parts.uri.query().unwrap_or_default());
    let schema = visit.toolbox.source().schema().await;
    let choices = Choices::new(schema.as_ref().ok());
    if request.is_empty() {
        let mcp = pages.called_url(&parts.headers, &parts.uri, &parts.extensions, "/mcp");
        let main = overview::overview(&mcp, visit, &choices, schema.as_ref().err());
        return PageContent::new("fetchwell", Section::Search, main);
    }
    let title = match request.q.as_str() {
        "" => "Search".to_owned(),
        q => format!("{q} · Search"),
    };
    match find(&visit.toolbox, &request, &choices).await {
        Ok(found) => PageContent::new(&title, Section::Search, view::results(&request, &choices, &found)),
        Err(error) => PageContent::new(&title, Section::Search, view::failure(&request, &choices, &error))
            .with_error(error.status, "source_error"),
    }
}
