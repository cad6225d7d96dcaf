//! Read access to an index, which continues while its files are replaced.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tantivy::{Index, IndexReader, ReloadPolicy, Searcher, SegmentReader};

use super::directory::FileDirectory;
use super::document::Fields;
use super::fault::{IndexFault, guard};
use super::file::IndexFile;
use super::folder::{IndexFolder, folder_of};
use super::open::{OpenIndex, VerifiedFiles, commit_version, listed_deletes, load_commit, segment_files};
use crate::fulltext::known_forms::KnownForms;

/// Maximum number of times that a reader is reloaded because its segments are not those of the newest commit.
const MAX_RELOADS: usize = 10;

/// Open index. Searches use open files, so they continue after files are deleted and return errors after files are
/// changed.
pub(crate) struct IndexView {
    index: Index,
    directory: FileDirectory,
    reader: IndexReader,
    pub(crate) fields: Fields,
    /// True if the index has a previous layout.
    pub(crate) is_previous: bool,
    /// Version that searches see.
    pub(crate) version: i64,
    /// Words that searches of this commit found.
    known: KnownForms,
    /// Files that the searcher has open.
    files: Vec<Arc<IndexFile>>,
    /// Files that remain to be verified.
    unverified: Vec<Arc<IndexFile>>,
}

/// Index at one version. Pagination over a snapshot has no gaps and no duplicates while records are imported.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) version: i64,
    /// True if the index has a previous layout, which ranks differently.
    pub(crate) is_previous: bool,
    pub(crate) fields: Fields,
    pub(crate) searcher: Searcher,
    /// Words that searches of this snapshot found.
    pub(crate) known: KnownForms,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Returns true if the snapshot is of a version and layout.
    pub(super) fn is_at(&self, version: i64, is_previous: bool) -> bool {
        self.version == version && self.is_previous == is_previous
    }
}

impl std::fmt::Debug for IndexView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexView").field("version", &self.version).finish_non_exhaustive()
    }
}

impl IndexView {
    /// Opens the index of a store and verifies up to `limit` bytes of its files.
    pub(crate) fn open(
        store: &Path,
        uuid: &str,
        verified: &VerifiedFiles,
        limit: u64,
    ) -> Result<Self, IndexFault> {
        let folder = IndexFolder::new(folder_of(store), store, uuid);
        let OpenIndex { index, directory, fields, version, is_previous, .. } =
            OpenIndex::open(&folder, uuid)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
        // The index stores postings only, so a document cache is useless.
        let reader = reader.doc_store_cache_num_blocks(1);
        let reader: IndexReader =
            guard(|| reader.try_into()).map_err(|error| IndexFault::from_tantivy(&error))?;
        let (known, files, unverified) = (KnownForms::default(), Vec::new(), Vec::new());
        let view = Self { index, directory, reader, fields, is_previous, version, known, files, unverified };
        view.refresh(uuid, verified, limit)
    }

    /// Moves to the newest commit.
    pub(crate) fn refresh(
        mut self,
        uuid: &str,
        verified: &VerifiedFiles,
        limit: u64,
    ) -> Result<Self, IndexFault> {
        self.version = self.reload(uuid)?;
        self.verify(verified, limit)?;
        Ok(self)
    }

    /// Moves the reader to the newest commit and returns its version.
    ///
    /// The segments of the reader are compared with those of the commit that the version is from: between two reads,
    /// a writer can add a commit, and a backup that is copied over the files can put an earlier one in place.
    fn reload(&mut self, uuid: &str) -> Result<i64, IndexFault> {
        for _ in 0..MAX_RELOADS {
            let commit = load_commit(&self.index)?;
            let searcher = self.reader.searcher();
            let open = searcher
                .segment_readers()
                .iter()
                .map(|segment| (segment.segment_id(), open_deletes(segment)));
            let listed = commit.segments.iter().map(|segment| (segment.id(), listed_deletes(segment)));
            if open.collect::<BTreeSet<_>>() == listed.collect() {
                return commit_version(&commit, uuid);
            }
            self.known = KnownForms::default();
            guard(|| self.reader.reload()).map_err(|error| IndexFault::from_tantivy(&error))?;
        }
        Err(IndexFault::Damaged("its list of segments changes all the time".to_owned()))
    }

