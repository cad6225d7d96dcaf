//! The open index of a store in this process: keeps it up to date, verifies it, and rebuilds it after loss or damage.
//!
//! Small updates run within the search that needs them, larger ones on a background thread that holds the lock of the
//! index.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use fetchwell_source::SourceError;
use fetchwell_source::contract::{IndexProgress, StoreError};
use fetchwell_state::FileIdentity;
use parking_lot::Mutex;

use super::editor::{IndexEditor, changes_since};
use super::fault::{IndexFault, busy, unwritable};
use super::folder::folder_of;
use super::follower::catch_up;
use super::open::VerifiedFiles;
use super::view::{IndexView, Snapshot};
use crate::database::{Database, identity};
use crate::write_lock::IndexLock;

/// Maximum number of changes that a search adds to the index itself. More are added in the background.
const MAX_INLINE_CHANGES: i64 = 5_000;

/// Maximum bytes of index files verified before use, in hundredths of a second. The rest is verified in the background.
const MAX_INLINE_VERIFICATION: u64 = 64 * 1024 * 1024;

/// Maximum bytes verified before columns are used. To read the records, several times as many bytes, takes longer.
const MAX_COLUMN_VERIFICATION: u64 = 256 * 1024 * 1024;

/// Number of snapshots kept for pagination.
const MAX_SNAPSHOTS: usize = 4;

/// Index of one store in this process.
#[derive(Debug, Default)]
pub(crate) struct CurrentIndex {
    /// Locked while the index is opened or updated, never during a search.
    state: Mutex<State>,
    verified: Arc<VerifiedFiles>,
}

#[derive(Debug, Default)]
struct State {
    /// Id and file of the store that this state belongs to.
    of: Option<(String, FileIdentity)>,
    view: Option<IndexView>,
    recent: VecDeque<Snapshot>,
    /// Background thread that completes the index.
    background: Option<JoinHandle<()>>,
    /// Damage of the index, until a rebuild begins.
    damage: Option<String>,
    /// True if a search failed although the files passed every check; they are then not reused.
    is_distrusted: bool,
    /// True while the background thread rebuilds a lost or damaged index.
    is_rebuilding: bool,
}

/// Completeness of a store's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexState {
    /// The index contains every record.
    Complete,
    /// The index contains every record now; it lacked this many changes.
    Completed(i64),
    /// The index was damaged and has been rebuilt.
    Rebuilt {
        /// Description of the damage.
        problem: String,
        /// Number of records in the new index.
        records: i64,
    },
    /// Another process is writing to the index, which lacks this many changes.
    BeingWritten(i64),
    /// This process cannot write to the index, which lacks this many changes.
    Unwritable(i64),
}

/// Extent of verification before an index is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verification {
    /// At most [`MAX_INLINE_VERIFICATION`] bytes.
    Quick,
    /// Every byte, including files that were verified before.
    Full,
}

impl CurrentIndex {
    /// Adds all missing changes to the index, however long that takes, and rebuilds a damaged one. Calls `progress` with the
    /// numbers of added and of missing changes.
    pub(crate) fn complete(
        &self,
        database: &Database,
        verification: Verification,
        progress: IndexProgress<'_>,
    ) -> Result<IndexState, StoreError> {
        let (uuid, newest) = database.read(identity)?;
        let path = database.path();
        let limit = match verification {
            Verification::Quick => MAX_INLINE_VERIFICATION,
            Verification::Full => {
                self.verified.clear();
                u64::MAX
            }
        };
        let (version, damage) = match IndexView::open(path, &uuid, &self.verified, limit) {
            Ok(view) if view.version == newest && !view.is_previous => return Ok(IndexState::Complete),
            Ok(view) if view.version <= newest => (view.version, None),
            Err(IndexFault::Missing) if newest == 0 => return Ok(IndexState::Complete),
            Ok(_) | Err(IndexFault::Missing | IndexFault::Outdated) => (0, None),
            Err(IndexFault::Damaged(problem)) => (0, Some(problem)),
            Err(fault) => return Err(fault.into_error(&folder_of(path))),
        };
        // An index of the previous layout answers as long as no other can be built.
        let is_answering = damage.is_none() && version > 0 && version == newest;
        let lock = match (IndexLock::try_take(path), damage) {
            (Ok(Some(lock)), _) => lock,
            (Ok(None) | Err(_), None) if is_answering => return Ok(IndexState::Complete),
            (Ok(None), None) => return Ok(IndexState::BeingWritten(changes_since(database, version)?)),
            (Err(StoreError::Unwritable { .. } | StoreError::DiskFull { .. }), None) if version > 0 => {
                return Ok(IndexState::Unwritable(changes_since(database, version)?));
            }
            (Ok(None), Some(problem)) => return Err(busy(path, Some(problem))),
            (Err(StoreError::Unwritable { path, problem }), None) => {
                return Err(StoreError::IndexUnmakeable { path, problem });
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(problem)) => return Err(unwritable(path, &problem, &error)),
        };
        let mut editor = IndexEditor::open(database, lock, &self.verified, None)?;
        let behind = editor.behind(database)?;
        let problem = editor.damage().map(str::to_owned);
        let built = catch_up(&mut editor, database, progress).and_then(|()| editor.finish());
        match built {
            Err(StoreError::Unwritable { .. } | StoreError::DiskFull { .. }) if is_answering => {
                return Ok(IndexState::Complete);
            }
            built => built?,
        };
        Ok(match problem {
            Some(problem) => IndexState::Rebuilt { problem, records: behind },
            None => IndexState::Completed(behind),
        })
    }

