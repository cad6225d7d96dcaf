//! The writer of an index. One process at a time has it, under the lock of the index. Records can be written meanwhile.

use std::path::{Path, PathBuf};

use fetchwell_core::saturate::saturated;
use fetchwell_ranking::lexical::content::RecordText;
use fetchwell_ranking::relational::columns::ColumnPlan;
use fetchwell_source::contract::StoreError;
use rusqlite::Connection;
use tantivy::{IndexWriter, TantivyError, Term};

use super::document::{Entry, Fields, IndexDocument, Rows, row_term};
use super::fault::{IndexFault, guard};
use super::folder::{IndexFolder, folder_of, next_folder_of, replace_by_next};
use super::open::{OpenIndex, VerifiedFiles, listed_files};
use super::payload::CommitPayload;
use crate::database::{Database, identity};
use crate::error::index_error;
use crate::write_lock::IndexLock;

/// Memory limit for the documents of one segment, in bytes. Larger segments are merged less often: with half of it, an
/// import of a million records spends a quarter of its time on merges.
const WRITER_MEMORY: usize = 100_000_000;

/// Number of documents between commits while catching up (about a second of work), so that an interrupted run
/// continues from there.
const COMMIT_EVERY: usize = 10_000;

/// Number of changes read at a time while catching up.
const CHANGES_AT_ONCE: usize = 2_000;

/// Index that is being written. Holds the lock of the index.
pub(crate) struct IndexEditor {
    store: PathBuf,
    uuid: String,
    pub(crate) fields: Fields,
    writer: IndexWriter<IndexDocument>,
    /// Version up to which all changes were added.
    added: i64,
    /// Version that the last commit contains.
    version: i64,
    damage: Option<String>,
    /// Fields that have columns.
    plan: ColumnPlan,
    /// True if the index is built beside another one that it replaces when it is complete.
    is_next: bool,
    lock: IndexLock,
}

impl std::fmt::Debug for IndexEditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexEditor").field("version", &self.version).finish_non_exhaustive()
    }
}

impl IndexEditor {
    /// Opens the index for writing, or a new one beside it if it has the previous layout. Verifies all its files, because a merge would copy damaged ones into new files,
    /// and rebuilds it if it is missing, unusable or known to be damaged.
    pub(crate) fn open(
        database: &Database,
        lock: IndexLock,
        verified: &VerifiedFiles,
        known_damage: Option<String>,
    ) -> Result<Self, StoreError> {
        let store = database.path().to_owned();
        let (uuid, newest) = database.read(identity)?;
        let (folder, opened, is_next) = open_newest(&store, &uuid, known_damage.is_some());
        let failed = |error: &TantivyError| index_error(&store, &folder.path, error);
        let opened = opened.and_then(|open| {
            let files = guard(|| open.files()).map_err(|error| IndexFault::from_tantivy(&error))?;
            verified.verify(files, u64::MAX)?;
            open.read_all_segments().map_err(|error| IndexFault::from_tantivy(&error))?;
            if let Some(problem) = known_damage {
                return Err(IndexFault::Damaged(problem));
            }
            // The index is newer than its store, which was replaced by an earlier copy.
            if open.version > newest { Err(IndexFault::Outdated) } else { Ok(open) }
        });
        let mut damage = None;
        let OpenIndex { index, fields, version, columns, .. } = match opened {
            Ok(open) => {
                let segments = open.index.load_metas().map_err(|error| failed(&error))?.segments;
                let listed: Vec<String> = segments.iter().flat_map(listed_files).collect();
                folder.claim().map_err(|error| failed(&error.into()))?;
                folder.remove_unlisted(|name| listed.iter().any(|known| known == name));
                open
            }
            Err(fault @ (IndexFault::Foreign(_) | IndexFault::Unreadable(_))) => {
                return Err(fault.into_error(&folder.path));
            }
            Err(fault) => {
                if let IndexFault::Damaged(problem) = fault {
                    damage = Some(problem);
                }
                OpenIndex::create(&folder).map_err(|error| failed(&error))?
            }
        };
        let writer =
            guard(|| index.writer_with_num_threads(1, WRITER_MEMORY)).map_err(|error| failed(&error))?;
        let plan = ColumnPlan::new(columns);
        Ok(Self { store, uuid, fields, writer, added: version, version, damage, plan, is_next, lock })
    }

    /// Returns the damage of the index that this one replaces.
    pub(crate) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Returns the number of changes that the index lacks.
    pub(crate) fn behind(&self, database: &Database) -> Result<i64, StoreError> {
        changes_since(database, self.version)
    }

    /// Adds all missing changes and commits. Calls `progress` with the number of changes that were added.
    pub(crate) fn catch_up(&mut self, database: &Database, progress: &dyn Fn(u64)) -> Result<(), StoreError> {
        let mut uncommitted = 0;
        while let Some(count) = self.add_missing(database)? {
            progress(count as u64);
            uncommitted += count;
            if uncommitted >= COMMIT_EVERY {
                self.commit()?;
                uncommitted = 0;
            }
        }
        self.commit()
    }

