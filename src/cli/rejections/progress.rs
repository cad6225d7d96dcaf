//! The progress of an import on a terminal: bytes, records, rate and remaining time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use walkdir::WalkDir;

use super::super::print::grouped;

/// Number of records between two updates of the number.
const UPDATE_EVERY: u64 = 256;

/// Interval between two frames of a spinner.
const TICK: Duration = Duration::from_millis(120);

/// Progress of an import. Shows nothing if standard error is not a terminal.
#[derive(Clone)]
pub(in crate::cli) struct Progress {
    pub(in crate::cli) bar: ProgressBar,
    records: u64,
}

impl Progress {
    /// Shows the progress of a file of `bytes`.
    pub(in crate::cli) fn for_file(bytes: u64) -> Self {
        Self::new(ProgressBar::new(bytes), "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} {msg}")
    }

    /// Shows the progress of a folder, with the remaining time as soon as its files are counted.
    pub(in crate::cli) fn for_folder(folder: &Path, stop: &Arc<AtomicBool>) -> Self {
        let progress = Self::new(ProgressBar::no_length(), "{spinner} {bytes} {bytes_per_sec} {msg}");
        if !progress.bar.is_hidden() {
            progress.bar.enable_steady_tick(TICK);
            let (bar, folder, stop) = (progress.bar.clone(), folder.to_owned(), Arc::clone(stop));
            // The count is only for display, so an import goes on without it.
            let count = move || count_bytes(&folder, &bar, &stop);
            let _ = thread::Builder::new().name("count".to_owned()).spawn(count);
        }
        progress
    }

    /// Creates a progress that is not shown.
    pub(in crate::cli) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), records: 0 }
    }

    fn new(bar: ProgressBar, template: &str) -> Self {
        let bar = bar.with_style(style(template));
        Self { bar, records: 0 }
    }

    /// Counts a record.
    pub(in crate::cli) fn count_record(&mut self) {
        self.records += 1;
        if self.records.is_multiple_of(UPDATE_EVERY) && !self.bar.is_hidden() {
            let seconds = self.bar.elapsed().as_secs().max(1);
            let rate = grouped(self.records / seconds);
            self.bar.set_message(format!("{} records, {rate}/s", grouped(self.records)));
        }
    }

    /// Shows that the records are read, and the index is completed.
    pub(in crate::cli) fn start_indexing(&self) {
        if !self.bar.is_hidden() {
            self.bar.set_style(style("{spinner} {elapsed} {msg}"));
            self.bar.set_message("completing the search index");
            self.bar.enable_steady_tick(TICK);
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_template| ProgressStyle::default_bar())
}

/// Adds up the sizes of all files of a folder, and shows them as the whole.
fn count_bytes(folder: &Path, bar: &ProgressBar, stop: &AtomicBool) {
    let mut bytes = 0;
    for entry in WalkDir::new(folder).into_iter().flatten() {
        if stop.load(Ordering::Relaxed) || bar.is_finished() {
            return;
        }
        if entry.file_type().is_file() {
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    bar.set_length(bytes);
    bar.set_style(style("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} {msg}"));
}
