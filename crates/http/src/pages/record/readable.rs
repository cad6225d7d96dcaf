//! The page of a record for people.

use axum::http::StatusCode;
use axum::response::Response;
use fetchwell_callers::RecordPages;
use fetchwell_core::fit::clip;
use fetchwell_core::handle::Handle;
use fetchwell_core::record::{Record, WebLink, authored_at, fallback_title, own_link, own_title};
use fetchwell_core::saturate::saturated;
use fetchwell_source::RecordQuery;
use fetchwell_source::documents::{DOCUMENTS_STREAM, Uuid};
use fetchwell_tools::documents::ReadableProjects;
use fetchwell_tools::{Toolbox, run_blocking};
use maud::{Markup, html};
use percent_encoding::utf8_percent_encode;
use tokio::time::timeout;

use super::content::{Fact, RecordFields, TextPage, render_values};
use super::neighbors::{Neighbor, Neighbors};
use crate::encoding::SEGMENT;
use crate::pages::access::parameters;
use crate::pages::layout::{Page, Visitor, copy_button, quantity, time};

/// Maximum length of a title, in bytes of JSON.
const MAX_TITLE_BYTES: usize = 300;

/// Number of facts that are shown at first.
const MAX_SHOWN_FACTS: usize = 12;

/// Fields that are shown below the others, because they say little to people.
const TECHNICAL: [&str; 8] =
    ["id", "message_id", "in_reply_to", "references", "from.address", "from.name", "content_hash", "url"];

/// Returns the page of a record, or `None` if the record cannot be read. `is_elsewhere` returns true for a link that leads to
/// another site.
pub(super) async fn readable_page(
    toolbox: &Toolbox,
    handle: &Handle,
    number: usize,
    visitor: Visitor,
    is_elsewhere: impl Fn(&str) -> bool,
) -> Option<Response> {
    let query = RecordQuery::new(handle.address().clone());
    let record = timeout(toolbox.call_deadline(), toolbox.source().record(&query)).await.ok()?.ok()?;
    let handle = Handle::mint(&record.address)?;
    // A session that follows links may show this record, and no other.
    let is_whole_grant = matches!(visitor, Visitor::Local | Visitor::SignedIn);
    let (neighbors, chunks) = if is_whole_grant {
        tokio::join!(Neighbors::read(toolbox, &record), chunks_path(toolbox, &record))
    } else {
        (Neighbors::default(), None)
    };
    let elsewhere = own_link(&record.data).filter(|link| is_elsewhere(link.as_str()));
    let around = Surroundings { handle, neighbors, elsewhere, has_model_page: is_whole_grant, chunks };
    let (title, body) = run_blocking(move || Ok(render(record, &around, number))).await.ok()?;
    Some(Page { title: &title, section: None, visitor }.render(StatusCode::OK, &body))
}

/// Parts of a page around the content of a record.
struct Surroundings {
    handle: Handle,
    neighbors: Neighbors,
    /// The record's own page on another site.
    elsewhere: Option<WebLink>,
    /// True if the visitor may open the page with the answer of `fetch`.
    has_model_page: bool,
    /// Path of the chunks of a project's document.
    chunks: Option<String>,
}

/// Returns the path of the page with the chunks of a record, if it is a document of a project.
async fn chunks_path(toolbox: &Toolbox, record: &Record) -> Option<String> {
    let connection =
        record.address.connection.as_ref().filter(|_| record.address.stream.as_str() == DOCUMENTS_STREAM)?;
    let document: Uuid = record.address.record.as_str().parse().ok()?;
    let projects = ReadableProjects::in_source(toolbox.source()).await.ok()?;
    let found = projects.find(connection.as_str()).await.ok()?;
    found
        .has_connection(connection)
        .then(|| format!("/projects/{}/{document}", utf8_percent_encode(connection.as_str(), SEGMENT)))
}

/// Renders a record. Returns its title and its page.
fn render(record: Record, around: &Surroundings, number: usize) -> (String, Markup) {
    let title = title(&record);
    let path = RecordPages::path(&around.handle);
    let about = about(&record);
    let fields = RecordFields::new(record.data, &title);
    let texts = TextPage::new(&fields.texts, number);
    let has_headings = fields.texts.len() > 1;
    let markup = html! {
        // The language of a record is unknown.
        h1 dir="auto" lang="" { (title) }
        (about)
        (facts(&fields.facts))
        (omitted(fields.omitted, &path))
        div id="record" { (texts.render(has_headings)) }
        @if texts.total > 1 { (text_pages(&texts, &path)) }
        @if texts.number == texts.total { (render_values(&fields.values)) }
        (conversation(&around.neighbors.conversation))
        h2 { "This record" }
        p class="row" { code class="handle" { (around.handle.as_str()) } (copy_button(around.handle.as_str(), "Copy handle")) }
        nav class="pages" aria-label="This record" {
            a href={ (path) "?view=text" } { "Plain text" }
            @if around.has_model_page {
                a href={ "/model" (parameters(&[("tool", "fetch"), ("value", around.handle.as_str())])) } { "What the model sees" }
            }
            @if let Some(chunks) = &around.chunks { a href=(chunks) { "Chunks" } }
            @if let Some(link) = &around.elsewhere {
                a href=(link.as_str()) rel="noopener noreferrer" { "Open it where it is from" }
            }
            (beside(around.neighbors.previous.as_ref(), "Previous", "prev"))
            (beside(around.neighbors.next.as_ref(), "Next", "next"))
        }
    };
    (title, markup)
}

