//! HTML of the page with accounts and sources.

use std::collections::HashMap;

use fetchwell_core::handle::{ConnectionId, SourceName};
use fetchwell_core::record::{ConnectionSchema, Schema};
use fetchwell_source::federation::{CircuitReport, CircuitState};
use fetchwell_source::{BackendStatus, SessionState};
use fetchwell_telemetry::{ImportProgress, ImportState};
use fetchwell_tools::{SignInState, SourceSignIn};
use maud::{Markup, html};

use super::paths::{BEGIN_SIGN_IN, SIGN_OUT_OF_SOURCE};
use crate::error::RequestError;
use crate::pages::access::parameters;
use crate::pages::layout::{quantity, sentence, time};

/// Maximum number of accounts on the page.
const MAX_ACCOUNTS: usize = 500;

/// Maximum number of streams of an account on the page.
const MAX_STREAMS: usize = 40;

/// Content of the page.
pub(super) struct SourcesView<'a> {
    pub(super) schema: &'a Schema,
    /// Sources that the visitor signs in to.
    pub(super) sign_ins: &'a [SourceSignIn],
    /// Time of the newest record of connections.
    pub(super) newest: &'a HashMap<ConnectionId, String>,
    /// Imports that the server keeps current.
    pub(super) imports: &'a [ImportProgress],
    pub(super) circuits: &'a [CircuitReport],
    /// Places of the sources, with the sessions of MCP servers.
    pub(super) backends: &'a [BackendStatus],
}

/// Renders the page.
pub(super) fn sources(view: &SourcesView<'_>) -> Markup {
    let connections = &view.schema.connections;
    html! {
        h1 { "Accounts and sources" }
        (unavailable(view.schema))
        (sign_ins(view.sign_ins))
        @if connections.is_empty() {
            p { "There are no accounts yet. Add a folder with " code { "fetchwell add FOLDER" } "." }
        }
        @for connection in connections.iter().take(MAX_ACCOUNTS) { (account(connection, view)) }
        @if connections.len() > MAX_ACCOUNTS {
            p class="soft" { "And " (connections.len() - MAX_ACCOUNTS) " more accounts." }
        }
        (sessions(view.backends))
        (circuits(view.circuits))
    }
}

