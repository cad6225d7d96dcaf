//! The set-up page.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use super::actions::{ClientFileState, PlannedClient, PlannedImport, PlannedSource, SetupOutcome, SetupPlan};
use crate::pages::layout::{Page, Visitor};

/// Path of the page.
pub const SETUP: &str = "/setup";

/// Title of all views.
const TITLE: &str = "Set up fetchwell";

/// Returns the path of the page with its key, which has only characters of URLs.
pub(super) fn path(key: &str) -> String {
    format!("{SETUP}?key={key}")
}

fn render(status: StatusCode, main: &Markup) -> Response {
    Page { title: TITLE, section: None, visitor: Visitor::Unknown }.render(status, main)
}

/// Renders what was found with the form, after a notice if there is one.
pub(super) fn plan(status: StatusCode, plan: &SetupPlan, key: &str, notice: Option<&str>) -> Response {
    let main = html! {
        h1 { (TITLE) }
        @if let Some(notice) = notice { div class="note warning" role="alert" { p { (notice) } } }
        p class="soft" {
            "Looked in " code { (plan.home) } " for mail, notes, exports, MCP servers and clients. Nothing is sent anywhere, and nothing \
             is started or changed before you press the button."
        }
        form method="post" action=(SETUP) {
            input type="hidden" name="key" value=(key);
            input type="hidden" name="plan" value=(plan.digest());
            (imports(plan))
            (sources(plan))
            (clients(&plan.clients))
            @if plan.is_empty() {
                p { strong { "There is nothing left to do." } }
            } @else {
                p { button type="submit" { "Import and change what is chosen" } }
            }
        }
    };
    render(status, &main)
}

fn imports(plan: &SetupPlan) -> Markup {
    html! {
        h2 { "Records" }
        @if plan.imports.is_empty() {
            p { "No mail, notes or exports were found. " code { "fetchwell add PATH" } " imports other files and folders." }
        } @else {
            p { "They are imported into " code { (plan.store) } "." }
            ul class="choices" { @for import in &plan.imports { li { (import_choice(import)) } } }
        }
    }
}

fn import_choice(import: &PlannedImport) -> Markup {
    let text = html! {
        bdi { (import.path) } span class="soft" { " (" (import.group) ", " (import.program) ")" } " as " code { (import.connection) }
        @if let Some(files) = &import.files { span class="soft" { ": " (files) } }
    };
    html! {
        @if import.is_imported {
            (text) span class="good" { ": imported" }
        } @else {
            label class="choice" { input type="checkbox" name="import" value=(import.connection) checked[import.is_default]; " " (text) }
        }
    }
}

fn sources(plan: &SetupPlan) -> Markup {
    html! {
        @if !plan.sources.is_empty() || !plan.notes.is_empty() {
            h2 { "MCP servers" }
            p {
                "Servers of your clients can be searched together with your records. Those that you choose are started or called, and \
                 added to the configuration if they have a search and a fetch. Your clients then get a server of the configuration."
            }
            ul class="choices" { @for source in &plan.sources { li { (source_choice(source)) } } }
            @for note in &plan.notes { p class="soft" { bdi { (note) } } }
        }
    }
}

fn source_choice(source: &PlannedSource) -> Markup {
    let text = html! {
        code { (source.name) } span class="soft" { " (" (source.clients) ")" } ": " bdi { (source.place) }
        @if !source.variables.is_empty() {
            span class="soft" { ", with secrets that you set in " (source.variables.join(", ")) }
        }
    };
    html! {
        @if source.is_added {
            (text) span class="good" { ": a source" }
        } @else {
            label class="choice" { input type="checkbox" name="source" value=(source.name) checked; " " (text) }
        }
    }
}

fn clients(clients: &[PlannedClient]) -> Markup {
    html! {
        h2 { "Clients" }
        @if clients.is_empty() {
            p { "No client was found. " code { "fetchwell client-config CLIENT" } " prints the entry for the file of a client." }
        } @else {
            p { "The earlier file stays beside the changed one, as " code { ".fetchwell-backup" } "." }
            @for client in clients { (client_choice(client)) }
        }
    }
}

fn client_choice(client: &PlannedClient) -> Markup {
    html! {
        h3 { (client.name) }
        @match &client.state {
            ClientFileState::Planned => {
                p { label class="choice" {
                    input type="checkbox" name="client" value=(client.name) checked;
                    " Change " code { bdi { (client.file) } }
                } }
                (diff(client))
            }
            _ => (client_state(client)),
        }
    }
}

fn diff(client: &PlannedClient) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label={ "Changes for " (client.name) } {
            pre class="box" { @for line in &client.diff { (line) "\n" } }
        }
    }
}

fn client_state(client: &PlannedClient) -> Markup {
    html! {
        @match &client.state {
            ClientFileState::Current => p { code { bdi { (client.file) } } " has fetchwell already." },
            ClientFileState::Planned => p { code { bdi { (client.file) } } " is as it was." },
            ClientFileState::Written(None) => p { code { bdi { (client.file) } } " was created. Restart " (client.name) "." },
            ClientFileState::Written(Some(backup)) => {
                p { code { bdi { (client.file) } } " was changed. Restart " (client.name) ". The earlier file is " code { bdi { (backup) } } "." }
            }
            ClientFileState::Refused { reason, snippet } => {
                p class="bad" { code { bdi { (client.file) } } " is left as it is: " (reason) "." }
                p { "Add this yourself:" }
                div class="scroll" tabindex="0" role="region" aria-label={ "Text for " (client.name) } { pre class="box" { (snippet) } }
            }
        }
    }
}

/// Renders the page while a choice is being carried out.
pub(super) fn running(key: &str) -> Response {
    let main = html! {
        h1 { (TITLE) }
        p role="status" { "Records are being imported and servers asked. This page reloads by itself; large mailboxes take minutes." }
        p { a href=(path(key)) { "Look now" } }
    };
    render(StatusCode::OK, &main)
}

/// Renders the results.
pub(super) fn done(outcome: &Result<SetupOutcome, String>, key: &str) -> Response {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(text) => return failed(text, key),
    };
    let is_nothing = *outcome == SetupOutcome::default();
    let main = html! {
        h1 { (TITLE) }
        @if is_nothing { p { "Nothing was chosen, so nothing was done." } }
        @if !outcome.imports.is_empty() || !outcome.failed.is_empty() {
            h2 { "Records" }
            ul {
                @for line in &outcome.imports { li { bdi { (line) } } }
                @for line in &outcome.failed { li class="bad" { bdi { (line) } } }
            }
        }
        @if !outcome.sources.is_empty() {
            h2 { "MCP servers" }
            ul { @for line in &outcome.sources { li { bdi { (line) } } } }
        }
        @if !outcome.clients.is_empty() {
            h2 { "Clients" }
            @for client in &outcome.clients { h3 { (client.name) } (client_state(client)) }
        }
        p { a href={ (path(key)) "&again=1" } { "Look for more" } }
        p class="soft" { "End " code { "fetchwell setup --page" } " in its terminal with Ctrl-C." }
    };
    render(StatusCode::OK, &main)
}

/// Renders a failure.
pub(super) fn failed(text: &str, key: &str) -> Response {
    let main = html! {
        h1 { (TITLE) }
        p class="bad" role="alert" { (text) }
        p { a href={ (path(key)) "&again=1" } { "Look again" } }
    };
    render(StatusCode::INTERNAL_SERVER_ERROR, &main)
}
