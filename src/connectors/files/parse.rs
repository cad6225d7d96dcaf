//! Parses the files of a folder on several threads.
//!
//! One thread walks the folder, several read and parse files that become one record each, and the caller's thread
//! writes the records in the order of the walk. Files of other kinds (archives, tables, mailboxes) are passed on unread, because
//! they can have any number of records. The number and the bytes of files that are read ahead are bounded.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::super::ImportError;
use super::super::depth::PARSER_STACK_BYTES;
use super::super::item::{FileRecord, Item};
use super::folder::{Found, walk};
use super::read::detect_selected;
use super::record::read_record;
use super::selection::FileSelection;

/// Maximum number of threads that parse.
const MAX_PARSERS: usize = 8;

/// Maximum number of files between the walk and the writer, for each parser.
const FILES_PER_PARSER: usize = 16;

/// Maximum bytes of these files. A larger file is read alone.
const MAX_BYTES_AHEAD: u64 = 64 * 1024 * 1024;

/// An entry of the folder, in the order of the walk.
pub(super) enum Parsed {
    /// A file that is one record.
    Record {
        /// Record of the file.
        record: Box<FileRecord>,
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// A file that cannot be read, with the reason.
    Rejected {
        /// Path in the folder.
        path: String,
        /// Reason for people.
        reason: String,
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// Something that the writer handles itself: a file of another kind, a link and so on.
    Other(Found),
}

/// A file to parse, and the channel for its result.
struct Job {
    file: PathBuf,
    path: String,
    bytes: u64,
    result: SyncSender<Parsed>,
}

/// Result that the writer waits for, in the order of the walk.
enum Pending {
    File { bytes: u64, result: Receiver<Parsed> },
    Other(Found),
}

/// Walks a folder, parses its files on several threads, and calls `write` with each entry in the order of the walk.
pub(super) fn parse_all(
    root: &Path,
    selection: &FileSelection,
    write: &mut dyn FnMut(Parsed) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let parsers = thread::available_parallelism().map_or(1, usize::from).clamp(1, MAX_PARSERS);
    let (pending, results) = sync_channel::<Pending>(parsers * FILES_PER_PARSER);
    let (jobs, queue) = sync_channel::<Job>(parsers * FILES_PER_PARSER);
    let (queue, ahead) = (Mutex::new(queue), BytesAhead::default());
    thread::scope(|scope| {
        let start = |name: &str| thread::Builder::new().name(name.to_owned()).stack_size(PARSER_STACK_BYTES);
        let failed = |error: std::io::Error| ImportError::Unreadable {
            path: root.to_owned(),
            problem: format!("no thread can be started: {error}"),
        };
        // Dropped at the end or at the first error, which wakes and ends all threads.
        let results = Closing { results, ahead: &ahead };
        for _ in 0..parsers {
            start("parse")
                .spawn_scoped(scope, || parse_jobs(&queue, &ahead, root, selection))
                .map_err(failed)?;
        }
        let (read_ahead, walker) = (&ahead, start("walk"));
        // The walk owns the senders: the parsers and the writer end with it.
        let walker = walker
            .spawn_scoped(scope, move || walk_into(root, read_ahead, &pending, &jobs))
            .map_err(failed)?;
        while let Ok(next) = results.results.recv() {
            match next {
                Pending::Other(found) => write(Parsed::Other(found))?,
                Pending::File { bytes, result } => {
                    // A parser sends exactly one result, also after a panic of a reader.
                    if let Ok(parsed) = result.recv() {
                        write(parsed)?;
                    }
                    ahead.release(bytes);
                }
            }
        }
        walker.join().unwrap_or_else(|_panic| {
            let problem = "an internal error stopped the search for files; please report it".to_owned();
            Err(ImportError::Unreadable { path: root.to_owned(), problem })
        })
    })
}

/// Receiver of the writer. Dropping it wakes the walk, which then ends.
struct Closing<'a> {
    results: Receiver<Pending>,
    ahead: &'a BytesAhead,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.ahead.close();
    }
}

