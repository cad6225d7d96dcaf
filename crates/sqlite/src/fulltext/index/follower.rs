//! The index during an import, on a thread of its own.
//!
//! The index is derived from SQLite, so an import continues if the index cannot be written; the error is reported at
//! its end. The thread that has the lock of the index also adds what other processes write meanwhile. While another process
//! has it, the records are left to that process. An import that reads nothing for a while, such as one of a pipe, commits
//! and gives up the lock.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fetchwell_core::handle::RecordId;
use fetchwell_core::record::RecordData;
use fetchwell_ranking::lexical::content::RecordText;
use fetchwell_ranking::relational::columns::ColumnPlan;
use fetchwell_source::contract::{IndexProgress, StoreError, no_progress};

use super::document::{Entry, Fields, Rows};
use super::editor::{IndexEditor, changes_since};
use super::folder::folder_of;
use super::open::VerifiedFiles;
use crate::database::Database;
use crate::write_lock::IndexLock;

/// Bytes of record text between two commits. Uncommitted text is buffered in memory.
const COMMIT_BYTES: usize = 128_000_000;

/// Minimum time between two commits of changes of other processes, which these may want to search, and time without a
/// batch after which everything is committed.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);

/// Time without a batch after which other processes may write the index.
const MAX_IDLE: Duration = Duration::from_secs(5);

/// Number of batches between the import and the index.
const BATCHES_AHEAD: usize = 1;

/// Index that is updated during an import until the first error.
#[derive(Debug)]
pub(crate) struct IndexFollower {
    /// Path of the store.
    path: PathBuf,
    batches: SyncSender<IndexBatch>,
    events: Receiver<Event>,
    thread: Result<JoinHandle<Result<(), StoreError>>, StoreError>,
}

/// Records of a batch that was written.
#[derive(Debug)]
pub(crate) struct IndexBatch {
    pub(crate) changes: Vec<IndexChange>,
    /// Version of the store before the batch.
    pub(crate) before: i64,
    /// Version of the store after the batch.
    pub(crate) after: i64,
    /// Bytes of their text.
    pub(crate) bytes: usize,
}

/// A record that was written.
#[derive(Debug)]
pub(crate) struct IndexChange {
    pub(crate) rows: Rows,
    pub(crate) key: RecordId,
    /// Fields of the record, unless it was deleted.
    pub(crate) data: Option<RecordData>,
    pub(crate) emitted_at: Option<String>,
    /// True if the index has no entry of the record.
    pub(crate) is_new: bool,
}

/// Message of the thread.
#[derive(Debug)]
enum Event {
    /// Numbers of added and of missing changes.
    Progress(u64, u64),
    /// The index has all changes, or is left to another process.
    Opened,
}

impl IndexFollower {
    /// Opens the index and adds missing changes, unless another process writes it.
    pub(crate) fn open(database: &Database, progress: IndexProgress<'_>) -> Self {
        Self::start(database, None, progress)
    }

    /// Opens the index, which the caller has locked, and adds missing changes.
    pub(crate) fn with_lock(database: &Database, lock: IndexLock) -> Self {
        Self::start(database, Some(lock), &no_progress)
    }

    fn start(database: &Database, lock: Option<IndexLock>, progress: IndexProgress<'_>) -> Self {
        let (batches, received) = sync_channel(BATCHES_AHEAD);
        let (sender, events) = channel();
        let path = database.path();
        let thread = Database::open(path).and_then(|database| {
            let follow = move || FollowedIndex::open(database, lock, sender).follow(&received);
            let thread = thread::Builder::new().name("index".to_owned()).spawn(follow);
            thread.map_err(|error| problem_of(path, &format!("no thread can be started: {error}")))
        });
        let follower = Self { path: path.to_owned(), batches, events, thread };
        follower.report(progress, |event| matches!(event, Event::Opened));
        follower
    }

    /// Adds the records of a batch.
    pub(crate) fn add(&self, batch: IndexBatch) {
        // The thread has ended with an error if it does not receive the batch.
        let _ = self.batches.send(batch);
    }

