//! The progress of an import on a terminal: bytes, records, rate and remaining time, and the same of the search index.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fetchwell_connectors as connectors;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::{Mutex, MutexGuard};
use walkdir::WalkDir;

use super::super::print::grouped;

/// Number of records between two updates of the number.
const UPDATE_EVERY: u64 = 256;

/// Interval between two frames of a spinner.
const TICK: Duration = Duration::from_millis(120);

/// Output while the bytes are known, and while they are not.
const READING: [&str; 2] =
    ["{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} {msg}", "{spinner} {bytes} {bytes_per_sec} {msg}"];

/// Output while the search index is completed: with and without the number of changes.
const INDEXING: [&str; 2] = [
    "{bar:30} {pos}/{len} {per_sec} {eta} completing the search index",
    "{spinner} {elapsed} completing the search index",
];

/// Progress of an import. Shows nothing if standard error is not a terminal.
#[derive(Clone)]
pub(crate) struct Progress {
    pub(super) bar: ProgressBar,
    shared: Arc<ProgressState>,
}

/// State that the thread of the progress line reads.
struct ProgressState {
    started: Instant,
    records: AtomicU64,
    phase: Mutex<Phase>,
}

/// Bytes that were read, and the part of the import that is shown.
#[derive(Debug, Default)]
struct Phase {
    read: u64,
    /// Number of bytes to read, if it is known.
    expected: Option<u64>,
    is_indexing: bool,
}

impl Progress {
    /// Shows the progress of a file of `bytes`.
    pub(crate) fn for_file(bytes: u64) -> Self {
        let progress = Self::for_unknown();
        connectors::Progress::expect(&progress, bytes);
        progress
    }

    /// Shows the progress of a folder, with the remaining time as soon as its files are counted.
    pub(crate) fn for_folder(folder: &Path, stop: &Arc<AtomicBool>) -> Self {
        let progress = Self::for_unknown();
        if !progress.bar.is_hidden() {
            let (counted, folder, stop) = (progress.clone(), folder.to_owned(), Arc::clone(stop));
            // The count is only for display, so an import goes on without it.
            let count = move || count_bytes(&folder, &counted, &stop);
            let _ = thread::Builder::new().name("count".to_owned()).spawn(count);
        }
        progress
    }

    /// Shows the progress of an import with a number of bytes that is reported later.
    pub(crate) fn for_unknown() -> Self {
        let bar = ProgressBar::no_length().with_style(style(READING[1]));
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        let shared =
            ProgressState { started: Instant::now(), records: AtomicU64::new(0), phase: Mutex::default() };
        Self { bar, shared: Arc::new(shared) }
    }

    /// Counts a record.
    pub(super) fn count_record(&self) {
        let records = self.shared.records.fetch_add(1, Ordering::Relaxed) + 1;
        if records.is_multiple_of(UPDATE_EVERY) && !self.bar.is_hidden() {
            let rate = grouped(records / self.shared.started.elapsed().as_secs().max(1));
            self.bar.set_message(format!("{} records, {rate}/s", grouped(records)));
        }
    }

    /// Removes the progress from the terminal.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.shared.phase.lock()
    }

    /// Shows the bytes of a phase.
    fn show_reading(&self, phase: &mut Phase) {
        phase.is_indexing = false;
        let [known, unknown] = READING;
        self.bar.set_style(style(if phase.expected.is_some() { known } else { unknown }));
        if let Some(bytes) = phase.expected {
            self.bar.set_length(bytes);
        }
        self.bar.set_position(phase.read);
    }
}

impl connectors::Progress for Progress {
    fn expect(&self, bytes: u64) {
        let mut phase = self.phase();
        *phase.expected.get_or_insert(0) += bytes;
        self.show_reading(&mut phase);
    }

    fn read(&self, bytes: u64) {
        if self.bar.is_hidden() {
            return;
        }
        let mut phase = self.phase();
        phase.read += bytes;
        if phase.is_indexing {
            self.bar.reset();
            self.show_reading(&mut phase);
        } else {
            self.bar.inc(bytes);
        }
    }

    fn index(&self, added: u64, missing: u64) {
        let mut phase = self.phase();
        if !phase.is_indexing {
            phase.is_indexing = true;
            self.bar.reset();
        }
        let [known, unknown] = INDEXING;
        self.bar.set_style(style(if missing > 0 { known } else { unknown }));
        self.bar.set_length(missing);
        self.bar.set_position(added);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_template| ProgressStyle::default_bar())
}

/// Adds up the sizes of all files of a folder, and shows them as the whole.
fn count_bytes(folder: &Path, progress: &Progress, stop: &AtomicBool) {
    let mut bytes = 0;
    for entry in WalkDir::new(folder).into_iter().flatten() {
        if stop.load(Ordering::Relaxed) || progress.bar.is_finished() {
            return;
        }
        if entry.file_type().is_file() {
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    connectors::Progress::expect(progress, bytes);
}
