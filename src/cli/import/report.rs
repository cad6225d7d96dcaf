//! Output of an import: rejected records, progress and the summary.

use std::fmt;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::super::print::{Printer, grouped, note};
use crate::connectors::Report;
use crate::source::store::Tally;

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

/// Prints each rejected record immediately, above the progress bar.
pub(super) struct Rejections {
    pub(super) file: PathBuf,
    pub(super) bar: ProgressBar,
}

impl Report for Rejections {
    fn rejected(&mut self, place: &dyn fmt::Display, reason: &str) {
        let place = place.to_string();
        // The place of a single file is its name.
        let is_file = self.file.file_name().is_some_and(|name| Path::new(&place) == Path::new(name));
        let place = if is_file { String::new() } else { format!(":{place}") };
        self.bar.suspend(|| note(&format_args!("{}{place}: {reason}", self.file.display())));
    }

    fn skipped(&mut self, files: u64, description: &str) {
        let others = if files == 1 { "1 file is" } else { &format!("{} files are", grouped(files)) };
        self.bar.suspend(|| note(&format_args!("{others} of no kind that is read; {description}")));
    }
}

/// Creates a progress bar on standard error, visible only on a terminal.
/// `size` is `None` for a folder, whose size is unknown before it is read.
pub(super) fn progress_bar(size: Option<u64>) -> ProgressBar {
    let (bar, template) = match size {
        None => (ProgressBar::no_length(), "{spinner} {bytes} {bytes_per_sec}"),
        Some(size) => (ProgressBar::new(size), "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_template) => bar,
    }
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
