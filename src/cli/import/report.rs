//! The counts of an import, as one line or one JSON value.

use fetchwell_source::contract::Tally;
use serde::Serialize;

use super::super::print::{Printer, grouped};

/// The result of an import.
#[derive(Serialize)]
pub(super) struct Summary {
    connection_id: String,
    added: u64,
    changed: u64,
    unchanged: u64,
    deleted: u64,
    rejected: u64,
    skipped: u64,
    stopped: bool,
    /// Number of chunks that were embedded, if a model is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) embedded_chunks: Option<usize>,
}

/// The counts of an import.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    /// Records by effect.
    pub(super) tally: Tally,
    /// Rejected records and files.
    pub(super) rejected: u64,
    /// Files of kinds that are not read.
    pub(super) skipped: u64,
    /// True if the user stopped the import.
    pub(super) stopped: bool,
}

impl Summary {
    pub(super) fn new(connection: &str, counts: Counts) -> Self {
        let Counts { tally: Tally { added, changed, unchanged, deleted }, rejected, skipped, stopped } =
            counts;
        Self {
            connection_id: connection.to_owned(),
            added,
            changed,
            unchanged,
            deleted,
            rejected,
            skipped,
            stopped,
            embedded_chunks: None,
        }
    }

    pub(super) fn print(&self, printer: Printer) {
        if printer.json {
            return printer.value(self);
        }
        let counts = [
            (self.added, "added"),
            (self.changed, "changed"),
            (self.unchanged, "unchanged"),
            (self.deleted, "deleted"),
            (self.rejected, "rejected"),
        ];
        let skipped = (self.skipped > 0).then_some((self.skipped, "skipped"));
        let counts: Vec<String> = counts
            .iter()
            .chain(&skipped)
            .map(|(count, what)| format!("{} {what}", grouped(*count)))
            .collect();
        printer.line(format_args!("{}: {}", self.connection_id, counts.join(", ")));
    }
}