fn walk_into(
    root: &Path,
    ahead: &BytesAhead,
    pending: &SyncSender<Pending>,
    jobs: &SyncSender<Job>,
) -> Result<(), ImportError> {
    // The writer has an error of its own, or was stopped, if it receives nothing any more: this error is not shown.
    walk(root, &mut |found| match found {
        Found::File { file, path } => {
            let bytes = fs::metadata(&file).map_or(0, |metadata| metadata.len());
            if !ahead.acquire(bytes) {
                return Err(ImportError::Stopped);
            }
            let (result, receiver) = sync_channel(1);
            pending
                .send(Pending::File { bytes, result: receiver })
                .map_err(|_closed| ImportError::Stopped)?;
            jobs.send(Job { file, path, bytes, result }).map_err(|_closed| ImportError::Stopped)
        }
        other => pending.send(Pending::Other(other)).map_err(|_closed| ImportError::Stopped),
    })
}

fn parse_jobs(queue: &Mutex<Receiver<Job>>, ahead: &BytesAhead, root: &Path, selection: &FileSelection) {
    loop {
        let job = lock(queue).recv();
        let Ok(Job { file, path, bytes, result }) = job else { return };
        if !ahead.is_closed() {
            // The writer has ended if the result is not received.
            let _ = result.send(parse(file, path, bytes, root, selection));
        }
    }
}

fn parse(file: PathBuf, path: String, bytes: u64, root: &Path, selection: &FileSelection) -> Parsed {
    let is_named = file == root;
    let parsed = catch_unwind(AssertUnwindSafe(|| {
        let mut item = Item::open(path.clone(), &file).map_err(|error| error.to_string())?;
        match detect_selected(&item, selection, is_named) {
            Some(kind) => read_record(kind, &mut item, selection).transpose(),
            None => Ok(None),
        }
    }));
    match parsed {
        Ok(Ok(Some(record))) => Parsed::Record { record: Box::new(record), bytes },
        Ok(Ok(None)) => Parsed::Other(Found::File { file, path }),
        Ok(Err(reason)) => Parsed::Rejected { path, reason, bytes },
        Err(_panic) => {
            let reason = "an internal error stopped its reader; please report it".to_owned();
            Parsed::Rejected { path, reason, bytes }
        }
    }
}

/// Bytes of the files between the walk and the writer.
#[derive(Debug, Default)]
struct BytesAhead {
    state: Mutex<Ahead>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Ahead {
    bytes: u64,
    is_closed: bool,
}

impl BytesAhead {
    /// Waits until there is room for a file. Returns false if the writer has ended.
    fn acquire(&self, bytes: u64) -> bool {
        let mut ahead = lock(&self.state);
        while !ahead.is_closed && ahead.bytes > 0 && ahead.bytes.saturating_add(bytes) > MAX_BYTES_AHEAD {
            ahead = self.changed.wait(ahead).unwrap_or_else(PoisonError::into_inner);
        }
        ahead.bytes = ahead.bytes.saturating_add(bytes);
        !ahead.is_closed
    }

    fn release(&self, bytes: u64) {
        let mut ahead = lock(&self.state);
        ahead.bytes = ahead.bytes.saturating_sub(bytes);
        self.changed.notify_all();
    }

    fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }
}

fn lock<Value>(mutex: &Mutex<Value>) -> MutexGuard<'_, Value> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_wait_for_room_and_a_large_one_is_alone() {
        let ahead = BytesAhead::default();
        assert!(ahead.acquire(MAX_BYTES_AHEAD * 2));
        thread::scope(|scope| {
            let small = scope.spawn(|| ahead.acquire(1));
            ahead.release(MAX_BYTES_AHEAD * 2);
            assert!(small.join().unwrap());
            assert_eq!(lock(&ahead.state).bytes, 1);
            let large = scope.spawn(|| ahead.acquire(MAX_BYTES_AHEAD));
            // The writer ends, so the file is not read any more.
            ahead.close();
            assert!(!large.join().unwrap());
        });
    }
}
