//! The state of sources, circuit breakers, imports, vectors and budgets.

use std::sync::Arc;

use fetchwell_core::fit::budget;
use fetchwell_core::record::Unavailable;
use fetchwell_core::saturate::saturated;
use fetchwell_mcp::{instructions, tool_list_json};
use fetchwell_source::federation::{CircuitReport, CircuitState};
use fetchwell_source::{BackendStatus, Source};
use fetchwell_telemetry::{EmbeddingBuild, ImportProgress, Outcome, TelemetryRecord};
use fetchwell_tools::{Profile, Toolbox};
use maud::{Markup, html};
use serde_json::Value;

use super::chart::budget_meter;
use crate::middleware::served::AuthMode;
use crate::ops::source_health::{backends, unavailable_sources};

/// State of all sources.
#[derive(Debug)]
pub(super) struct SourceStates {
    /// Name of the source, or of all together.
    name: String,
    circuits: Vec<CircuitReport>,
    /// Sources that cannot be read, or the error of all.
    unavailable: Result<Vec<Unavailable>, String>,
    /// Places that the sources read from.
    backends: Vec<BackendStatus>,
}

impl SourceStates {
    /// Checks all sources that can be read without a caller, or else those of the visitor.
    pub(super) async fn read(served: &AuthMode, toolbox: &Toolbox) -> Self {
        let everything = served.everything();
        let source: &dyn Source = match &everything {
            Some(sources) => sources.source(),
            None => toolbox.source().shared().source(),
        };
        let (unavailable, backends) = tokio::join!(unavailable_sources(source), backends(source));
        Self { name: source.name().to_string(), circuits: served.circuits(), unavailable, backends }
    }

    /// Returns the places that the sources read from.
    pub(super) fn backends(&self) -> &[BackendStatus] {
        &self.backends
    }
}

/// Renders the sources with their circuit breakers.
pub(super) fn sources(states: &SourceStates) -> Markup {
    let missing = states.unavailable.as_deref().unwrap_or_default();
    let problem = |source: &str| missing.iter().find(|missing| missing.source.as_str() == source);
    html! {
        h2 { "Sources" }
        @if let Err(code) = &states.unavailable {
            p class="bad" { "No record can be read: " code { (code) } ". Run " code { "fetchwell doctor" } "." }
        }
        @if states.circuits.is_empty() {
            @if states.unavailable.is_ok() {
                dl class="facts" { dt { (states.name) } dd { (health(problem(&states.name))) } }
            }
        } @else {
            div class="scroll" {
                table {
                    thead { tr {
                        th scope="col" { "Source" } th scope="col" { "State" } th scope="col" { "Circuit" }
                        th scope="col" class="number" { "Failures in a row" }
                    } }
                    tbody { @for circuit in &states.circuits { tr {
                        th scope="row" { (circuit.source) }
                        td { (health(problem(circuit.source.as_str()))) }
                        td { (circuit_label(circuit)) }
                        td class="number" { (circuit.failures) }
                    } } }
                }
            }
        }
    }
}

fn health(problem: Option<&Unavailable>) -> Markup {
    html! {
        @match problem {
            None => span class="good" { "answers" },
            Some(missing) => {
                span class="bad" { (missing.code) }
                @if let Some(hint) = &missing.hint { " " (hint) }
            }
        }
    }
}

fn circuit_label(circuit: &CircuitReport) -> String {
    match circuit.state {
        CircuitState::Closed => "closed: it is called".to_owned(),
        CircuitState::HalfOpen => "half open: one call is made as a probe".to_owned(),
        CircuitState::Open => format!("open: it is called again after {} s", circuit.asked_again_after),
    }
}

/// Renders the imports that the server keeps current.
pub(super) fn imports(imports: &[ImportProgress]) -> Markup {
    html! {
        h2 { "Imports" }
        @if imports.is_empty() {
            p { "This server keeps no import current. " code { "[[import]]" } " in its configuration adds one." }
        } @else {
            div class="scroll" {
                table {
                    thead { tr {
                        th scope="col" { "Connection" } th scope="col" { "State" } th scope="col" { "Last sync" }
                        th scope="col" class="number" { "Changes" } th scope="col" class="number" { "Held" }
                        th scope="col" class="number" { "Failures" }
                    } }
                    tbody { @for import in imports { tr {
                        th scope="row" { (import.connection) }
                        td { (wire_name(&import.state)) @if let Some(code) = import.problem { " " span class="bad" { (code) } } }
                        td { (import.last_sync.as_deref().unwrap_or("never")) }
                        td class="number" { (import.changes) }
                        td class="number" { (import.held) }
                        td class="number" { (import.failures) }
                    } } }
                }
            }
        }
    }
}