/// Renders the sessions with MCP servers.
fn sessions(backends: &[BackendStatus]) -> Markup {
    let sessions: Vec<_> =
        backends.iter().filter_map(|backend| Some((&backend.source, backend.session.as_ref()?))).collect();
    html! {
        @if !sessions.is_empty() {
            h2 { "MCP servers" }
            div class="scroll" tabindex="0" role="group" aria-label="MCP servers" {
                table {
                    thead { tr {
                        th scope="col" { "Source" } th scope="col" { "State" }
                        th scope="col" class="number" { "Last call" } th scope="col" { "Last problem" }
                    } }
                    tbody {
                        @for (source, session) in sessions {
                            tr {
                                th scope="row" { bdi lang="" { (source) } }
                                td { (described_session(session.state)) }
                                td class="number" {
                                    @if let Some(latency) = session.latency_ms { (quantity(latency)) " ms" } @else { "–" }
                                }
                                td { (session.problem.as_deref().unwrap_or("none")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn described_session(state: SessionState) -> &'static str {
    match state {
        SessionState::Open => "open",
        SessionState::Opening => "starting",
        SessionState::Failed => "not available",
        SessionState::NotOpened => "not called yet",
    }
}

/// Renders the page if no source can be read.
pub(super) fn failure(error: &RequestError, signed_in: &[SourceSignIn]) -> Markup {
    html! {
        h1 { "Accounts and sources" }
        div class="note warning" role="alert" {
            p { (sentence(error.message())) }
            @if let Some(hint) = error.hint() { p { (hint) } }
        }
        (sign_ins(signed_in))
    }
}

/// Renders the sources that the visitor signs in to.
fn sign_ins(sign_ins: &[SourceSignIn]) -> Markup {
    html! {
        @if !sign_ins.is_empty() {
            h2 { "Your sign-ins" }
            div class="scroll" tabindex="0" role="group" aria-label="Your sign-ins" {
                table {
                    thead { tr { th scope="col" { "Source" } th scope="col" { "State" } th scope="col" { "Action" } } }
                    tbody { @for sign_in in sign_ins { (sign_in_row(sign_in)) } }
                }
            }
        }
    }
}

fn sign_in_row(sign_in: &SourceSignIn) -> Markup {
    let SourceSignIn { source, label, state } = sign_in;
    let (described, class) = match state {
        SignInState::SignedIn => ("Signed in", "good"),
        SignInState::NotSignedIn => ("Not signed in", "soft"),
        SignInState::Expired => ("The sign-in has expired", "bad"),
        SignInState::Unknown(problem) => (problem.as_str(), "bad"),
    };
    let has_tokens = matches!(state, SignInState::SignedIn | SignInState::Expired);
    html! {
        tr {
            th scope="row" { bdi lang="" { (label.as_deref().unwrap_or(source.as_str())) } }
            td class=(class) { (described) }
            td {
                (sign_in_form(source, BEGIN_SIGN_IN, if has_tokens { "Sign in again" } else { "Sign in" }))
                @if has_tokens { (sign_in_form(source, SIGN_OUT_OF_SOURCE, "Sign out")) }
            }
        }
    }
}

fn sign_in_form(source: &SourceName, action: &str, button: &str) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name="source" value=(source.as_str());
            button class="plain" type="submit" aria-label={ (button) ": " (source.as_str()) } { (button) }
        }
    }
}

fn unavailable(schema: &Schema) -> Markup {
    html! {
        @if !schema.unavailable.is_empty() {
            div class="note warning" role="alert" {
                ul {
                    @for missing in &schema.unavailable {
                        li {
                            "Source " bdi { (missing.source.as_str()) } " did not answer (" (missing.code) ")."
                            @if let Some(hint) = &missing.hint { " " (hint) }
                        }
                    }
                }
            }
        }
    }
}

fn account(connection: &ConnectionSchema, view: &SourcesView<'_>) -> Markup {
    let id = connection.connection_id.as_str();
    let label = connection.display_name.as_deref().filter(|label| !label.trim().is_empty()).unwrap_or(id);
    let import = view.imports.iter().find(|import| import.connection == id);
    let browse = |stream: &str| format!("/{}", parameters(&[("account", id), ("stream", stream)]));
    let more = connection.streams.len().saturating_sub(MAX_STREAMS);
    html! {
        section class="account" {
            h2 { a href=(browse("")) { bdi lang="" { (label) } } }
            p class="meta soft" {
                @if let Some(kind) = &connection.connector_key { span { (kind) } }
                span { code { (id) } }
                @if let Some(source) = &connection.source { span { "source " bdi { (source.as_str()) } } }
                @if let Some(newest) = view.newest.get(&connection.connection_id) { span { "newest record " (time(newest)) } }
            }
            @if let Some(import) = import { (synchronization(import)) }
            div class="scroll" tabindex="0" role="group" aria-label={ "Streams of " (label) } {
                table {
                    thead { tr { th scope="col" { "Stream" } th scope="col" class="number" { "Records" } } }
                    tbody {
                        @for stream in connection.streams.iter().take(MAX_STREAMS) {
                            tr {
                                th scope="row" { a href=(browse(stream.name.as_str())) { (stream.name.as_str()) } }
                                td class="number" { (stream.record_count.map_or_else(|| "–".to_owned(), quantity)) }
                            }
                        }
                    }
                }
            }
            @if more > 0 { p class="soft small" { "And " (more) " more streams." } }
        }
    }
}

fn synchronization(import: &ImportProgress) -> Markup {
    let (state, class) = match import.state {
        ImportState::Starting => ("Not synchronized yet", "soft"),
        ImportState::Synchronizing => ("Synchronizing", "soft"),
        ImportState::Current => ("Synchronized", "good"),
        ImportState::Held => ("Held: much is missing at the origin, so nothing was deleted", "bad"),
        ImportState::Waiting => ("Another process synchronizes it", "soft"),
        ImportState::Failing => ("The last synchronization failed", "bad"),
    };
    html! {
        p class="small" {
            strong class=(class) { (state) }
            @if let Some(problem) = import.problem { " (" code { (problem) } ")" }
            @if let Some(last) = &import.last_sync { ", last at " (time(last)) }
            @if import.failures > 0 { ", " (quantity(import.failures)) " failed attempts" }
            @if import.held > 0 { ", " (quantity(import.held)) " records held" }
        }
    }
}

fn circuits(circuits: &[CircuitReport]) -> Markup {
    html! {
        @if !circuits.is_empty() {
            h2 { "Sources" }
            div class="scroll" tabindex="0" role="group" aria-label="Sources" {
                table {
                    thead { tr { th scope="col" { "Source" } th scope="col" { "State" } th scope="col" class="number" { "Failures in a row" } th scope="col" { "Next attempt" } } }
                    tbody {
                        @for circuit in circuits {
                            tr {
                                th scope="row" { bdi { (circuit.source.as_str()) } }
                                @match circuit.state {
                                    CircuitState::Closed => td { "Answers" },
                                    CircuitState::Open => td class="bad" { "Not called after failures" },
                                    CircuitState::HalfOpen => td { "Is tried again" },
                                }
                                td class="number" { (circuit.failures) }
                                td { @if circuit.asked_again_after > 0 { "in " (circuit.asked_again_after) " s" } @else { "–" } }
                            }
                        }
                    }
                }
            }
        }
    }
}