fn title(record: &Record) -> String {
    let when = authored_at(&record.data).or(record.emitted_at.as_deref());
    let fallback =
        || fallback_title(record.display_name.as_deref(), Some(record.address.stream.as_str()), when);
    let title = own_title(&record.data).map_or_else(fallback, str::to_owned);
    clip(title.trim(), MAX_TITLE_BYTES)
}

/// Renders the account, the stream and the time of a record in one line.
fn about(record: &Record) -> Markup {
    let connection = record.address.connection.as_ref().map(ToString::to_string);
    let account = record.display_name.clone().filter(|label| !label.trim().is_empty()).or(connection);
    let when = authored_at(&record.data).or(record.emitted_at.as_deref());
    html! {
        p class="meta soft" {
            @if let Some(when) = when { span { (time(when)) } }
            @if let Some(account) = &account { span { bdi lang="" { (account) } } }
            span { (record.address.stream.as_str()) }
            @if let Some(kind) = &record.connector_key { span { (kind) } }
        }
    }
}

fn facts(facts: &[Fact]) -> Markup {
    let (technical, plain): (Vec<&Fact>, Vec<&Fact>) =
        facts.iter().partition(|fact| TECHNICAL.contains(&fact.name.as_str()) || fact.name.ends_with("_id"));
    let (shown, rest) = plain.split_at(plain.len().min(MAX_SHOWN_FACTS));
    let more: Vec<&Fact> = rest.iter().copied().chain(technical).collect();
    html! {
        (fact_list(shown))
        @if !more.is_empty() {
            details class="more" {
                summary { (more.len()) @if more.len() == 1 { " more field" } @else { " more fields" } }
                (fact_list(&more))
            }
        }
    }
}

fn fact_list(facts: &[&Fact]) -> Markup {
    html! {
        @if !facts.is_empty() {
            dl class="facts" {
                @for fact in facts { dt lang="" { bdi { (fact.name) } } dd lang="" { (fact_value(&fact.value)) } }
            }
        }
    }
}

fn fact_value(value: &str) -> Markup {
    match value.parse::<WebLink>() {
        Ok(link) => html! { a href=(link.as_str()) rel="noopener noreferrer nofollow" { (value) } },
        Err(_no_link) => time(value),
    }
}

fn omitted(fields: usize, path: &str) -> Markup {
    html! {
        @if fields > 0 {
            p class="note" {
                (quantity(saturated::<u64>(fields))) " more fields are not shown here. The "
                a href={ (path) "?view=text" } { "plain text" } " has all of them."
            }
        }
    }
}

fn text_pages(texts: &TextPage<'_>, path: &str) -> Markup {
    let page = |number: usize| format!("{path}?page={number}");
    html! {
        nav class="pages" aria-label="Pages of the text" {
            span class="soft" { "Page " (texts.number) " of " (texts.total) }
            @if texts.number > 1 { a href=(page(texts.number - 1)) rel="prev" { "Previous page" } }
            @if texts.number < texts.total { a href=(page(texts.number + 1)) rel="next" { "Next page" } }
        }
    }
}

fn conversation(records: &[Neighbor]) -> Markup {
    html! {
        @if !records.is_empty() {
            h2 { "Conversation" }
            ol class="conversation" {
                @for record in records {
                    li {
                        @if record.is_current { strong { bdi lang="" { (record.label) } } }
                        @else { a href=(record.path) { bdi lang="" { (record.label) } } }
                        span class="meta soft" {
                            @if let Some(author) = &record.author { " · " bdi lang="" { (author) } }
                            @if let Some(when) = &record.time { " · " (time(when)) }
                        }
                    }
                }
            }
        }
    }
}

fn beside(record: Option<&Neighbor>, label: &str, rel: &str) -> Markup {
    html! {
        @if let Some(record) = record {
            a href=(record.path) rel=(rel) { (label) ": " bdi lang="" { (clip(&record.label, 80)) } }
        }
    }
}
