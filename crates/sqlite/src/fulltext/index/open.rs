//! Opens, creates and verifies an index.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::index::{SegmentId, SegmentMeta};
use tantivy::{Index, IndexMeta, IndexReader, IndexSettings, ReloadPolicy, TantivyError};

use super::directory::FileDirectory;
use super::document::Fields;
use super::fault::{IndexFault, guard};
use super::file::{IndexFile, Stamp};
use super::folder::{IndexFolder, Owner};
use super::payload::{CommitPayload, LAYOUT, PREVIOUS_LAYOUTS};
use super::tokenizer::StoreTokenizer;

/// Opened index of this store.
pub(super) struct OpenIndex {
    pub(super) index: Index,
    pub(super) directory: FileDirectory,
    pub(super) fields: Fields,
    /// Version that the last commit contains.
    pub(super) version: i64,
    /// True if the index has a previous layout. It can be searched, but not written to.
    pub(super) is_previous: bool,
    /// Names of the columns of fields that it may have.
    pub(super) columns: Vec<String>,
}

impl OpenIndex {
    /// Opens the index in a folder of this store.
    pub(super) fn open(folder: &IndexFolder, uuid: &str) -> Result<Self, IndexFault> {
        let unreadable = |error: std::io::Error| IndexFault::Unreadable(error.to_string());
        match folder.owner().map_err(unreadable)? {
            Owner::ThisStore if folder.has_index().map_err(unreadable)? => {}
            Owner::ThisStore | Owner::Vacant => return Err(IndexFault::Missing),
            Owner::Other(reason) => return Err(IndexFault::Foreign(reason)),
        }
        if !folder.is_sealed() {
            return Err(IndexFault::Outdated);
        }
        let directory = FileDirectory::new(&folder.path);
        let index =
            guard(|| Index::open(directory.clone())).map_err(|error| IndexFault::from_tantivy(&error))?;
        let schemas = [Fields::schema(), Fields::schema_of_words(), Fields::previous_schema()];
        let Some((_, fields)) = schemas.into_iter().find(|(schema, _)| *schema == index.schema()) else {
            return Err(IndexFault::Outdated);
        };
        index.tokenizers().register("fetchwell", StoreTokenizer::default());
        let commit = load_commit(&index)?;
        let version = commit_version(&commit, uuid)?;
        let payload = payload_of(&commit);
        let is_previous =
            !fields.has_field_columns() || payload.as_ref().is_some_and(|payload| payload.layout < LAYOUT);
        let columns = payload.map(|payload| payload.columns).unwrap_or_default();
        Ok(Self { index, directory, fields, version, is_previous, columns })
    }

    /// Creates an empty index in a folder that is vacant or this store's. The caller holds the store's write lock.
    pub(super) fn create(folder: &IndexFolder) -> Result<Self, TantivyError> {
        folder.claim()?;
        folder.remove_lists()?;
        let directory = FileDirectory::new(&folder.path);
        let (schema, fields) = Fields::schema();
        let index = guard(|| Index::create(directory.clone(), schema, IndexSettings::default()))?;
        folder.remove_unlisted(|_name| false);
        index.tokenizers().register("fetchwell", StoreTokenizer::default());
        Ok(Self { index, directory, fields, version: 0, is_previous: false, columns: Vec::new() })
    }

    /// Opens the files of all segments.
    pub(super) fn files(&self) -> Result<Vec<Arc<IndexFile>>, TantivyError> {
        let segments = self.index.load_metas()?.segments;
        let names = segments.iter().flat_map(listed_files);
        names.map(|name| Ok(self.directory.file(Path::new(&name))?)).collect()
    }

    /// Opens every segment as a reader does, which detects damage that no checksum covers.
    pub(super) fn read_all_segments(&self) -> Result<(), TantivyError> {
        let reader = self.index.reader_builder().reload_policy(ReloadPolicy::Manual);
        guard(|| reader.try_into()).map(|_reader: IndexReader| ())
    }
}

/// Reads the newest commit.
pub(super) fn load_commit(index: &Index) -> Result<IndexMeta, IndexFault> {
    guard(|| index.load_metas()).map_err(|error| IndexFault::from_tantivy(&error))
}