    /// Returns the snapshot that an earlier page was read from.
    pub(crate) fn remembered(
        &self,
        database: &Database,
        version: i64,
        is_previous: bool,
    ) -> Result<Snapshot, SourceError> {
        let is_requested = |snapshot: &Snapshot| snapshot.is_at(version, is_previous);
        {
            let mut state = self.state.lock();
            state.reset_if_replaced(database)?;
            if let Some(snapshot) = state.recent.iter().find(|recent| is_requested(recent)) {
                return Ok(snapshot.clone());
            }
        }
        // After a restart, the newest snapshot may be the requested one.
        let (newest, _) = self.newest(database)?;
        if is_requested(&newest) { Ok(newest) } else { Err(SourceError::InvalidCursor) }
    }

    /// Returns the newest snapshot, updated if that is quick, otherwise with a note that says how many records are
    /// missing.
    pub(crate) fn newest(&self, database: &Database) -> Result<(Snapshot, Vec<String>), StoreError> {
        let mut state = self.state.lock();
        let (uuid, newest) = state.reset_if_replaced(database)?;
        state.collect_damage(database.path(), &self.verified);
        let mut view = state.current(database.path(), &uuid, newest, &self.verified)?;
        if view.as_ref().is_some_and(|view| view.version > newest) {
            // Either another process wrote since `newest` was read, or the store was replaced by an earlier copy; in
            // that case the index is rebuilt.
            let newest = database.read(identity)?.1;
            view = view.filter(|view| view.version <= newest);
        }
        let mut notes = Vec::new();
        if let Some(found) = view.take() {
            view = Some(state.in_newest_layout(found, database, &uuid, newest, &self.verified)?);
        }
        if view.as_ref().is_none_or(|view| view.version < newest) {
            let version = view.as_ref().map(|view| view.version);
            notes = match (state.bring_up_to_date(database, &self.verified, version), version) {
                (Ok(notes), _) => notes,
                // A store that this process cannot write to is searched with the index it has.
                (Err(error), Some(version)) => {
                    let behind = changes_since(database, version)?;
                    vec![format!("{behind} records are not searchable yet: {error}")]
                }
                (Err(error), None) => return Err(error),
            };
            state.view = view;
            view = state.current(database.path(), &uuid, newest, &self.verified)?;
            if view.is_none() && state.damage.is_some() && !state.is_busy() {
                state.is_distrusted = true;
                notes = state.bring_up_to_date(database, &self.verified, None)?;
                view = state.current(database.path(), &uuid, newest, &self.verified)?;
            }
        }
        if let Some(view) = view.as_ref().filter(|view| view.version < newest && notes.is_empty()) {
            // Another process put an earlier index in place after the update.
            let behind = changes_since(database, view.version)?;
            notes =
                vec![format!("{behind} records are not searchable yet: another process changes the index")];
        }
        let Some(mut view) = view else {
            let path = database.path();
            return Err(match state.damage.clone() {
                Some(problem) => StoreError::Index { path: folder_of(path), problem },
                None => StoreError::Building(path.to_owned()),
            });
        };
        self.verified.verify_rest(view.take_unverified(), 0);
        let snapshot = view.snapshot();
        if !state.recent.front().is_some_and(|recent| recent.is_at(view.version, view.is_previous)) {
            state.recent.push_front(snapshot.clone());
            state.recent.truncate(MAX_SNAPSHOTS);
        }
        state.view = Some(view);
        Ok((snapshot, notes))
    }