    /// Adds the records of a batch, which are read from the store. `bytes` is the size of their text.
    pub(crate) fn add_written(&self, bytes: usize) {
        // No index has this version, so all missing changes are read.
        let (before, after) = (i64::MIN, i64::MIN);
        self.add(IndexBatch { changes: Vec::new(), before, after, bytes });
    }

    /// Adds what is missing, commits, and waits until segments are merged. Reopens an index that failed, which rebuilds a
    /// damaged one. Returns the error that remains.
    pub(crate) fn finish(self, progress: IndexProgress<'_>) -> Option<StoreError> {
        let Self { path, batches, events, thread } = self;
        drop(batches);
        for event in &events {
            if let Event::Progress(added, missing) = event {
                progress(added, missing);
            }
        }
        let panicked = |_panic| Err(problem_of(&path, "an internal error stopped it; please report it"));
        thread.and_then(|thread| thread.join().unwrap_or_else(panicked)).err()
    }

    /// Reports the progress until an event, or until the thread ends.
    fn report(&self, progress: IndexProgress<'_>, is_last: impl Fn(&Event) -> bool) {
        for event in &self.events {
            match event {
                Event::Progress(added, missing) => progress(added, missing),
                last if is_last(&last) => return,
                Event::Opened => {}
            }
        }
    }
}

impl IndexChange {
    fn into_entry(self, fields: Fields, plan: &mut ColumnPlan) -> Entry {
        let Self { rows, key, data, emitted_at, is_new } = self;
        let Some(data) = data else { return Entry::removal(rows.record) };
        let text = RecordText { key: key.as_str(), data: &data, emitted_at: emitted_at.as_deref() };
        let entry = Entry::new(fields, rows, &text, plan);
        if is_new { entry.for_new_record() } else { entry }
    }
}

/// The index on its thread.
struct FollowedIndex {
    database: Database,
    fields: Fields,
    verified: VerifiedFiles,
    events: Sender<Event>,
    state: State,
    /// Bytes of text added since the last commit.
    uncommitted: usize,
    committed_at: Instant,
}

enum State {
    /// The index has every change up to the last batch.
    Following(Box<IndexEditor>),
    /// Another process writes the index, or may do so.
    Elsewhere,
    Failed(StoreError),
}

impl FollowedIndex {
    fn open(database: Database, lock: Option<IndexLock>, events: Sender<Event>) -> Self {
        let (_, fields) = Fields::schema();
        let (verified, state) = (VerifiedFiles::default(), State::Elsewhere);
        let mut index =
            Self { database, fields, verified, events, state, uncommitted: 0, committed_at: Instant::now() };
        index.state = match lock {
            Some(lock) => index.complete(lock),
            None => index.try_open(),
        };
        // The import has ended if the event is not received.
        let _ = index.events.send(Event::Opened);
        index
    }

    /// Follows an import to its end. Returns the error that remains then.
    fn follow(mut self, batches: &Receiver<IndexBatch>) -> Result<(), StoreError> {
        let mut last_batch = Instant::now();
        loop {
            match batches.recv_timeout(COMMIT_INTERVAL) {
                Ok(batch) => {
                    self.add(batch);
                    last_batch = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) => self.idle(last_batch.elapsed()),
                Err(RecvTimeoutError::Disconnected) => return self.finish(),
            }
        }
    }

    /// Opens the index and adds missing changes, unless another process has its lock.
    fn try_open(&self) -> State {
        match IndexLock::try_take(self.database.path()) {
            Ok(Some(lock)) => self.complete(lock),
            Ok(None) => State::Elsewhere,
            Err(error) => State::Failed(error),
        }
    }

    fn complete(&self, lock: IndexLock) -> State {
        let complete = || {
            let mut editor = IndexEditor::open(&self.database, lock, &self.verified, None)?;
            if let Some(problem) = editor.damage() {
                let store = self.database.path().display();
                tracing::error!(%store, problem, "the search index was damaged and is rebuilt from the store");
            }
            self.catch_up(&mut editor)?;
            Ok(editor)
        };
        match complete() {
            Ok(editor) => State::Following(Box::new(editor)),
            Err(error) => State::Failed(error),
        }
    }