/// Returns the version that a commit contains, or 0 for an index without commits.
pub(super) fn commit_version(commit: &IndexMeta, uuid: &str) -> Result<i64, IndexFault> {
    let Some(payload) = &commit.payload else { return Ok(0) };
    match serde_json::from_str::<CommitPayload>(payload) {
        Ok(CommitPayload { layout, store, version, .. })
            if store == uuid && (layout == LAYOUT || PREVIOUS_LAYOUTS.contains(&layout)) =>
        {
            Ok(version)
        }
        _ => Err(IndexFault::Outdated),
    }
}

/// Returns the payload of a commit; `None` for an index without commits.
fn payload_of(commit: &IndexMeta) -> Option<CommitPayload> {
    serde_json::from_str(commit.payload.as_ref()?).ok()
}

/// Returns the names of the files of a segment that a commit lists.
pub(super) fn listed_files(segment: &SegmentMeta) -> Vec<String> {
    segment_files(segment.id(), listed_deletes(segment))
}

/// Returns the number of the deletion file of a segment that a commit lists, if it has one.
pub(super) fn listed_deletes(segment: &SegmentMeta) -> Option<u64> {
    segment.delete_opstamp().filter(|_| segment.has_deletes())
}

/// Returns the file names of a segment. `deletes` is the number of its deletion file, if it has one.
pub(super) fn segment_files(id: SegmentId, deletes: Option<u64>) -> Vec<String> {
    let id = id.uuid_string();
    let extensions = ["term", "idx", "pos", "fast", "fieldnorm", "store"];
    let mut names: Vec<String> = extensions.iter().map(|extension| format!("{id}.{extension}")).collect();
    names.extend(deletes.map(|number| format!("{id}.{number}.del")));
    names
}

/// Files that this process has verified.
#[derive(Debug, Default)]
pub(crate) struct VerifiedFiles {
    stamps: Mutex<HashMap<String, Stamp>>,
    /// Damage of a file that was verified after the index was opened.
    damage: Mutex<Option<String>>,
}

impl VerifiedFiles {
    /// Verifies files of an open index: at once, or on a background thread if they have more than `at_once` bytes.
    pub(super) fn verify_rest(self: &Arc<Self>, files: Vec<Arc<IndexFile>>, at_once: u64) {
        if files.iter().map(|file| file.stamp().len()).sum::<u64>() <= at_once {
            self.verify_open(files);
            return;
        }
        let verified = Arc::clone(self);
        let verify = move || verified.verify_open(files);
        if let Err(error) = std::thread::Builder::new().name("index-check".to_owned()).spawn(verify) {
            tracing::error!(%error, "no thread to verify the search index");
        }
    }

    /// Verifies files of an open index, and keeps its damage.
    fn verify_open(&self, files: Vec<Arc<IndexFile>>) {
        match self.verify(files, u64::MAX) {
            Ok(_none) => {}
            Err(IndexFault::Damaged(problem)) => *self.damage.lock() = Some(problem),
            Err(fault) => tracing::warn!(?fault, "a file of the search index could not be verified"),
        }
    }

    /// Takes the damage that was found since the index was opened.
    pub(super) fn take_damage(&self) -> Option<String> {
        self.damage.lock().take()
    }

    /// Verifies files that were not verified yet, up to `limit` bytes. Returns the remaining ones.
    pub(super) fn verify(
        &self,
        files: Vec<Arc<IndexFile>>,
        limit: u64,
    ) -> Result<Vec<Arc<IndexFile>>, IndexFault> {
        let (mut rest, mut bytes) = (Vec::new(), 0);
        for file in files {
            if self.stamps.lock().get(file.name()) == Some(&file.stamp()) {
                continue;
            }
            bytes += file.stamp().len();
            if bytes > limit {
                rest.push(file);
                continue;
            }
            file.verify().map_err(|error| {
                let problem = TantivyError::from(std::io::Error::new(
                    error.kind(),
                    format!("{}: {error}", file.name()),
                ));
                IndexFault::from_tantivy(&problem)
            })?;
            self.stamps.lock().insert(file.name().to_owned(), file.stamp());
        }
        Ok(rest)
    }

    /// Returns true if files were verified as they are open.
    pub(super) fn covers(&self, files: &[Arc<IndexFile>]) -> bool {
        let verified = self.stamps.lock();
        files.iter().all(|file| verified.get(file.name()) == Some(&file.stamp()))
    }

    /// Clears the set: the next verification reads every file.
    pub(crate) fn clear(&self) {
        self.stamps.lock().clear();
    }
}
