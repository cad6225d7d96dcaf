//! Parses files on several threads.
//!
//! One thread lists the files, several read and parse those that become one record each, and the caller's thread
//! writes the records in the order of the list. Files of other kinds (archives, tables, mailboxes) are passed on unread, because
//! they can have any number of records. The number and the bytes of files that are read ahead are bounded.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use parking_lot::{Condvar, Mutex};

use super::super::ImportError;
use super::super::attached::AttachmentReader;
use super::super::depth::PARSER_STACK_BYTES;
use super::super::item::{FileRecord, Item};
use super::super::skips::Problem;
use super::folder::FolderEntry;
use super::read::detect_selected;
use super::record::read_record;
use super::selection::FileSelection;

/// Maximum number of threads that parse.
const MAX_PARSERS: usize = 8;

/// Maximum number of files between the list and the writer, for each parser.
const FILES_PER_PARSER: usize = 16;

/// Maximum bytes of these files. A larger file is read alone.
const MAX_BYTES_AHEAD: u64 = 64 * 1024 * 1024;

/// An entry of the list, in its order.
pub(crate) enum ListEntry {
    /// A file that is one record.
    Record {
        /// Record of the file.
        record: Box<FileRecord>,
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// A file that cannot be opened.
    Unopened {
        /// Path in the folder.
        path: String,
        /// Error of the system.
        error: io::Error,
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// A file that cannot be read, with the reason.
    Rejected {
        /// Path in the folder.
        path: String,
        /// Reason with a text for people.
        problem: Problem,
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// Something that the writer handles itself: a file of another kind, a link and so on.
    Other(FolderEntry),
}

/// Function that calls its argument with each entry of a list.
type List<'a> =
    dyn Fn(&mut dyn FnMut(FolderEntry) -> Result<(), ImportError>) -> Result<(), ImportError> + Sync + 'a;

/// Files to parse.
pub(crate) struct ParseInput<'a, State> {
    /// File or folder of the import. A file that is the whole import is read as the selected kind.
    pub(crate) root: &'a Path,
    pub(crate) selection: &'a FileSelection,
    /// Reader of the attachments of messages.
    pub(crate) attachments: &'a dyn AttachmentReader,
    /// False if the writer reads all files itself, since the records depend on their order.
    pub(crate) parses: bool,
    /// Entries of the import.
    pub(crate) list: &'a List<'a>,
    /// Maximum number of files in the list, as far as it is known.
    pub(crate) max_files: usize,
    /// Function that reads the state of a file before the file is parsed, on the same thread.
    pub(crate) read_state: &'a (dyn Fn(&Path) -> State + Sync),
}

/// A file to parse, and the channel for its result.
struct Job<State> {
    file: PathBuf,
    path: String,
    bytes: u64,
    result: SyncSender<(ListEntry, State)>,
}

/// Result that the writer waits for, in the order of the list.
enum PendingResult<State> {
    File { path: String, bytes: u64, result: Receiver<(ListEntry, State)> },
    Other(FolderEntry),
}

/// Parses files on several threads, and calls `write` with each entry in the order of the list. Entries that are no files
/// have no state.
pub(crate) fn parse_all<State: Send>(
    input: &ParseInput<'_, State>,
    write: &mut dyn FnMut(ListEntry, Option<State>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let root = input.root;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let parsers = cores.min(input.max_files).clamp(1, MAX_PARSERS);
    let (pending, results) = sync_channel::<PendingResult<State>>(parsers * FILES_PER_PARSER);
    let (jobs, queue) = sync_channel::<Job<State>>(parsers * FILES_PER_PARSER);
    let (queue, ahead) = (Mutex::new(queue), BytesAhead::default());
    thread::scope(|scope| {
        let start = |name: &str| thread::Builder::new().name(name.to_owned()).stack_size(PARSER_STACK_BYTES);
        let failed = |error: io::Error| ImportError::Unreadable {
            path: root.to_owned(),
            problem: format!("no thread can be started: {error}"),
        };
        // Dropped at the end or at the first error, which wakes and ends all threads.
        let results = ResultReceiver { results, ahead: &ahead };
        for _ in 0..parsers {
            start("parse").spawn_scoped(scope, || parse_jobs(&queue, &ahead, input)).map_err(failed)?;
        }
        let (read_ahead, walker) = (&ahead, start("walk"));
        // The walk owns the senders: the parsers and the writer end with it.
        let walker = walker
            .spawn_scoped(scope, move || list_into(input, read_ahead, &pending, &jobs))
            .map_err(failed)?;
        while let Ok(next) = results.results.recv() {
            match next {
                PendingResult::Other(found) => write(ListEntry::Other(found), None)?,
                PendingResult::File { path, bytes, result } => {
                    match result.recv() {
                        Ok((parsed, state)) => write(parsed, Some(state))?,
                        Err(_panic) => write(panicked(path, bytes), None)?,
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
struct ResultReceiver<'a, State> {
    results: Receiver<PendingResult<State>>,
    ahead: &'a BytesAhead,
}

impl<State> Drop for ResultReceiver<'_, State> {
    fn drop(&mut self) {
        self.ahead.close();
    }
}

fn list_into<State>(
    input: &ParseInput<'_, State>,
    ahead: &BytesAhead,
    pending: &SyncSender<PendingResult<State>>,
    jobs: &SyncSender<Job<State>>,
) -> Result<(), ImportError> {
    // The writer has an error of its own, or was stopped, if it receives nothing any more: this error is not shown.
    (input.list)(&mut |found| match found {
        FolderEntry::File { file, path } => {
            let bytes = fs::metadata(&file).map_or(0, |metadata| metadata.len());
            if !ahead.acquire(bytes) {
                return Err(ImportError::Stopped);
            }
            let (result, receiver) = sync_channel(1);
            pending
                .send(PendingResult::File { path: path.clone(), bytes, result: receiver })
                .map_err(|_closed| ImportError::Stopped)?;
            jobs.send(Job { file, path, bytes, result }).map_err(|_closed| ImportError::Stopped)
        }
        other => pending.send(PendingResult::Other(other)).map_err(|_closed| ImportError::Stopped),
    })
}

fn parse_jobs<State>(queue: &Mutex<Receiver<Job<State>>>, ahead: &BytesAhead, input: &ParseInput<'_, State>) {
    loop {
        let job = queue.lock().recv();
        let Ok(Job { file, path, bytes, result }) = job else { return };
        if !ahead.is_closed() {
            let state = (input.read_state)(&file);
            let parsed = if input.parses {
                parse(file, path, bytes, input)
            } else {
                ListEntry::Other(FolderEntry::File { file, path })
            };
            // The writer has ended if the result is not received.
            let _ = result.send((parsed, state));
        }
    }
}

fn parse<State>(file: PathBuf, path: String, bytes: u64, input: &ParseInput<'_, State>) -> ListEntry {
    let ParseInput { root, selection, attachments, .. } = *input;
    let is_named = file == root;
    let mut item = match Item::open(path.clone(), &file) {
        Ok(item) => item,
        Err(error) => return ListEntry::Unopened { path, error, bytes },
    };
    let parsed = catch_unwind(AssertUnwindSafe(|| match detect_selected(&item, selection, is_named) {
        Some(kind) => read_record(kind, &mut item, selection, attachments).transpose(),
        None => Ok(None),
    }));
    match parsed {
        Ok(Ok(Some(record))) => ListEntry::Record { record: Box::new(record), bytes },
        Ok(Ok(None)) => ListEntry::Other(FolderEntry::File { file, path }),
        Ok(Err(problem)) => ListEntry::Rejected { path, problem, bytes },
        Err(_panic) => panicked(path, bytes),
    }
}

/// Returns the result for a file that caused a panic of its reader.
fn panicked(path: String, bytes: u64) -> ListEntry {
    ListEntry::Rejected { path, problem: Problem::internal(), bytes }
}

/// Bytes of the files between the walk and the writer.
#[derive(Debug, Default)]
struct BytesAhead {
    state: Mutex<ReadAhead>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ReadAhead {
    bytes: u64,
    is_closed: bool,
}

impl BytesAhead {
    /// Waits until there is room for a file. Returns false if the writer has ended.
    fn acquire(&self, bytes: u64) -> bool {
        let mut ahead = self.state.lock();
        while !ahead.is_closed && ahead.bytes > 0 && ahead.bytes.saturating_add(bytes) > MAX_BYTES_AHEAD {
            self.changed.wait(&mut ahead);
        }
        ahead.bytes = ahead.bytes.saturating_add(bytes);
        !ahead.is_closed
    }

    fn release(&self, bytes: u64) {
        let mut ahead = self.state.lock();
        ahead.bytes = ahead.bytes.saturating_sub(bytes);
        self.changed.notify_all();
    }

    fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
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
            assert_eq!(ahead.state.lock().bytes, 1);
            let large = scope.spawn(|| ahead.acquire(MAX_BYTES_AHEAD));
            // The writer ends, so the file is not read any more.
            ahead.close();
            assert!(!large.join().unwrap());
        });
    }
}
