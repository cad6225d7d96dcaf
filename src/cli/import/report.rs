//! The counts of an import, as one line or one JSON value.

use fetchwell_connectors::SkipCounts;
use fetchwell_source::contract::Tally;
use serde::Serialize;

use super::super::print::{Printer, counted, grouped};
use super::super::rejections::SkipFields;

/// The result of an import.
#[derive(Serialize)]
pub(super) struct Summary {
    connection_id: String,
    added: u64,
    changed: u64,
    unchanged: u64,
    deleted: u64,
    rejected: u64,
    /// Number of files of kinds that are not read.
    skipped: u64,
    #[serde(flatten)]
    by_reason: SkipFields,
    /// Number of attachments, and of files in them, that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread_attachments: Option<u64>,
    stopped: bool,
    /// Number of chunks that were embedded, if a model is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) embedded_chunks: Option<usize>,
}

/// The counts of an import.
#[derive(Debug)]
pub(super) struct Counts {
    /// Records by effect.
    pub(super) tally: Tally,
    /// Files and records that were left out by design or could not be read.
    pub(super) skips: SkipCounts,
    /// Attachments of accepted messages, and files in them, that could not be read.
    pub(super) unread_attachments: u64,
    /// True if the user stopped the import.
    pub(super) stopped: bool,
}

impl Summary {
    pub(super) fn new(connection: &str, counts: &Counts) -> Self {
        let Counts { tally, skips, unread_attachments, stopped } = counts;
        let Tally { added, changed, unchanged, deleted } = *tally;
        Self {
            connection_id: connection.to_owned(),
            added,
            changed,
            unchanged,
            deleted,
            rejected: skips.not_read(),
            skipped: skips.other_kinds(),
            by_reason: skips.into(),
            unread_attachments: Some(*unread_attachments).filter(|count| *count > 0),
            stopped: *stopped,
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
        let counts = counts.iter().chain(&skipped).map(|(count, what)| format!("{} {what}", grouped(*count)));
        let unread = self.unread_attachments;
        let unread = unread.map(|count| format!("{} not read", counted(count, "attachment")));
        let counts: Vec<String> = counts.chain(unread).collect();
        printer.line(format_args!("{}: {}", self.connection_id, counts.join(", ")));
    }
}
