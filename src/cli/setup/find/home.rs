//! The user's home folder, and bounded listings of what is in it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use directories::{BaseDirs, UserDirs};

/// Maximum number of files and folders that a search for records lists.
const MAX_ENTRIES: usize = 50_000;

/// The user's home folder. No other folder is read.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    folders: BaseDirs,
    root: PathBuf,
}

impl Home {
    /// Returns the home folder of the user, or `None` if it is unknown or missing.
    pub(crate) fn of_user() -> Option<Self> {
        let folders = BaseDirs::new()?;
        let root = fs::canonicalize(folders.home_dir()).ok()?;
        Some(Self { folders, root })
    }

    pub(crate) fn folders(&self) -> &BaseDirs {
        &self.folders
    }

    /// Returns the path without links.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a file or folder without links, or `None` if it is missing or outside of the home folder.
    pub(crate) fn inside(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let path = fs::canonicalize(self.root.join(path)).ok()?;
        (path.starts_with(&self.root) && path != self.root).then_some(path)
    }

    /// Returns the download folder, if it is in the home folder.
    pub(crate) fn downloads(&self) -> Option<PathBuf> {
        let named = UserDirs::new().and_then(|folders| folders.download_dir().map(Path::to_owned));
        self.inside(named.unwrap_or_else(|| PathBuf::from("Downloads")))
    }
}

/// A file or folder in a listing. Links are neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) name: OsString,
    pub(super) is_folder: bool,
}

impl Entry {
    /// Returns true if the name ends with a dot and the extension, in upper or lower case.
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
    }
}

/// Lists folders until the maximum number of entries is reached.
#[derive(Debug)]
pub(super) struct Listing {
    left: usize,
}

impl Default for Listing {
    fn default() -> Self {
        Self { left: MAX_ENTRIES }
    }
}

impl Listing {
    /// Returns the files and folders in a folder by their names. A folder that cannot be read has none.
    pub(super) fn entries(&mut self, folder: &Path) -> Vec<Entry> {
        let Ok(listed) = fs::read_dir(folder) else { return Vec::new() };
        let mut entries: Vec<Entry> = listed
            .take(self.left)
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let kind = entry.file_type().ok()?;
                let is_listed = kind.is_dir() || kind.is_file();
                is_listed.then(|| Entry {
                    path: entry.path(),
                    name: entry.file_name(),
                    is_folder: kind.is_dir(),
                })
            })
            .collect();
        self.left -= entries.len().min(self.left);
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries
    }

    /// Returns the folders in a folder by their names.
    pub(super) fn folders(&mut self, folder: &Path) -> Vec<Entry> {
        self.entries(folder).into_iter().filter(|entry| entry.is_folder).collect()
    }
}
