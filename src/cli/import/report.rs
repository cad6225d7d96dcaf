//! Output of an import: rejected records, progress and the summary.

use std::fmt;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::super::print::{Printer, grouped, note};
use crate::connectors::Report;
use crate::source::store::Tally;

#[derive(Serialize)]
struct Summary {
    connection_id: String,
    added: u64,
    changed: u64,
    unchanged: u64,
    deleted: u64,
    rejected: u64,
    skipped: u64,
    stopped: bool,
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

/// Prints the counts of an import.
pub(super) fn print_summary(printer: Printer, connection: &str, counts: Counts) {
    let Counts { tally, rejected, skipped, stopped } = counts;
    let Tally { added, changed, unchanged, deleted } = tally;
    if printer.json {
        let connection_id = connection.to_owned();
        return printer.value(&Summary {
            connection_id,
            added,
            changed,
            unchanged,
            deleted,
            rejected,
            skipped,
            stopped,
        });
    }
    let counts = [
        (added, "added"),
        (changed, "changed"),
        (unchanged, "unchanged"),
        (deleted, "deleted"),
        (rejected, "rejected"),
    ];
    let skipped = (skipped > 0).then_some((skipped, "skipped"));
    let counts: Vec<String> =
        counts.iter().chain(&skipped).map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
    printer.line(format_args!("{connection}: {}", counts.join(", ")));
}