    /// Returns the newest snapshot with columns of fields, for a read that sees the store with this id at the version `newest`; `None`
    /// if there is none now, the snapshot has later changes, or a byte of it was not verified yet. Waits at most `wait` for a search
    /// that opens or updates the index. Begins the change of a previous layout.
    pub(crate) fn with_field_columns(
        &self,
        database: &Database,
        uuid: &str,
        newest: i64,
        wait: Duration,
    ) -> Option<Snapshot> {
        let mut state = self.state.try_lock_for(wait)?;
        let (known, _) = state.reset_if_replaced(database).ok()?;
        if known != uuid {
            return None;
        }
        let path = database.path();
        state.collect_damage(path, &self.verified);
        // An index of later changes may be that of another history, and is opened again when the store has as many changes.
        let view =
            state.current(path, uuid, newest, &self.verified).ok()?.filter(|view| view.version <= newest)?;
        let mut view = state.in_newest_layout(view, database, uuid, newest, &self.verified).ok()?;
        let (unverified, files, snapshot) = (view.take_unverified(), view.files(), view.snapshot());
        state.view = Some(view);
        // Searches do not wait for this.
        drop(state);
        let has_columns = snapshot.fields.has_field_columns();
        self.verified.verify_rest(unverified, if has_columns { MAX_COLUMN_VERIFICATION } else { 0 });
        (has_columns && self.verified.covers(&files)).then_some(snapshot)
    }

    /// Records that a search failed because of the index files; the next search rebuilds them. `is_distrusted` is
    /// true if the files had passed every check.
    pub(crate) fn note_damage(&self, database: &Database, problem: &str, is_distrusted: bool) {
        let mut state = self.state.lock();
        state.note_damage(database.path(), problem);
        state.is_distrusted |= is_distrusted;
    }

    /// Returns the code of the index's fault, if there is one. Starts a rebuild of a lost or damaged index.
    pub(crate) fn check(&self, database: &Database) -> Result<Option<&'static str>, StoreError> {
        // Locked while a search opens the index.
        let Some(mut state) = self.state.try_lock() else { return Ok(None) };
        let (uuid, newest) = state.reset_if_replaced(database)?;
        let path = database.path();
        state.collect_damage(path, &self.verified);
        if state.is_busy() {
            return Ok(state.is_rebuilding.then_some("search_index_rebuilding"));
        }
        let mut is_lost = false;
        if state.damage.is_none() {
            match IndexView::open(path, &uuid, &self.verified, MAX_INLINE_VERIFICATION) {
                Ok(_) | Err(IndexFault::Outdated) => {}
                Err(IndexFault::Missing) => is_lost = newest > 0,
                Err(IndexFault::Damaged(problem)) => state.note_damage(path, &problem),
                Err(IndexFault::Foreign(_)) => return Ok(Some("search_index_foreign")),
                Err(IndexFault::Unreadable(_)) => return Ok(Some("search_index_unreadable")),
            }
        }
        if !is_lost && state.damage.is_none() {
            return Ok(None);
        }
        if let Ok(Some(lock)) = IndexLock::try_take(path) {
            let verified = Arc::clone(&self.verified);
            let rebuild = move |database: &Database| {
                IndexEditor::open(database, lock, &verified, None).and_then(|editor| fill(editor, database))
            };
            state.spawn(path, rebuild)?;
            (state.damage, state.is_rebuilding) = (None, true);
        }
        Ok(Some(if is_lost { "search_index_missing" } else { "search_index_damaged" }))
    }
}

impl State {
    /// Returns the store's id and version. Drops the state of a file that has been replaced, because its versions do
    /// not apply to the new one.
    fn reset_if_replaced(&mut self, database: &Database) -> Result<(String, i64), StoreError> {
        let file = database.file()?;
        let (uuid, newest) = database.read(identity)?;
        let of = Some((uuid.clone(), file));
        if self.of != of {
            (self.view, self.recent, self.of, self.damage) = (None, VecDeque::new(), of, None);
        }
        Ok((uuid, newest))
    }

    fn note_damage(&mut self, path: &Path, problem: &str) {
        (self.view, self.recent) = (None, VecDeque::new());
        if self.damage.is_none() {
            let index = folder_of(path);
            tracing::error!(index = %index.display(), problem, "the search index is damaged and is rebuilt from the store");
            self.damage = Some(problem.to_owned());
        }
    }

    /// Takes over the damage that background verification found.
    fn collect_damage(&mut self, path: &Path, verified: &VerifiedFiles) {
        let found = verified.take_damage();
        if let Some(problem) = found {
            self.note_damage(path, &problem);
        }
    }

    /// Returns the open index, refreshed to its newest commit unless it already has every change. Returns `None` and
    /// records the damage if there is no usable index.
    fn current(
        &mut self,
        path: &Path,
        uuid: &str,
        newest: i64,
        verified: &VerifiedFiles,
    ) -> Result<Option<IndexView>, StoreError> {
        if self.damage.is_some() {
            return Ok(None);
        }
        let open = || IndexView::open(path, uuid, verified, MAX_INLINE_VERIFICATION);
        let opened = match self.view.take() {
            // One of the previous layout is opened again, because another may have taken its place.
            Some(view) if view.is_previous => open(),
            Some(view) if view.version == newest => return Ok(Some(view)),
            Some(view) => view.refresh(uuid, verified, MAX_INLINE_VERIFICATION).or_else(|_changed| open()),
            None => open(),
        };
        // A writer, or a copy being put in place, may have replaced files between two reads.
        let opened = opened.or_else(|fault| match fault {
            IndexFault::Damaged(_) => open(),
            other => Err(other),
        });
        match opened {
            Ok(view) => Ok(Some(view)),
            Err(IndexFault::Missing | IndexFault::Outdated) => Ok(None),
            Err(IndexFault::Damaged(problem)) => {
                self.note_damage(path, &problem);
                Ok(None)
            }
            Err(fault) => Err(fault.into_error(&folder_of(path))),
        }
    }