    /// Adds the next missing changes. Returns their number, or `None` if the index has all of them.
    pub(super) fn add_missing(&mut self, database: &Database) -> Result<Option<usize>, StoreError> {
        let (fields, after, plan) = (self.fields, self.added, &mut self.plan);
        // Read before the changes: other processes write meanwhile.
        let newest = database.read(identity)?.1;
        let (changes, last) = database.read(|sqlite| changes_after(sqlite, fields, after, plan))?;
        let Some(last) = last else {
            self.added = newest.max(after);
            return Ok(None);
        };
        let count = changes.len();
        self.add(changes, last)?;
        Ok(Some(count))
    }

    /// Returns the choice of the fields that have columns.
    pub(super) fn plan(&mut self) -> &mut ColumnPlan {
        &mut self.plan
    }

    /// Returns the version up to which all changes were added.
    pub(super) fn added(&self) -> i64 {
        self.added
    }

    /// Replaces the entries of some records, of all changes up to `version` that were not added before. They become searchable
    /// with the next commit and may be buffered in memory until then.
    pub(super) fn add(&mut self, entries: Vec<Entry>, version: i64) -> Result<(), StoreError> {
        let add = || {
            for Entry { record, document, replaces } in entries {
                if replaces {
                    self.writer.delete_term(Term::from_field_u64(self.fields.record, row_term(record)));
                }
                if let Some(document) = document {
                    self.writer.add_document(document)?;
                }
            }
            Ok(())
        };
        guard(add).map_err(|error| self.error(&error))?;
        self.added = version;
        Ok(())
    }

    /// Makes all added entries searchable.
    pub(super) fn commit(&mut self) -> Result<(), StoreError> {
        let version = self.added;
        if version == self.version {
            return Ok(());
        }
        let mut columns: Vec<String> = self.plan.known().map(str::to_owned).collect();
        columns.sort_unstable();
        let payload = CommitPayload::new(&self.uuid, version, columns);
        let payload = serde_json::to_string(&payload).unwrap_or_default();
        let commit = || {
            let mut commit = self.writer.prepare_commit()?;
            commit.set_payload(&payload);
            commit.commit()
        };
        let committed = guard(commit);
        committed.map_err(|error| self.error(&error))?;
        self.version = version;
        Ok(())
    }

    /// Waits until segments are merged, which makes searches fast. Puts an index that was built beside another one into
    /// its place.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let Self { store, uuid, writer, is_next, lock, .. } = self;
        let failed = |error: TantivyError| index_error(&store, &folder_of(&store), &error);
        guard(|| writer.wait_merging_threads()).map_err(failed)?;
        if is_next {
            replace_by_next(&store, &uuid).map_err(|error| failed(error.into()))?;
        }
        drop(lock);
        Ok(())
    }

    fn error(&self, error: &TantivyError) -> StoreError {
        index_error(&self.store, &folder_of(&self.store), error)
    }
}

/// Opens the index that is written to: that of the store, or the one beside it that replaces it. Returns its folder, and
/// true if it is the latter.
fn open_newest(
    store: &Path,
    uuid: &str,
    is_damaged: bool,
) -> (IndexFolder, Result<OpenIndex, IndexFault>, bool) {
    let folder = IndexFolder::new(folder_of(store), store, uuid);
    let next = IndexFolder::new(next_folder_of(store), store, uuid);
    match OpenIndex::open(&folder, uuid) {
        Ok(open) if open.is_previous && !is_damaged => {
            // One that an earlier release began has a previous layout, too.
            let opened = OpenIndex::open(&next, uuid)
                .and_then(|open| if open.is_previous { Err(IndexFault::Outdated) } else { Ok(open) });
            (next, opened, true)
        }
        Err(IndexFault::Missing) => match OpenIndex::open(&next, uuid) {
            Ok(open) if !open.is_previous => (next, Ok(open), true),
            _ => (folder, Err(IndexFault::Missing), false),
        },
        opened => (folder, opened, false),
    }
}

/// Returns the number of records that changed after a version.
pub(crate) fn changes_since(database: &Database, version: i64) -> Result<i64, StoreError> {
    database.read(|sqlite| {
        let mut statement = sqlite.prepare_cached("SELECT count(*) FROM records WHERE version > ?1")?;
        statement.query_row([version], |row| row.get(0))
    })
}

type Changes = (Vec<Entry>, Option<i64>);

/// Returns the next changes after a version, with the version of the last one.
fn changes_after(
    sqlite: &Connection,
    fields: Fields,
    after: i64,
    plan: &mut ColumnPlan,
) -> Result<Changes, rusqlite::Error> {
    let mut statement = sqlite.prepare_cached(
        "SELECT r.id, s.connection, r.key, r.data, r.version, s.id, r.emitted_at
         FROM records r JOIN streams s ON s.id = r.stream
         WHERE r.version > ?1 ORDER BY r.version LIMIT ?2",
    )?;
    let mut rows = statement.query((after, saturated::<i64>(CHANGES_AT_ONCE)))?;
    let (mut entries, mut last) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        let record = row.get(0)?;
        let data = row.get_ref(3)?.as_str_or_null()?.and_then(|data| serde_json::from_str(data).ok());
        entries.push(match data {
            Some(data) => {
                let rows = Rows { record, stream: row.get(5)?, connection: row.get(1)? };
                let text = RecordText {
                    key: row.get_ref(2)?.as_str()?,
                    data: &data,
                    emitted_at: row.get_ref(6)?.as_str_or_null()?,
                };
                Entry::new(fields, rows, &text, plan)
            }
            None => Entry::removal(record),
        });
        last = Some(row.get(4)?);
    }
    Ok((entries, last))
}