    /// Returns the commit that the view is at.
    pub(super) fn snapshot(&self) -> Snapshot {
        let Self { version, is_previous, fields, .. } = *self;
        let (searcher, known) = (self.reader.searcher(), self.known.clone());
        Snapshot { version, is_previous, fields, searcher, known }
    }

    /// Returns the files that the searcher has open.
    pub(super) fn files(&self) -> Vec<Arc<IndexFile>> {
        self.files.clone()
    }

    /// Takes the files that remain to be verified.
    pub(super) fn take_unverified(&mut self) -> Vec<Arc<IndexFile>> {
        std::mem::take(&mut self.unverified)
    }

    /// Verifies the files that the searcher has open.
    fn verify(&mut self, verified: &VerifiedFiles, limit: u64) -> Result<(), IndexFault> {
        let open = || {
            let searcher = self.reader.searcher();
            let files = |segment: &SegmentReader| segment_files(segment.segment_id(), open_deletes(segment));
            let names = searcher.segment_readers().iter().flat_map(files);
            names.map(|name| Ok(self.directory.file(Path::new(&name))?)).collect::<Result<Vec<_>, _>>()
        };
        let files = guard(open).map_err(|error| IndexFault::from_tantivy(&error))?;
        self.unverified = verified.verify(files.clone(), limit)?;
        self.files = files;
        Ok(())
    }
}

/// Returns the number of the deletion file of an open segment, if it has one.
fn open_deletes(segment: &SegmentReader) -> Option<u64> {
    segment.delete_opstamp().filter(|_| segment.has_deletes())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::SqliteTarget;
    use crate::database::{Database, identity};
    use fetchwell_core::record::RecordData;
    use fetchwell_source::contract::no_progress;
    use fetchwell_source::contract::{Change, IncomingRecord, NewConnection};
    use fetchwell_source::sync::ImportTarget;

    fn import(path: &Path, key: &str) {
        let connection = NewConnection {
            connection_id: "notes".parse().unwrap(),
            connector_key: "files".to_owned(),
            display_name: None,
            manifest: None,
        };
        let mut writer = SqliteTarget::new(path).open(&connection, None, &no_progress).unwrap();
        let change = Change::Put { data: RecordData::new(), emitted_at: None };
        let incoming = IncomingRecord { stream: "s".parse().unwrap(), key: key.parse().unwrap(), change };
        writer.write(incoming, 1).unwrap();
        writer.finish(&no_progress).unwrap();
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    /// Opens and refreshes views while another thread puts two commits in place by turns.
    #[test]
    fn version_and_segments_are_of_one_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.db");
        let (index, copies) = (folder_of(&path), folder.path().join("copies"));
        import(&path, "a");
        let (uuid, first) = Database::open(&path).unwrap().read(identity).unwrap();
        copy(&index, &copies);
        import(&path, "b");
        let list = index.join("meta.json");
        let lists = [copies.join("meta.json"), folder.path().join("newer.json")].map(|from| {
            if !from.exists() {
                fs::copy(&list, &from).unwrap();
            }
            fs::read(from).unwrap()
        });
        copy(&copies, &index);
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let next = index.join(".fetchwell-next.tmp");
                for text in lists.iter().cycle().take_while(|_| !done.load(Ordering::Relaxed)) {
                    fs::write(&next, text).unwrap();
                    fs::rename(&next, &list).unwrap();
                }
            });
            let verified = VerifiedFiles::default();
            let open = |_| {
                let view = IndexView::open(&path, &uuid, &verified, u64::MAX)?;
                view.refresh(&uuid, &verified, u64::MAX)
            };
            // A list that is replaced too often is a fault.
            let views: Vec<IndexView> = (0..300).filter_map(|number| open(number).ok()).collect();
            done.store(true, Ordering::Relaxed);
            assert!(!views.is_empty());
            for view in views {
                let documents = view.snapshot().searcher.num_docs();
                assert_eq!(documents, if view.version == first { 1 } else { 2 });
            }
        });
    }
}
