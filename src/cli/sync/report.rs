//! Output of synchronizations.

use fetchwell_connectors::{ImportError, SkipCounts, SyncOutcome, describe_held_records};
use fetchwell_core::terminal::output::note;
use fetchwell_source::contract::RememberedImport;
use serde::Serialize;

use super::super::print::{Printer, counted, grouped};
use super::super::rejections::{SkipFields, note_skips};
use crate::app::failure::Failure;

/// State of an import: its error, and the numbers of records and files that it does not have as the origin has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ImportHealth {
    pub(super) error: Option<String>,
    pub(super) held: u64,
    pub(super) rejected: u64,
}

/// The result of the synchronization of an import.
#[derive(Debug, Serialize)]
pub(crate) struct SyncReport {
    connection_id: String,
    origin: String,
    kind: String,
    added: u64,
    changed: u64,
    deleted: u64,
    rejected: u64,
    #[serde(flatten)]
    by_reason: SkipFields,
    /// True if records or files are as they were.
    #[serde(skip)]
    has_unchanged: bool,
    /// Counts that are printed: of what was left out by design only if files were read.
    #[serde(skip)]
    printed: SkipCounts,
    /// Number of attachments, and of files in them, that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread_attachments: Option<u64>,
    files_read: u64,
    files_unchanged: u64,
    /// Number of records that are missing and were kept.
    held: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl SyncReport {
    pub(super) fn new(import: &RememberedImport, outcome: &Result<SyncOutcome, ImportError>) -> Self {
        let nothing = SyncOutcome::default();
        let (outcome, error) = match outcome {
            Ok(outcome) => {
                let index = outcome.index_problem.as_ref();
                (outcome, index.map(|problem| format!("the records cannot be searched: {problem}")))
            }
            Err(error) => (&nothing, Some(error.to_string())),
        };
        let skips = outcome.skips.clone();
        Self {
            connection_id: import.connection_id.to_string(),
            origin: import.settings.origin.display().to_string(),
            kind: import.settings.kind.clone(),
            added: outcome.tally.added,
            changed: outcome.tally.changed,
            deleted: outcome.tally.deleted,
            rejected: outcome.rejected,
            by_reason: (&skips).into(),
            has_unchanged: outcome.tally.unchanged > 0 || outcome.unchanged > 0,
            printed: if outcome.read > 0 { skips } else { skips.only_not_read() },
            unread_attachments: Some(outcome.unread_attachments).filter(|count| *count > 0),
            files_read: outcome.read,
            files_unchanged: outcome.unchanged,
            held: outcome.held.map_or(0, |missing| missing.records),
            warning: outcome.warning.clone(),
            error,
        }
    }

    /// Returns the state of the import.
    pub(super) fn health(&self) -> ImportHealth {
        ImportHealth { error: self.error.clone(), held: self.held, rejected: self.rejected }
    }

    /// Returns true if everything was read, and nothing is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.health() == ImportHealth::default()
    }

    /// Returns true if everything but some files or records is imported.
    pub(crate) fn is_partial(&self) -> bool {
        let is_wrong = self.error.is_some() || self.held > 0;
        self.rejected > 0 && !is_wrong && (self.has_changes() || self.has_unchanged)
    }

    /// Returns true if records were changed.
    pub(super) fn has_changes(&self) -> bool {
        self.added + self.changed + self.deleted > 0
    }

    /// Returns the connection of the import.
    pub(crate) fn connection(&self) -> &str {
        &self.connection_id
    }

    /// Returns the counts or the error as a line.
    pub(crate) fn summary(&self) -> String {
        let Self { connection_id, .. } = self;
        if let Some(error) = &self.error {
            return format!("{connection_id}: not up to date: {error}");
        }
        let mut counts: Vec<String> =
            [(self.added, "added"), (self.changed, "changed"), (self.deleted, "deleted")]
                .iter()
                .map(|(count, what)| format!("{} {what}", grouped(*count)))
                .collect();
        if self.rejected > 0 {
            counts.push(format!("{} rejected", grouped(self.rejected)));
        }
        if let Some(count) = self.unread_attachments {
            counts.push(format!("{} not read", counted(count, "attachment")));
        }
        if self.files_unchanged > 0 {
            let files = if self.files_unchanged == 1 { "file" } else { "files" };
            counts.push(format!("{} {files} unchanged", grouped(self.files_unchanged)));
        }
        format!("{connection_id}: {}", counts.join(", "))
    }

    pub(crate) fn print(&self, printer: Printer) {
        if printer.json {
            return printer.value(self);
        }
        printer.line(self.summary());
        if self.error.is_some() {
            return;
        }
        let Self { connection_id, .. } = self;
        note_skips(&self.printed);
        if let Some(warning) = &self.warning {
            note(&format_args!("{connection_id}: {warning}"));
        }
        if self.held > 0 {
            note(&describe_held_records(connection_id, &grouped(self.held)));
        }
    }
}

/// Returns the failure with which a command ends if imports are not completely up to date. What is wrong was printed.
pub(super) fn ended<'r>(reports: impl IntoIterator<Item = &'r SyncReport>) -> Result<(), Failure> {
    let incomplete: Vec<&SyncReport> = reports.into_iter().filter(|report| !report.is_complete()).collect();
    if incomplete.is_empty() {
        Ok(())
    } else if incomplete.iter().all(|report| report.is_partial()) {
        Err(Failure::partial(""))
    } else {
        Err(Failure::without_message())
    }
}

/// Prints the number of imports, how many are not up to date, and the number of rejected files and records.
pub(super) fn print_total(printer: Printer, reports: &[SyncReport]) {
    let incomplete = reports.iter().filter(|report| !report.is_complete()).count();
    let imports = if reports.len() == 1 { "1 import" } else { &format!("{} imports", reports.len()) };
    let rejected = match reports.iter().map(|report| report.rejected).sum() {
        0 => String::new(),
        rejected => {
            format!("; {} rejected, which `--report FILE` lists", counted(rejected, "item"))
        }
    };
    if incomplete == 0 {
        printer.line(format_args!("{imports}: up to date"));
    } else {
        printer.line(format_args!("{imports}: {incomplete} not completely up to date{rejected}"));
    }
}
