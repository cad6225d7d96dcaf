//! The file in which the awkward servers log what they received.

use serde_json::Value;

use crate::support::text;

/// A log of calls and of other messages that an awkward server received.
pub(crate) struct EventLog {
    folder: tempfile::TempDir,
}

impl EventLog {
    /// Creates an empty log.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Returns the value of the setting `AWKWARD_CALLS`.
    pub(crate) fn path(&self) -> String {
        text(&self.folder.path().join("events.ndjson")).to_owned()
    }

    /// Returns all events in their order: the name of a tool with the arguments of the call, or `#` with the name of
    /// another message and its parameters.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        let Ok(lines) = std::fs::read_to_string(self.path()) else { return Vec::new() };
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the arguments of all calls of a tool, in their order.
    pub(crate) fn calls(&self, tool: &str) -> Vec<Value> {
        let events = self.events().into_iter();
        events.filter(|(name, _)| name == tool).map(|(_, arguments)| arguments).collect()
    }
}