/// Renders the builds of vectors.
pub(super) fn embeddings(builds: &[EmbeddingBuild]) -> Markup {
    html! {
        @if !builds.is_empty() {
            h2 { "Vectors" }
            dl class="facts" {
                @for build in builds {
                    dt { (build.source) }
                    dd {
                        (wire_name(&build.state)) ": " (build.missing_records) " records without vectors, "
                        (build.embedded_chunks) " chunks embedded by this process"
                        @if let Some(code) = build.problem { ", " span class="bad" { (code) } }
                    }
                }
            }
        }
    }
}

/// Renders what clients read at their start, and the largest answers, beside their budgets.
pub(super) fn budgets(records: &[Arc<TelemetryRecord>]) -> Markup {
    let bytes = |text: &str| saturated::<u64>(text.len());
    let list = |profile| bytes(tool_list_json(profile));
    let largest = |endpoint: &str| {
        let answers = records.iter().filter(|record| record.endpoint.as_str() == endpoint);
        let answered = answers.filter(|record| record.outcome == Outcome::OK);
        answered.map(|record| record.estimated_tokens).max()
    };
    let mut rows = vec![
        ("tools/list".to_owned(), "bytes", list(Profile::Standard), budget::TOOLS_LIST),
        ("tools/list, openai".to_owned(), "bytes", list(Profile::OpenAi), budget::TOOLS_LIST_OPENAI),
        ("tools/list, docs".to_owned(), "bytes", list(Profile::Docs), budget::TOOLS_LIST_DOCS),
        ("instructions".to_owned(), "bytes", bytes(instructions(Profile::Standard)), budget::INSTRUCTIONS),
    ];
    for tool in Profile::Standard.tools() {
        let largest = largest(&format!("tool:{}", tool.name));
        rows.extend(
            largest
                .map(|tokens| (format!("largest {}", tool.name), "tokens", tokens, budget::DOCUMENT_TOKENS)),
        );
    }
    html! {
        h2 { "Budgets" }
        div class="scroll" {
            table {
                caption { "Definitions that each client reads, and the largest answer of each tool. " code { "fetchwell budget" }
                    " measures all budgets on fixtures." }
                thead { tr {
                    th scope="col" { "What" } th scope="col" { "Share of the budget" } th scope="col" class="number" { "Size" }
                    th scope="col" class="number" { "Budget" } th scope="col" { "Unit" }
                } }
                tbody { @for (what, unit, size, budget) in &rows {
                    @let budget = saturated::<u64>(*budget);
                    tr {
                        th scope="row" { (what) }
                        td { (budget_meter(*size, budget, what)) }
                        td class="number" { (size) }
                        td class="number" { (budget) }
                        td { (unit) }
                    }
                } }
            }
        }
    }
}

/// Returns the name that an enum has in JSON, with spaces.
fn wire_name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name.replace('_', " "),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_do_not_answer_are_named_with_their_remedy() {
        let circuit = |name: &str, state, failures| CircuitReport {
            source: name.parse().unwrap(),
            state,
            failures,
            asked_again_after: 7,
        };
        let missing = Unavailable {
            source: "work".parse().unwrap(),
            code: "source_timeout".to_owned(),
            hint: Some("Ask <later>.".to_owned()),
        };
        let states = SourceStates {
            name: "all".to_owned(),
            circuits: vec![circuit("home", CircuitState::Closed, 0), circuit("work", CircuitState::Open, 3)],
            unavailable: Ok(vec![missing]),
            backends: Vec::new(),
        };
        let html = sources(&states).into_string();
        assert!(html.contains("source_timeout") && html.contains("Ask &lt;later&gt;."), "{html}");
        assert_eq!(html.matches("class=\"good\"").count(), 1, "{html}");
        assert!(html.contains("after 7 s"), "{html}");
        let down = SourceStates { circuits: Vec::new(), unavailable: Err("busy".to_owned()), ..states };
        assert!(sources(&down).into_string().contains("No record can be read"));
    }

    #[test]
    fn budgets_are_shown_without_calls() {
        let html = budgets(&[]).into_string();
        assert_eq!(html.matches("<meter").count(), 4, "{html}");
    }
}
