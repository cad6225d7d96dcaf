//! The cache of the hub's own programs: `models--ORGANIZATION--NAME/snapshots/COMMIT/`, whose files are links to `blobs/`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::checksum::Checksum;
use super::repository::{Commit, Repository, Revision};

/// Maximum size of a file with the commit of a revision, in bytes.
const MAX_REFERENCE: u64 = 256;

/// Returns the folder of a revision in a cache, if there is one.
pub(super) fn snapshot(
    cache: &Path,
    repository: &Repository,
    revision: &Revision,
) -> Option<(PathBuf, Commit)> {
    let folder = cache.join(format!("models--{}", repository.folder_name()));
    let commit = Commit::parse(revision.as_str()).or_else(|| {
        let mut text = String::new();
        let reference = File::open(folder.join("refs").join(revision.as_str())).ok()?;
        reference.take(MAX_REFERENCE).read_to_string(&mut text).ok()?;
        Commit::parse(text.trim())
    })?;
    let snapshot = folder.join("snapshots").join(commit.as_str());
    snapshot.is_dir().then_some((snapshot, commit))
}

/// Returns the checksum in the name of the blob that a file of a snapshot links to.
pub(super) fn blob_checksum(file: &Path) -> Option<Checksum> {
    Checksum::parse(fs::read_link(file).ok()?.file_name()?.to_str()?)
}
