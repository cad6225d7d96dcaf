//! Read access to an index, which continues while its files are replaced.

use std::path::Path;
use std::sync::Arc;

use tantivy::{Index, IndexReader, ReloadPolicy, Searcher, SegmentReader};

use super::directory::FileDirectory;
use super::document::Fields;
use super::fault::{IndexFault, guard};
use super::file::IndexFile;
use super::folder::{IndexFolder, folder_of};
use super::open::{OpenIndex, VerifiedFiles, reflected_version, segment_files};

/// Open index. Searches use open files, so they continue after files are deleted and return errors after files are
/// changed.
pub(in crate::source::store) struct IndexView {
    index: Index,
    directory: FileDirectory,
    reader: IndexReader,
    pub(in crate::source::store) fields: Fields,
    /// True if the index has the previous layout.
    pub(in crate::source::store) is_previous: bool,
    /// Version that searches see.
    pub(in crate::source::store) version: i64,
    /// Files that remain to be verified.
    unverified: Vec<Arc<IndexFile>>,
}

/// Index at one version. Pagination over a snapshot has no gaps and no duplicates while records are imported.
#[derive(Clone)]
pub(in crate::source::store) struct Snapshot {
    pub(in crate::source::store) version: i64,
    /// True if the index has the previous layout, which ranks differently.
    pub(in crate::source::store) is_previous: bool,
    pub(in crate::source::store) fields: Fields,
    pub(in crate::source::store) searcher: Searcher,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Files of a view that remain to be verified.
#[derive(Debug)]
pub(in crate::source::store) struct UnverifiedFiles(Vec<Arc<IndexFile>>);

impl UnverifiedFiles {
    /// Verifies all remaining files.
    pub(in crate::source::store) fn verify(self, verified: &VerifiedFiles) -> Result<(), IndexFault> {
        verified.verify(self.0, u64::MAX).map(|_none| ())
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
    pub(in crate::source::store) fn open(
        store: &Path,
        uuid: &str,
        verified: &VerifiedFiles,
        limit: u64,
    ) -> Result<Self, IndexFault> {
        let folder = IndexFolder::new(folder_of(store), store, uuid);
        let OpenIndex { index, directory, fields, version, is_previous } = OpenIndex::open(&folder, uuid)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
        // The index stores postings only, so a document cache is useless.
        let reader = reader.doc_store_cache_num_blocks(1);
        let reader: IndexReader =
            guard(|| reader.try_into()).map_err(|error| IndexFault::from_tantivy(&error))?;
        let mut view =
            Self { index, directory, reader, fields, is_previous, version, unverified: Vec::new() };
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
        // The version is read first: the searcher may contain more than that, never less.
        self.version = reflected_version(&self.index, uuid)?;
        guard(|| self.reader.reload()).map_err(|error| IndexFault::from_tantivy(&error))?;
        self.verify(verified, limit)?;
        Ok(self)
    }

    /// Returns the commit that the view is at.
    pub(super) fn snapshot(&self) -> Snapshot {
        let Self { version, is_previous, fields, .. } = *self;
        Snapshot { version, is_previous, fields, searcher: self.reader.searcher() }
    }

    /// Takes the files that remain to be verified.
    pub(in crate::source::store) fn take_unverified(&mut self) -> Option<UnverifiedFiles> {
        let files = std::mem::take(&mut self.unverified);
        (!files.is_empty()).then_some(UnverifiedFiles(files))
    }

    /// Verifies the files that the searcher has open.
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
