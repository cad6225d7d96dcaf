//! The start page: the search form, the accounts, and how clients connect.

use fetchwell_core::record::ConnectionSchema;
use fetchwell_source::SourceError;
use maud::{Markup, html};

use super::choices::{Choices, label};
use super::request::SearchRequest;
use super::view::form;
use crate::pages::access::Visit;
use crate::pages::layout::{Visitor, quantity, warning};

/// Maximum number of accounts on the start page.
const MAX_ACCOUNTS: usize = 40;

/// Maximum number of streams of an account on the start page.
const MAX_STREAMS: usize = 12;

/// Renders the start page.
pub(super) fn overview(
    mcp: &str,
    visit: &Visit,
    choices: &Choices<'_>,
    problem: Option<&SourceError>,
) -> Markup {
    let mut problems: Vec<String> = problem.map(ToString::to_string).into_iter().collect();
    problems.extend(choices.unavailable.iter().map(|source| format!("source {source} did not answer")));
    html! {
        h1 { "Search your records" }
        @if visit.visitor == Visitor::Local { (open_warning()) }
        (warning(&problems))
        (form(&SearchRequest::default(), choices))
        h2 { "Accounts" }
        (accounts(choices.connections()))
        h2 { "Connect a client" }
        p { "Add this URL to an AI client as an MCP server (Streamable HTTP). ChatGPT takes " code { (mcp) "/openai" } "." }
        pre class="box" { (mcp) }
    }
}

/// Renders the warning that other users of the machine can open the page.
fn open_warning() -> Markup {
    html! {
        div class="note warning" {
            p { "Every user and program of this machine can open this page. To require a token, run " code { "fetchwell token new --name me" } " and add the lines that it prints, and " code { "public_url" } ", to the configuration of " code { "fetchwell serve" } "." }
        }
    }
}

fn accounts(connections: &[ConnectionSchema]) -> Markup {
    let more = connections.len().saturating_sub(MAX_ACCOUNTS);
    html! {
        @if connections.is_empty() {
            p { "There are no records yet. Add a folder with " code { "fetchwell add FOLDER" } "." }
        } @else {
            div class="scroll" tabindex="0" role="group" aria-label="Accounts" {
                table {
                    thead { tr { th scope="col" { "Account" } th scope="col" { "Kind" } th scope="col" { "Streams" } th scope="col" class="number" { "Records" } } }
                    tbody { @for connection in connections.iter().take(MAX_ACCOUNTS) { (account(connection)) } }
                }
            }
            @if more > 0 { p { a href="/sources" { "And " (more) " more accounts" } } }
        }
    }
}

fn account(connection: &ConnectionSchema) -> Markup {
    let id = connection.connection_id.as_str();
    let browse = |stream: &str| {
        SearchRequest { account: id.to_owned(), stream: stream.to_owned(), ..SearchRequest::default() }.path()
    };
    let more = connection.streams.len().saturating_sub(MAX_STREAMS);
    html! {
        tr {
            th scope="row" { a href=(browse("")) { bdi lang="" { (label(connection)) } } }
            td { (connection.connector_key.as_deref().unwrap_or("–")) }
            td {
                @for (index, stream) in connection.streams.iter().take(MAX_STREAMS).enumerate() {
                    @if index > 0 { ", " }
                    a href=(browse(stream.name.as_str())) { (stream.name.as_str()) }
                }
                @if more > 0 { " and " (more) " more" }
            }
            td class="number" { (record_count(connection)) }
        }
    }
}

/// Writes the number of records of a connection, if all of its streams have one.
fn record_count(connection: &ConnectionSchema) -> String {
    let counts: Option<Vec<u64>> = connection.streams.iter().map(|stream| stream.record_count).collect();
    counts.map_or_else(|| "–".to_owned(), |counts| quantity(counts.iter().sum()))
}
