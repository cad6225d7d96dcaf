//! The files of folders by kind, counted within bounds of number and time.
//!
//! Only names are read. A folder on a slow disk, or one that does not answer, is counted as far as time allows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use fetchwell_connectors::{FileKind, is_generated, is_hidden};
use parking_lot::Mutex;
use serde::Serialize;
use walkdir::{DirEntry, WalkDir};

use super::super::super::print::{counted, grouped};

/// Maximum number of files that are counted in a folder.
const MAX_FILES: u64 = 50_000;

/// Maximum number of files and folders that are looked at in a folder, with those that an import leaves out.
const MAX_ENTRIES: u64 = 200_000;

/// Maximum time for all folders.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Number of kinds that a description names.
const MAX_KINDS: usize = 4;

/// The files of a folder by the kinds that their names suggest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct FileCounts {
    /// Number of all files.
    total: u64,
    /// True if there may be more.
    is_partial: bool,
    /// Files of kinds that are read.
    kinds: BTreeMap<&'static str, u64>,
}

impl FileCounts {
    /// Returns true if the folder has no file.
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0 && !self.is_partial
    }

    /// Returns the counts as a phrase, such as `1,204 files: 320 pdf, 884 of no kind that is read`.
    pub(crate) fn describe(&self) -> String {
        let all = match (self.is_partial, self.total) {
            (true, 0) => return "not counted, because the disk is slow".to_owned(),
            (true, total) => format!("more than {}", counted(total, "file")),
            (false, total) => counted(total, "file"),
        };
        let mut kinds: Vec<(&&'static str, &u64)> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let named = kinds.iter().take(MAX_KINDS).map(|(kind, count)| format!("{} {kind}", grouped(**count)));
        let mut parts: Vec<String> = named.collect();
        let more: u64 = kinds.iter().skip(MAX_KINDS).map(|(_, count)| **count).sum();
        let others = self.total.saturating_sub(kinds.iter().map(|(_, count)| **count).sum());
        parts.extend((more > 0).then(|| format!("{} of more kinds", grouped(more))));
        parts.extend((others > 0).then(|| format!("{} of no kind that is read", grouped(others))));
        if parts.is_empty() { all } else { format!("{all}: {}", parts.join(", ")) }
    }
}

/// The count of a folder on a thread of its own.
struct RunningCount {
    counts: Arc<Mutex<FileCounts>>,
    /// Nothing is sent: the end of the thread ends the channel.
    ended: Receiver<()>,
}

/// Counts the files of folders until the time is over.
pub(crate) fn count_files(folders: Vec<PathBuf>) -> Vec<FileCounts> {
    let (until, stop) = (Instant::now() + MAX_TIME, Arc::new(AtomicBool::new(false)));
    let running: Vec<RunningCount> =
        folders.into_iter().map(|folder| RunningCount::start(folder, &stop)).collect();
    let counts = running.iter().map(|count| count.finish(until)).collect();
    stop.store(true, Ordering::Relaxed);
    counts
}

impl RunningCount {
    fn start(folder: PathBuf, stop: &Arc<AtomicBool>) -> Self {
        let counts = Arc::new(Mutex::new(FileCounts { is_partial: true, ..FileCounts::default() }));
        let (done, ended) = channel();
        let (shared, stop) = (Arc::clone(&counts), Arc::clone(stop));
        // A thread that waits for a disk is left behind. Without a thread, the folder counts as slow.
        let _ = thread::Builder::new().name("count".to_owned()).spawn(move || {
            count_into(&folder, &shared, &stop);
            drop(done);
        });
        Self { counts, ended }
    }

    /// Returns the counts at the end of the thread or of the time.
    fn finish(&self, until: Instant) -> FileCounts {
        let _ = self.ended.recv_timeout(until.saturating_duration_since(Instant::now()));
        self.counts.lock().clone()
    }
}

/// Counts files as an import reads them: without hidden files, links and generated folders. Rules of `.gitignore` are not read.
fn count_into(folder: &Path, counts: &Mutex<FileCounts>, stop: &AtomicBool) {
    let is_read = |entry: &DirEntry| {
        let is_skipped = is_hidden(entry.path()) || entry.file_type().is_dir() && is_generated(entry.path());
        entry.depth() == 0 || !is_skipped
    };
    // Links are not followed, so a cycle of them has an end. A folder that cannot be read has no files.
    let mut entries = 0;
    for entry in WalkDir::new(folder).into_iter().filter_entry(is_read) {
        entries += 1;
        let is_full = entries > MAX_ENTRIES || counts.lock().total >= MAX_FILES;
        if is_full || stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_file() {
            let mut counts = counts.lock();
            counts.total += 1;
            if let Some(kind) = FileKind::from_name(entry.path()) {
                *counts.kinds.entry(kind.as_str()).or_default() += 1;
            }
        }
    }
    counts.lock().is_partial = false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_described() {
        let counts = |total, is_partial, kinds: &[(&'static str, u64)]| FileCounts {
            total,
            is_partial,
            kinds: kinds.iter().copied().collect(),
        };
        let many = [("pdf", 9), ("docx", 7), ("markdown", 5), ("xlsx", 3), ("csv", 2), ("text", 1)];
        for (counts, expect) in [
            (counts(0, false, &[]), "0 files"),
            (counts(0, true, &[]), "not counted, because the disk is slow"),
            (counts(1, false, &[("pdf", 1)]), "1 file: 1 pdf"),
            (
                counts(1_200, true, &many),
                "more than 1,200 files: 9 pdf, 7 docx, 5 markdown, 3 xlsx, 3 of more kinds, 1,173 of no kind that is read",
            ),
        ] {
            assert_eq!(counts.describe(), expect);
        }
    }

    #[test]
    fn a_large_folder_is_counted_in_part() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(place.path().join(name), "x").unwrap();
        std::fs::create_dir_all(place.path().join("node_modules/x")).unwrap();
        // A folder of a Maildir is read, although its name begins with a dot.
        for name in ["cur", "new"] {
            std::fs::create_dir_all(place.path().join(".Sent").join(name)).unwrap();
        }
        ["a.pdf", "b.PDF", "c.bin", ".hidden.pdf", "node_modules/x/d.md", ".Sent/cur/1.host:2,S"]
            .into_iter()
            .for_each(write);
        let missing = place.path().join("missing");
        let counted = count_files(vec![place.path().to_owned(), missing]);
        assert_eq!(
            counted,
            [
                FileCounts { total: 4, is_partial: false, kinds: [("pdf", 2)].into_iter().collect() },
                FileCounts::default()
            ]
        );
        let counts = Mutex::new(FileCounts { is_partial: true, total: MAX_FILES, ..FileCounts::default() });
        count_into(place.path(), &counts, &AtomicBool::new(false));
        let counts = counts.lock();
        assert_eq!((counts.total, counts.is_partial), (MAX_FILES, true));
    }
}
