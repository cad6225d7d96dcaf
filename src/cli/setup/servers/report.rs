//! The results of chosen servers.

use fetchwell_core::terminal::Line;
use serde::Serialize;

use super::super::super::print::{FAINT, GOOD, Printer, UNSURE};
use super::find::McpCandidate;
use super::offer::NeededVariable;

/// The result of a chosen server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SourceReport {
    name: String,
    state: SourceState,
    /// Calls of the server, such as `search(query)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<String>,
    /// Preset of its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<&'static str>,
    /// Variables that the user sets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    variables: Vec<NeededVariable>,
    /// Clients with the values of the variables.
    #[serde(skip)]
    clients: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Commands for the user to run, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<String>,
}

/// State of a chosen server after the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SourceState {
    /// It is a source of the configuration.
    Added,
    /// It would be asked, and added if it has a search and a fetch.
    Planned,
    NotAdded,
}

/// Tools that a source calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    /// Each call, such as `search(query)`.
    pub(super) calls: Vec<String>,
    /// Preset with the tools.
    pub(super) preset: Option<&'static str>,
}

impl SourceReport {
    fn new(candidate: &McpCandidate, state: SourceState) -> Self {
        Self {
            name: candidate.name().to_owned(),
            state,
            calls: Vec::new(),
            preset: None,
            variables: Vec::new(),
            clients: candidate.clients.clone(),
            problem: None,
            next: Vec::new(),
        }
    }

    /// Creates the report of a server that would be asked.
    pub(crate) fn planned(candidate: &McpCandidate) -> Self {
        Self::new(candidate, SourceState::Planned)
    }

    /// Creates the report of a server whose tools are known, with the variables that are not set.
    pub(super) fn added(candidate: &McpCandidate, calls: Calls, variables: Vec<NeededVariable>) -> Self {
        let Calls { calls, preset } = calls;
        Self { calls, preset, variables, ..Self::new(candidate, SourceState::Added) }
    }

    /// Creates the report of a server that asks for a sign-in, before which it shows no tools.
    pub(super) fn sign_in(candidate: &McpCandidate) -> Self {
        let name = candidate.name();
        let next = ["login", "inspect"].map(|command| format!("fetchwell source {command} {name}"));
        let problem = Some("it asks for a sign-in".to_owned());
        Self { problem, next: next.to_vec(), ..Self::new(candidate, SourceState::Added) }
    }

    /// Creates the report of a server that needs variables to be asked.
    pub(super) fn unset(candidate: &McpCandidate, variables: Vec<NeededVariable>) -> Self {
        let next = vec!["fetchwell setup".to_owned()];
        let problem = Some("it needs variables that are not set".to_owned());
        Self { problem, variables, next, ..Self::new(candidate, SourceState::NotAdded) }
    }

    /// Creates the report of a server that cannot be used as it is.
    pub(super) fn not_added(candidate: &McpCandidate, problem: String) -> Self {
        let next = vec![candidate.add_command(), format!("fetchwell source inspect {}", candidate.name())];
        Self { problem: Some(problem), next, ..Self::new(candidate, SourceState::NotAdded) }
    }

    /// Returns true if the server is a source now.
    pub(crate) fn is_added(&self) -> bool {
        self.state == SourceState::Added
    }

    /// Returns true if the server is a source, and needs nothing more.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_added() && self.variables.is_empty() && self.problem.is_none()
    }

    /// Returns the result in a line.
    pub(crate) fn summary(&self) -> String {
        let Self { name, .. } = self;
        let mut parts = vec![match self.state {
            SourceState::Added if !self.calls.is_empty() => {
                let calls = self.calls.iter().map(|call| format!("`{call}`"));
                format!("{name}: added; it is asked by {}", calls.collect::<Vec<_>>().join(" and "))
            }
            SourceState::Added => format!("{name}: added"),
            SourceState::Planned => {
                format!("{name}: would be asked what it has, and added if it has search and fetch")
            }
            SourceState::NotAdded => format!("{name}: not added"),
        }];
        parts.extend(self.problem.clone());
        let clients = self.clients.join(", ");
        parts.extend(self.variables.iter().map(|variable| {
            let NeededVariable { name, key, .. } = variable;
            format!("set the environment variable `{name}` wherever fetchwell runs (`{key}` in the file of {clients})")
        }));
        if !self.next.is_empty() {
            let next = self.next.iter().map(|command| format!("`{command}`"));
            parts.push(format!("run {}", next.collect::<Vec<_>>().join(", then ")));
        }
        parts.join("; ")
    }

    pub(crate) fn print(&self, printer: Printer) {
        let style = match self.state {
            SourceState::Planned => FAINT,
            _ if self.is_ready() => GOOD,
            _ => UNSURE,
        };
        printer.styled(Line::default().styled(style, self.summary()));
    }
}
