//! The files of a folder, in the order of their names.
//!
//! Hidden files and folders are skipped, except the folders of a Maildir, which have names that begin with a dot. So is
//! what `.gitignore` names, and folders that programs generate. Links are not followed; only a file that the user named
//! may be one.

use std::cell::{Cell, RefCell};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::super::ImportError;
use super::ignored::IgnoreRules;

/// An entry of a folder.
pub(crate) enum FolderEntry {
    /// A file, with its path in the folder.
    File {
        /// Path on disk.
        file: PathBuf,
        /// Path in the folder, with `/`.
        path: String,
    },
    /// A hidden file or folder.
    Hidden,
    /// A file or folder that `.gitignore` names or a program generated.
    Ignored,
    /// A link, which is not followed.
    Link,
    /// A file or folder that cannot be read.
    Unreadable {
        /// Path on disk.
        place: String,
        /// Reason for people.
        reason: String,
    },
}

/// Calls `visit` for everything in a folder, or for a single file.
pub(crate) fn walk(
    path: &Path,
    visit: &mut dyn FnMut(FolderEntry) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let unreadable = |problem: String| ImportError::Unreadable { path: path.to_owned(), problem };
    let metadata = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if let Some(problem) = special_file(&metadata) {
        return Err(ImportError::Unsuitable { path: path.to_owned(), problem });
    }
    let folder = if metadata.is_dir() { path } else { path.parent().unwrap_or(path) };
    let (hidden, ignored) = (Cell::new(0_u64), Cell::new(0_u64));
    let rules = RefCell::new(IgnoreRules::new(path));
    let is_visible = |entry: &DirEntry| {
        let is_dotted = entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.');
        let is_visible = !is_dotted || is_maildir(entry.path());
        hidden.set(hidden.get() + u64::from(!is_visible));
        let is_ignored = is_visible && rules.borrow_mut().is_ignored(entry);
        ignored.set(ignored.get() + u64::from(is_ignored));
        is_visible && !is_ignored
    };
    for entry in WalkDir::new(path).sort_by_file_name().into_iter().filter_entry(is_visible) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() == 0 => return Err(unreadable(error.to_string())),
            Err(error) => {
                let place = error.path().unwrap_or(folder).display().to_string();
                let reason = "it cannot be read; check its permissions".to_owned();
                visit(FolderEntry::Unreadable { place, reason })?;
                continue;
            }
        };
        if entry.file_type().is_symlink() && entry.depth() > 0 {
            visit(FolderEntry::Link)?;
        } else if entry.file_type().is_file() || entry.depth() == 0 && metadata.is_file() {
            visit(found_file(&entry, folder))?;
        }
    }
    for _ in 0..hidden.get() {
        visit(FolderEntry::Hidden)?;
    }
    for _ in 0..ignored.get() {
        visit(FolderEntry::Ignored)?;
    }
    Ok(())
}

/// Returns the end of the error for what is neither a file nor a folder. Reading it can wait for ever.
#[must_use]
pub fn special_file(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_file() || kind.is_dir() {
        return None;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some("is a pipe (FIFO); write its content to a file, and name that file");
        }
        if kind.is_socket() {
            return Some("is a socket; name a file or a folder");
        }
        if kind.is_block_device() || kind.is_char_device() {
            return Some("is a device; name a file or a folder");
        }
    }
    Some("is neither a file nor a folder; name one of these")
}

fn found_file(entry: &DirEntry, folder: &Path) -> FolderEntry {
    let within = entry.path().strip_prefix(folder).unwrap_or(entry.path());
    let pieces: Option<Vec<&str>> = within.iter().map(|piece| piece.to_str()).collect();
    match pieces {
        Some(pieces) => FolderEntry::File { file: entry.path().to_owned(), path: pieces.join("/") },
        None => FolderEntry::Unreadable {
            place: within.display().to_string(),
            reason: "its name is not UTF-8".to_owned(),
        },
    }
}

/// Returns true if a folder has the folders of a Maildir.
fn is_maildir(folder: &Path) -> bool {
    ["cur", "new"].iter().all(|name| folder.join(name).is_dir())
}
