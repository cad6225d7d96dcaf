//! The files of an origin.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::ImportError;
use super::super::files::{FolderEntry, walk};
use super::super::git::refs_digest;
use super::super::intake::Intake;
use super::super::skips::{Problem, SkipCounts, SkipReason};
use super::kind::ImportKind;
use super::stamp::Stamp;
use super::store_files::StoreFiles;

/// Path of the only item of a repository.
const REPOSITORY: &str = "HEAD";

/// The files of an origin, in the order in which a first import reads them.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: Vec<ScannedFile>,
    /// Paths of files and folders that cannot be read. Items there are kept.
    pub(super) unreadable: Vec<(String, Problem)>,
    /// Paths of files and folders that are left out by design.
    pub(super) skipped: Vec<(String, SkipReason)>,
}

/// A file of an origin.
#[derive(Debug)]
pub(super) struct ScannedFile {
    /// Path in the origin, with `/`.
    pub(super) path: String,
    /// Path on disk.
    pub(super) file: PathBuf,
    pub(super) stamp: Stamp,
    /// Size in bytes.
    pub(super) bytes: u64,
}

impl Scan {
    /// Lists the files of an origin, without those of the store.
    ///
    /// # Errors
    ///
    /// The origin cannot be read.
    pub(super) fn read(origin: &Path, kind: ImportKind, store: &StoreFiles) -> Result<Self, ImportError> {
        let mut scan = Self::default();
        if kind == ImportKind::Git {
            let stamp = Stamp { text: refs_digest(origin)?, is_recent: false };
            let (path, file) = (REPOSITORY.to_owned(), origin.to_owned());
            scan.files.push(ScannedFile { path, file, stamp, bytes: 0 });
            return Ok(scan);
        }
        let unsuitable = |problem| ImportError::Unsuitable { path: origin.to_owned(), problem };
        let metadata = fs::metadata(origin).map_err(|error| ImportError::Unreadable {
            path: origin.to_owned(),
            problem: error.to_string(),
        })?;
        if metadata.is_dir() && !kind.reads_folders() {
            return Err(unsuitable(
                "is a folder now, and was a file; restore the file, or remove the import",
            ));
        }
        if metadata.is_file() && store.contains(origin) {
            return Err(unsuitable("belongs to the store that the import writes to; name another file"));
        }
        walk(origin, &mut |found| {
            match found {
                FolderEntry::File { file, .. } if store.contains(&file) => {}
                FolderEntry::File { file, path } => match fs::metadata(&file) {
                    Ok(metadata) => {
                        let (stamp, bytes) = (Stamp::read(&file, &metadata), metadata.len());
                        scan.files.push(ScannedFile { path, file, stamp, bytes });
                    }
                    // It was deleted a moment ago.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => scan.unreadable.push((path, Problem::unreadable(&error))),
                },
                FolderEntry::Skipped { path, reason } => scan.skipped.push((path, reason)),
                FolderEntry::Unreadable { place, problem } => {
                    let within = Path::new(&place).strip_prefix(origin).map(Path::to_path_buf);
                    let pieces: Vec<String> = within
                        .unwrap_or_else(|_relative| PathBuf::from(&place))
                        .iter()
                        .map(|piece| piece.to_string_lossy().into_owned())
                        .collect();
                    scan.unreadable.push((pieces.join("/"), problem));
                }
            }
            Ok(())
        })?;
        Ok(scan)
    }

    /// Reports and counts what is not read of the origin.
    pub(super) fn report_into(&self, intake: &mut Intake<'_>) {
        for (place, problem) in &self.unreadable {
            intake.reject_file(place, problem);
        }
        let mut counts = SkipCounts::default();
        for (path, reason) in &self.skipped {
            counts.add(*reason, 1);
            intake.skip_file(path, *reason);
        }
        intake.add_skips(&counts);
    }

    /// Returns true if an item is or may be at a path that cannot be read.
    pub(super) fn is_unreadable(&self, path: &str) -> bool {
        // An error without a path is one of the whole origin.
        let covers = |(place, _): &(String, Problem)| {
            let within = path.strip_prefix(place.as_str());
            place.is_empty() || within.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.unreadable.iter().any(covers)
    }
}

/// Returns the folder in which changes of an origin are seen, and true if its subfolders belong to the origin.
#[must_use]
pub fn watched_folder(origin: &Path) -> (PathBuf, bool) {
    if origin.is_dir() {
        return (origin.to_owned(), true);
    }
    let folder = origin.parent().filter(|folder| !folder.as_os_str().is_empty());
    (folder.unwrap_or(Path::new(".")).to_owned(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_below_an_unreadable_folder_are_unreadable() {
        let scan = Scan { unreadable: vec![("a/b".to_owned(), "".into())], ..Scan::default() };
        for (path, expect) in [("a/b", true), ("a/b/c.md", true), ("a/bc.md", false), ("a", false)] {
            assert_eq!(scan.is_unreadable(path), expect, "{path}");
        }
        let scan = Scan { unreadable: vec![(String::new(), "".into())], ..Scan::default() };
        assert!(scan.is_unreadable("a/b.md"));
    }

    #[test]
    fn a_missing_origin_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.md"), "x").unwrap();
        let (kind, none) = ("markdown".parse().unwrap(), StoreFiles::default());
        let scan = Scan::read(folder.path(), kind, &none).unwrap();
        assert_eq!(scan.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a.md"]);
        assert!(Scan::read(&folder.path().join("none"), kind, &none).is_err());
        assert!(Scan::read(folder.path(), ImportKind::Csv, &none).is_err());
    }

    #[test]
    fn the_files_of_the_store_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("notes.db-index")).unwrap();
        for name in ["a.md", "notes.db", "notes.db-vectors", "notes.db-index/meta.json", "other.db"] {
            fs::write(at(name), "x").unwrap();
        }
        let kind = "files".parse().unwrap();
        let store = StoreFiles::new(&at("notes.db"), folder.path());
        let scan = Scan::read(folder.path(), kind, &store).unwrap();
        assert_eq!(
            scan.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            ["a.md", "other.db"]
        );
        assert!(Scan::read(&at("notes.db"), kind, &store).is_err());
        assert!(Scan::read(&at("a.md"), kind, &store).is_ok());
    }
}