    /// Begins to build the newest layout in place of a complete index of the previous one, which answers until then. Returns the
    /// index to use now. A failure costs no answer.
    fn in_newest_layout(
        &mut self,
        view: IndexView,
        database: &Database,
        uuid: &str,
        newest: i64,
        verified: &Arc<VerifiedFiles>,
    ) -> Result<IndexView, StoreError> {
        if !view.is_previous || view.version != newest {
            return Ok(view);
        }
        match self.bring_up_to_date(database, verified, Some(newest)) {
            Ok(_) if self.is_busy() => {}
            Ok(_) => return Ok(self.current(database.path(), uuid, newest, verified)?.unwrap_or(view)),
            Err(error) => tracing::debug!(%error, "the search index keeps its previous layout"),
        }
        Ok(view)
    }

    /// Returns true if the background thread is running.
    fn is_busy(&mut self) -> bool {
        let is_busy = self.background.as_ref().is_some_and(|background| !background.is_finished());
        self.is_rebuilding &= is_busy;
        is_busy
    }

    /// Adds missing changes: immediately if there are few, otherwise on a background thread. Returns notes for the
    /// answer. `version` is that of the open index, if there is one.
    fn bring_up_to_date(
        &mut self,
        database: &Database,
        verified: &Arc<VerifiedFiles>,
        version: Option<i64>,
    ) -> Result<Vec<String>, StoreError> {
        let path = database.path();
        if self.is_busy() {
            let behind = changes_since(database, version.unwrap_or(0))?;
            // The thread may be replacing the damaged files. If it is not, the next check finds the damage again.
            self.damage = None;
            return Ok(vec![self.progress_note(behind)]);
        }
        let lock = match (IndexLock::try_take(path), self.damage.clone(), version) {
            (Ok(Some(lock)), ..) => lock,
            (Ok(None), None, Some(version)) => {
                let behind = changes_since(database, version)?;
                return Ok(vec![format!(
                    "another process is writing to the store; {behind} records are not searchable yet"
                )]);
            }
            (Ok(None), damage, _) => return Err(busy(path, damage)),
            (Err(error), Some(problem), _) => return Err(unwritable(path, &problem, &error)),
            (Err(StoreError::Unwritable { path, problem }), None, None) => {
                return Err(StoreError::IndexUnmakeable { path, problem });
            }
            (Err(error), None, _) => return Err(error),
        };
        let known_damage = self.damage.clone().filter(|_| self.is_distrusted);
        let editor = IndexEditor::open(database, lock, verified, known_damage)?;
        self.is_distrusted = false;
        let is_damaged = editor.damage().is_some() || self.damage.is_some();
        if let (Some(problem), None) = (editor.damage(), &self.damage) {
            self.note_damage(path, problem);
        }
        self.damage = None;
        let behind = editor.behind(database)?;
        if behind <= MAX_INLINE_CHANGES {
            fill(editor, database)?;
            return Ok(Vec::new());
        }
        self.spawn(path, |database: &Database| fill(editor, database))?;
        self.is_rebuilding = is_damaged;
        let missing = version.map_or(Ok(behind), |version| changes_since(database, version))?;
        Ok(vec![self.progress_note(missing)])
    }

    /// Runs work on the index on a background thread.
    fn spawn(
        &mut self,
        path: &Path,
        work: impl FnOnce(&Database) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let background = Database::open(path)?;
        let run = move || {
            if let Err(error) = work(&background) {
                tracing::error!(%error, "the search index could not be brought up to date");
            }
        };
        match std::thread::Builder::new().name("index".to_owned()).spawn(run) {
            Ok(thread) => self.background = Some(thread),
            Err(error) => tracing::error!(%error, "no thread for the search index"),
        }
        Ok(())
    }

    fn progress_note(&self, behind: i64) -> String {
        let what = if self.is_rebuilding { "rebuilt" } else { "completed" };
        format!("the search index is being {what}; {behind} records are not searchable yet")
    }
}

/// Adds all missing changes and merges the segments.
fn fill(mut editor: IndexEditor, database: &Database) -> Result<(), StoreError> {
    editor.catch_up(database, &|_added| ())?;
    editor.finish()
}
