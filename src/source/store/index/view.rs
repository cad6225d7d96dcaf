//! An open index for searches, which goes on while the files are replaced.

use std::path::Path;
use std::sync::Arc;

use tantivy::{Index, IndexReader, ReloadPolicy, Searcher, SegmentReader};

use super::document::Fields;
use super::fault::{IndexFault, guard};
use super::file::IndexFile;
use super::folder::IndexFolder;
use super::open::{OpenIndex, VerifiedFiles, reflected_version, segment_files};
use super::{directory::FileDirectory, folder_of};

/// An open index. Its searchers read open files, so that they go on when files are deleted, and answer with errors when
/// files are changed.
pub(in crate::source::store) struct IndexView {
    index: Index,
    directory: FileDirectory,
    reader: IndexReader,
    pub(in crate::source::store) fields: Fields,
    /// The version that the searchers of [`IndexView::searcher`] reflect.
    pub(in crate::source::store) version: i64,
    /// Files whose checksums are still to be verified.
    unverified: Vec<Arc<IndexFile>>,
}

/// Files that a view uses and whose checksums are still to be verified.
#[derive(Debug)]
pub(in crate::source::store) struct Unverified(Vec<Arc<IndexFile>>);

impl Unverified {
    /// Verifies all of them.
    pub(in crate::source::store) fn verify(self, verified: &VerifiedFiles) -> Result<(), IndexFault> {
        verified.verify(self.0, u64::MAX).map(|_none| ())
    }
}

impl std::fmt::Debug for IndexView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexView").field("version", &self.version).finish_non_exhaustive()
    }
}

impl IndexView {
    /// Opens the index of a store, and verifies up to `limit` bytes of its files.
    pub(in crate::source::store) fn open(
        store: &Path,
        uuid: &str,
        verified: &VerifiedFiles,
        limit: u64,
    ) -> Result<Self, IndexFault> {
        let folder = IndexFolder::new(folder_of(store), store, uuid);
        let OpenIndex { index, directory, fields, version } = OpenIndex::open(&folder, uuid)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
        // Nothing is stored in the index but postings.
        let reader = reader.doc_store_cache_num_blocks(1);
        let reader: IndexReader =
            guard(|| reader.try_into()).map_err(|error| IndexFault::from_tantivy(&error))?;
        let mut view = Self { index, directory, reader, fields, version, unverified: Vec::new() };
        view.verify(verified, limit)?;
        Ok(view)
    }

    /// Moves to the newest commit.
    pub(in crate::source::store) fn refresh(
        mut self,
        uuid: &str,
        verified: &VerifiedFiles,
        limit: u64,
    ) -> Result<Self, IndexFault> {
        // The version is read first: the searcher may be newer than it says, never older.
        self.version = reflected_version(&self.index, uuid)?;
        guard(|| self.reader.reload()).map_err(|error| IndexFault::from_tantivy(&error))?;
        self.verify(verified, limit)?;
        Ok(self)
    }

    /// Returns a searcher of the commit that the view is at.
    pub(in crate::source::store) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    /// Takes the files that are still to be verified.
    pub(in crate::source::store) fn take_unverified(&mut self) -> Option<Unverified> {
        let files = std::mem::take(&mut self.unverified);
        (!files.is_empty()).then_some(Unverified(files))
    }

    /// Verifies the very files that the searcher has open.
    fn verify(&mut self, verified: &VerifiedFiles, limit: u64) -> Result<(), IndexFault> {
        let open = || {
            let searcher = self.reader.searcher();
            let files = |segment: &SegmentReader| {
                segment_files(
                    segment.segment_id(),
                    segment.delete_opstamp().filter(|_| segment.has_deletes()),
                )
            };
            let names = searcher.segment_readers().iter().flat_map(files);
            names.map(|name| Ok(self.directory.file(Path::new(&name))?)).collect::<Result<Vec<_>, _>>()
        };
        let files = guard(open).map_err(|error| IndexFault::from_tantivy(&error))?;
        self.unverified = verified.verify(files, limit)?;
        Ok(())
    }
}
