//! The page with the text that `fetch` gives, and the page of a link: everything that comes from a record is text.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::response::Response;
use fetchwell_callers::LINK;
use maud::html;
use serde::Deserialize;

use crate::pages::layout::{Page, Visitor, time, warning};

/// A record as `fetch` gives it.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    title: String,
    text: String,
    url: String,
    metadata: BTreeMap<String, String>,
}

/// Parts of a page around the record.
#[derive(Debug, Clone)]
pub(super) struct PageSurround<'a> {
    /// Path of the page for people.
    pub(super) readable: Option<String>,
    /// Path of the part before.
    pub(super) before: Option<String>,
    /// Path of the next part.
    pub(super) next: Option<String>,
    /// The record's own page elsewhere.
    pub(super) elsewhere: Option<&'a str>,
    /// Visitor of the page.
    pub(super) visitor: Visitor,
}

impl Document {
    /// Returns the id of the next part.
    pub(super) fn next(&self) -> Option<&str> {
        self.metadata.get("next").map(String::as_str)
    }

    /// Returns the warning of `fetch`, such as that the text changed after the part before.
    fn warning(&self) -> &[String] {
        self.metadata.get("warning").map(std::slice::from_ref).unwrap_or_default()
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// Metadata of a record with labels for people.
const FACTS: [(&str, &str); 5] = [
    ("display_name", "Account"),
    ("connector_key", "Kind"),
    ("stream", "Stream"),
    ("authored_at", "Written"),
    ("emitted_at", "Seen"),
];

/// Renders the text of a record.
pub(super) fn record(document: &Document, around: &PageSurround<'_>) -> Response {
    let facts = FACTS.into_iter().filter_map(|(key, label)| Some((label, document.metadata.get(key)?)));
    let facts: Vec<(&str, &String)> = facts.collect();
    let body = html! {
        // The language of a record is unknown.
        h1 dir="auto" lang="" { (document.title) }
        @if !facts.is_empty() {
            dl class="facts" { @for (label, value) in facts { dt { (label) } dd { (time(value)) } } }
        }
        (warning(document.warning()))
        // Browsers drop the first line break in `pre`.
        pre id="record" class="text" dir="auto" lang="" { "\n" (document.text) }
        nav class="pages" aria-label="This record" {
            @if let Some(before) = &around.before { a href=(before) rel="prev" { "Previous part" } }
            @if let Some(next) = &around.next { a href=(next) rel="next" { "Next part" } }
            @if let Some(readable) = &around.readable { a href=(readable) { "Readable view" } }
            @if let Some(elsewhere) = around.elsewhere {
                a href=(elsewhere) rel="noopener noreferrer" { "Open it where it is from" }
            }
        }
    };
    Page { title: &document.title, section: None, visitor: around.visitor }.render(StatusCode::OK, &body)
}

/// Renders the page for a followed link, with a button that begins the session. Programs that fetch previews of links do not
/// press it.
pub(super) fn opening(path: &str, key: &str) -> Response {
    let body = html! {
        h1 { "Open this record" }
        p { "The link you followed opens one record. It stays open in this browser." }
        form class="form" method="post" action=(path) {
            input type="hidden" name=(LINK) value=(key);
            button type="submit" autofocus { "Open the record" }
        }
    };
    Page { title: "Open this record", section: None, visitor: Visitor::Unknown }.render(StatusCode::OK, &body)
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn record_content_is_escaped() {
        let hostile = "<script>alert(1)</script>\"'&</pre><img src=x onerror=alert(1)>";
        let metadata = BTreeMap::from([("display_name".to_owned(), hostile.to_owned())]);
        let document =
            Document { title: hostile.to_owned(), text: hostile.to_owned(), url: String::new(), metadata };
        let (readable, before, next) = (None, None, None);
        let around = PageSurround { readable, before, next, elsewhere: None, visitor: Visitor::Unknown };
        let response = record(&document, &around);
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let html = String::from_utf8(body.to_vec()).unwrap();
        assert!(!html.contains("<script>alert") && !html.contains("<img"), "{html}");
        assert_eq!(html.matches("&lt;script&gt;").count(), 4, "{html}");
        // A text that begins with a line break keeps it.
        assert!(
            html.contains("<pre id=\"record\" class=\"text\" dir=\"auto\" lang=\"\">\n&lt;script"),
            "{html}"
        );
    }
}
