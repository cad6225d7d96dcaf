//! HTML of the page with the answer of a tool.

use fetchwell_core::saturate::saturated;
use maud::{Markup, html};

use super::call::{Measured, ModelCall, ModelTool};
use crate::pages::layout::{copy_button, quantity};

/// Renders the form, and the answer if there was a call.
pub(super) fn page(call: &ModelCall, measured: Option<&Measured>) -> Markup {
    html! {
        h1 { "What the model sees" }
        p { "The exact answer of a tool, as a client receives it over MCP, with its size against the budget of the answer." }
        (form(call))
        @if let Some(measured) = measured { (answer(call, measured)) }
    }
}

fn form(call: &ModelCall) -> Markup {
    let limit = call.limit.map(|limit| limit.to_string());
    html! {
        form class="search" method="get" action="/model" {
            div class="facets" {
                div {
                    label for="tool" { "Tool" }
                    select id="tool" name="tool" {
                        option value="search" selected[call.tool == ModelTool::Search] { "search" }
                        option value="fetch" selected[call.tool == ModelTool::Fetch] { "fetch" }
                    }
                }
                div {
                    label for="profile" { "Profile" }
                    select id="profile" name="profile" {
                        option value="standard" selected[!call.is_openai] { "standard" }
                        option value="openai" selected[call.is_openai] { "openai" }
                    }
                }
                div {
                    label for="limit" { "Limit (search, optional)" }
                    input id="limit" name="limit" type="number" min="1" max="100" value=[limit];
                }
            }
            div class="query" {
                div {
                    label for="q" { "Query of search, or id for fetch" }
                    input id="q" name="value" type="text" value=(call.value) autocomplete="off" spellcheck="false" required maxlength="2048";
                }
                button type="submit" { "Call" }
            }
        }
    }
}

fn answer(call: &ModelCall, measured: &Measured) -> Markup {
    html! {
        h2 { "Call" }
        pre class="box" dir="auto" lang="" { "\n" (call.tool.as_str()) " " (measured.arguments) }
        h2 { @if measured.is_error { "Answer: an error" } @else { "Answer" } }
        div class="gauges" {
            (gauge("Bytes", measured.bytes, measured.max_bytes))
            (gauge("Tokens (o200k)", measured.tokens, measured.max_tokens))
        }
        p class="row" { (copy_button(&measured.payload, "Copy answer")) }
        pre class="box" id="payload" dir="auto" lang="" { "\n" (measured.payload) }
    }
}

/// Renders a size against its maximum.
fn gauge(label: &str, size: usize, max: usize) -> Markup {
    let [shown, limit] = [size, max].map(|number| quantity(saturated::<u64>(number)));
    html! {
        div {
            p class="small" { (label) ": " strong { (shown) } " of " (limit) }
            meter min="0" max=(max) value=(size.min(max)) aria-label={ (label) " of the answer" } { (shown) " of " (limit) }
        }
    }
}
