//! The files of the store that an import writes to, which are no part of its origin.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of the files beside a store that begin with the name of the store.
const NAMES_BESIDE: [&str; 7] = ["wal", "shm", "journal", "index", "vectors", "lock", "sync"];

/// Files of a store within an origin. An import that read them would change them with each synchronization.
#[derive(Debug, Clone, Default)]
pub struct StoreFiles {
    /// Folders of the store, with its name: as the origin leads to it, and without links.
    places: Vec<(PathBuf, OsString)>,
}

impl StoreFiles {
    /// Returns the files of a store as they are found from `origin`. Neither has to exist.
    #[must_use]
    pub fn new(store: &Path, origin: &Path) -> Self {
        let place = without_links(store);
        let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else { return Self::default() };
        let mut places = vec![(folder.to_owned(), name.to_owned())];
        let root = if origin.is_dir() { origin } else { origin.parent().unwrap_or(origin) };
        if let Ok(within) = folder.strip_prefix(without_links(root)) {
            let seen = root.join(within);
            if seen != *folder {
                places.push((seen, name.to_owned()));
            }
        }
        Self { places }
    }

    /// Returns true if a path is that of the store, of a file beside it that belongs to it, or in such a folder.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        self.places.iter().any(|(folder, name)| {
            let within = path.strip_prefix(folder).ok().and_then(|within| within.iter().next());
            within.is_some_and(|first| {
                let rest = first.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
                rest.is_some_and(is_suffix)
            })
        })
    }
}

/// Returns true if a name that consists of the name of a store and `rest` is one of its files.
fn is_suffix(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(b"-") else { return rest.is_empty() };
    let word = rest.split(|byte| *byte == b'-').next().unwrap_or_default();
    NAMES_BESIDE.iter().any(|name| name.as_bytes() == word)
}

/// Returns an absolute path without links. Of a path that does not exist, the folders that exist are resolved.
#[must_use]
pub fn without_links(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_empty| path.to_owned());
    let resolved = path.ancestors().find_map(|above| {
        let place = fs::canonicalize(above).ok()?;
        let rest = path.strip_prefix(above).ok()?;
        Some(if rest.as_os_str().is_empty() { place } else { place.join(rest) })
    });
    resolved.unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_store_are_told_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let origin = folder.path();
        let files = StoreFiles::new(&origin.join("notes"), origin);
        for (path, expect) in [
            ("notes", true),
            ("notes-wal", true),
            ("notes-vectors", true),
            ("notes-vectors-wal", true),
            ("notes-sync-1-lock", true),
            ("notes-index/meta.json", true),
            ("notes-2024.md", false),
            ("notes-index.md", false),
            ("notes.md", false),
            ("other/notes", false),
        ] {
            assert_eq!(files.contains(&origin.join(path)), expect, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_origin_has_the_files_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let (origin, link) = (folder.path().join("origin"), folder.path().join("link"));
        fs::create_dir_all(origin.join("data")).unwrap();
        std::os::unix::fs::symlink(&origin, &link).unwrap();
        let files = StoreFiles::new(&origin.join("data/notes.db"), &link);
        assert!(files.contains(&link.join("data/notes.db-wal")));
        assert!(!files.contains(&link.join("notes.db")));
    }
}