    fn catch_up(&self, editor: &mut IndexEditor) -> Result<(), StoreError> {
        let report = |added, missing| {
            let _ = self.events.send(Event::Progress(added, missing));
        };
        catch_up(editor, &self.database, &report)
    }

    /// Adds the records of a batch, and the changes of other processes before it.
    fn add(&mut self, batch: IndexBatch) {
        if let State::Elsewhere = self.state {
            // It has the records of this batch then.
            self.state = self.try_open();
        }
        let State::Following(editor) = &mut self.state else { return };
        let IndexBatch { changes, before, after, bytes } = batch;
        self.uncommitted += bytes;
        let is_alone = editor.added() == before;
        let is_due =
            self.uncommitted >= COMMIT_BYTES || !is_alone && self.committed_at.elapsed() >= COMMIT_INTERVAL;
        let (fields, database) = (self.fields, &self.database);
        let add = || {
            if is_alone {
                let plan = editor.plan();
                let entries = changes.into_iter().map(|change| change.into_entry(fields, plan)).collect();
                editor.add(entries, after)?;
            } else {
                while editor.add_missing(database)?.is_some() {}
            }
            if is_due { editor.commit() } else { Ok(()) }
        };
        let added = add();
        self.note(added, is_due);
    }

    /// Makes everything searchable while the import reads nothing, and lets other processes write the index after a while.
    fn idle(&mut self, elapsed: Duration) {
        match std::mem::replace(&mut self.state, State::Elsewhere) {
            State::Following(mut editor) => {
                let mut commit = || {
                    while editor.add_missing(&self.database)?.is_some() {}
                    editor.commit()
                };
                let committed = commit();
                let ended = committed.and_then(|()| {
                    if elapsed < MAX_IDLE {
                        self.state = State::Following(editor);
                        return Ok(());
                    }
                    editor.finish()
                });
                self.note(ended, true);
            }
            other => self.state = other,
        }
    }

    /// Notes the result of a change of the index.
    fn note(&mut self, changed: Result<(), StoreError>, is_committed: bool) {
        if is_committed {
            (self.uncommitted, self.committed_at) = (0, Instant::now());
        }
        if let Err(error) = changed {
            self.state = State::Failed(error);
        }
    }

    fn finish(mut self) -> Result<(), StoreError> {
        let finished = match std::mem::replace(&mut self.state, State::Elsewhere) {
            State::Following(mut editor) => self.catch_up(&mut editor).and_then(|()| editor.finish()),
            State::Elsewhere => self.finish_anew(),
            State::Failed(error) => Err(error),
        };
        match finished {
            Err(error) if !matches!(error, StoreError::IndexForeign { .. }) => {
                tracing::warn!(%error, "the search index did not follow the import and is opened anew");
                self.finish_anew()
            }
            finished => finished,
        }
    }

    /// Opens the index again, and waits until segments are merged.
    fn finish_anew(&self) -> Result<(), StoreError> {
        match self.try_open() {
            State::Following(editor) => editor.finish(),
            // The other process adds the records of this one.
            State::Elsewhere => Ok(()),
            State::Failed(error) => Err(error),
        }
    }
}

/// Adds all missing changes, and commits.
pub(super) fn catch_up(
    editor: &mut IndexEditor,
    database: &Database,
    progress: IndexProgress<'_>,
) -> Result<(), StoreError> {
    let missing = changes_since(database, editor.added())?.unsigned_abs();
    let added = std::cell::Cell::new(0);
    editor.catch_up(database, &|count| {
        added.set(added.get() + count);
        progress(added.get(), missing.max(added.get()));
    })
}

fn problem_of(store: &Path, problem: &str) -> StoreError {
    StoreError::Index { path: folder_of(store), problem: problem.to_owned() }
}
