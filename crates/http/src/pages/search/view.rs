//! HTML of the search form and of results.

use fetchwell_tools::ExplanationLine;
use maud::{Markup, html};

use super::choices::Choices;
use super::matches::{Found, FoundHit, count_text};
use super::request::{AGES, SearchRequest};
use crate::error::RequestError;
use crate::pages::access::parameters;
use crate::pages::layout::{copy_button, quantity, sentence, time, warning};

/// Renders the search form with the choices of each facet.
pub(super) fn form(request: &SearchRequest, choices: &Choices<'_>) -> Markup {
    let (accounts, streams, kinds) = (choices.accounts(), choices.streams(), choices.kinds());
    html! {
        form class="search" method="get" action="/" role="search" {
            div class="query" {
                div {
                    label for="q" { "Words to search for" }
                    input id="q" name="q" type="search" value=(request.q) autocomplete="off" spellcheck="false" maxlength="1000" aria-describedby="operators";
                }
                button type="submit" { "Search" }
            }
            div class="facets" {
                (facet("account", "Account", &accounts, &request.account))
                (facet("stream", "Stream", &streams, &request.stream))
                (facet("kind", "Kind", &kinds, &request.kind))
                (facet("time", "Time", &AGES, &request.age))
            }
            @if request.explains { input type="hidden" name="explain" value="1"; }
            p id="operators" class="soft small" {
                "Also " code { "\"exact phrase\"" } ", " code { "-word" } ", " code { "from:name" } ", " code { "title:word" }
                ", " code { "after:2026-01-31" } ", " code { "before:2026-02" } "."
            }
        }
    }
}

/// Renders a facet: a choice among values, or all of them. A chosen value that is not among them stays chosen.
fn facet(name: &str, label: &str, values: &[(&str, &str)], chosen: &str) -> Markup {
    let is_other = !chosen.is_empty() && values.iter().all(|(value, _)| *value != chosen);
    html! {
        div {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                option value="" { "All" }
                @if is_other { option value=(chosen) selected { (chosen) } }
                @for (value, label) in values {
                    option value=(value) selected[*value == chosen] { (label) }
                }
            }
        }
    }
}

/// Renders a page of results.
pub(super) fn results(request: &SearchRequest, choices: &Choices<'_>, found: &Found) -> Markup {
    html! {
        h1 class="hidden" { "Search" }
        (form(request, choices))
        (warning(&found.notes))
        @if found.hits.is_empty() {
            (no_results(request, found))
        } @else {
            p class="soft small row" {
                span role="status" { (summary(found)) }
                a href=(model_path(request)) { "What the model sees" }
                (explain_link(request))
            }
            ol class="hits" { @for hit in &found.hits { (result(hit)) } }
        }
        (details("Time of each stage", &found.stages))
        @if !found.is_first || found.next.is_some() {
            nav class="pages" aria-label="Pages of results" {
                @if !found.is_first { a href=(request.path_with("")) { "First page" } }
                @if let Some(next) = &found.next { a href=(request.path_with(next)) rel="next" { "Next page" } }
            }
        }
    }
}

/// Returns the path of the page with the answer of the tool `search` for the same records.
fn model_path(request: &SearchRequest) -> String {
    let operators = [("account", &request.account), ("stream", &request.stream), ("since", &request.age)];
    let operators = operators.into_iter().filter(|(_, value)| !value.is_empty());
    let operators = operators.map(|(name, value)| format!(" {name}:\"{value}\""));
    let query = format!("{}{}", request.q, operators.collect::<String>());
    format!("/model{}", parameters(&[("tool", "search"), ("value", query.trim())]))
}

/// Renders the link to the same page with explanations, or without them.
fn explain_link(request: &SearchRequest) -> Markup {
    let other = SearchRequest { explains: !request.explains, ..request.clone() };
    let label = if request.explains { "Hide explanations" } else { "Explain the order" };
    html! { a href=(other.path()) { (label) } }
}

/// Renders lines of an explanation, closed. Without lines it renders nothing.
fn details(summary: &str, lines: &[ExplanationLine]) -> Markup {
    html! {
        @if !lines.is_empty() {
            details class="more" {
                summary { (summary) }
                dl class="facts" {
                    @for line in lines {
                        dt { bdi lang="" { (line.label) } }
                        dd { bdi lang="" { (line.text) } }
                    }
                }
            }
        }
    }
}

fn summary(found: &Found) -> String {
    let shown = found.hits.len();
    match found.count {
        Some(count) => count_text(count, &quantity(count.value)),
        None if found.is_first && found.next.is_none() && shown == 1 => "1 record".to_owned(),
        None if found.is_first && found.next.is_none() => format!("{shown} records"),
        None => format!("{shown} records on this page"),
    }
}

fn result(hit: &FoundHit) -> Markup {
    html! {
        li {
            h2 dir="auto" lang="" {
                @match &hit.path {
                    Some(path) => a href=(path) { (hit.title) },
                    None => (hit.title),
                }
            }
            p class="meta soft" {
                @if let Some(when) = &hit.time { span { (time(when)) } }
                @if let Some(account) = &hit.account { span { bdi lang="" { (account) } } }
                @if let Some(stream) = &hit.stream { span { (stream) } }
                @if let Some(kind) = &hit.kind { span { (kind) } }
                @if hit.by_meaning { span { "found by meaning" } }
                @if hit.near_copies > 0 { span { (hit.near_copies) " similar" } }
            }
            p class="passage" dir="auto" lang="" { (hit.passage) }
            (details("Why it is here", &hit.reasons))
            @if let Some(handle) = &hit.handle {
                p class="row" { code class="handle soft" { (handle) } (copy_button(handle, "Copy handle")) }
            }
        }
    }
}

fn no_results(request: &SearchRequest, found: &Found) -> Markup {
    let has_facets = [&request.account, &request.stream, &request.kind, &request.age]
        .iter()
        .any(|value| !value.is_empty());
    let wider = SearchRequest { q: request.q.clone(), ..SearchRequest::default() };
    html! {
        p role="status" {
            @if found.next.is_some() { "No match on this page. The next page has further records." }
            @else if found.is_first { "No record matches." }
            @else { "There are no further records." }
        }
        @if found.is_first && found.next.is_none() {
            ul {
                li { "Try fewer or other words; any of them is enough." }
                @if has_facets && !request.q.is_empty() {
                    li { a href=(wider.path()) { "Search all accounts, streams and times" } }
                }
            }
        }
    }
}

/// Renders a search that failed.
pub(super) fn failure(request: &SearchRequest, choices: &Choices<'_>, error: &RequestError) -> Markup {
    html! {
        h1 class="hidden" { "Search" }
        (form(request, choices))
        div class="note warning" role="alert" {
            p { (sentence(error.message())) }
            @if let Some(hint) = error.hint() { p { (hint) } }
            @if !request.cursor.is_empty() { p { a href=(request.path_with("")) { "Search again" } } }
        }
    }
}
