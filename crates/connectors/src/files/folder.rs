//! The files of a folder, in the order of their names.
//!
//! Hidden files and folders are skipped, except the folders of a Maildir, which have names that begin with a dot. So is
//! what `.gitignore` names, and folders that programs generate. Links are not followed; only a file that the user named
//! may be one.

use std::cell::RefCell;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::super::ImportError;
use super::super::skips::{Problem, SkipReason};
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
    /// A file or folder that is left out by design.
    Skipped {
        /// Path in the folder, with `/`. Bytes that are no UTF-8 are replaced.
        path: String,
        /// Reason: hidden, ignored, generated, or a link.
        reason: SkipReason,
    },
    /// A file or folder that cannot be read.
    Unreadable {
        /// Path on disk.
        place: String,
        /// Reason with a text for people.
        problem: Problem,
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
    let skipped = RefCell::new(Vec::new());
    let rules = RefCell::new(IgnoreRules::new(path));
    let is_visible = |entry: &DirEntry| {
        let hidden = (entry.depth() > 0 && is_hidden(entry.path())).then_some(SkipReason::Hidden);
        let reason = hidden.or_else(|| rules.borrow_mut().skip_reason(entry));
        skipped.borrow_mut().extend(reason.map(|reason| skipped_entry(entry.path(), folder, reason)));
        reason.is_none()
    };
    for entry in WalkDir::new(path).sort_by_file_name().into_iter().filter_entry(is_visible) {
        skipped.take().into_iter().try_for_each(&mut *visit)?;
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() == 0 => return Err(unreadable(error.to_string())),
            Err(error) => {
                let place = error.path().unwrap_or(folder).display().to_string();
                let text = "it cannot be read; check its permissions";
                let problem = Problem::new(SkipReason::Unreadable, text);
                visit(FolderEntry::Unreadable { place, problem })?;
                continue;
            }
        };
        if entry.file_type().is_symlink() && entry.depth() > 0 {
            visit(skipped_entry(entry.path(), folder, SkipReason::Link))?;
        } else if entry.file_type().is_file() || entry.depth() == 0 && metadata.is_file() {
            visit(found_file(&entry, folder))?;
        }
    }
    skipped.take().into_iter().try_for_each(visit)
}

fn skipped_entry(path: &Path, folder: &Path, reason: SkipReason) -> FolderEntry {
    let within = path.strip_prefix(folder).unwrap_or(path);
    let pieces: Vec<_> = within.iter().map(|piece| piece.to_string_lossy()).collect();
    FolderEntry::Skipped { path: pieces.join("/"), reason }
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
            problem: Problem::new(SkipReason::Unreadable, "its name is not UTF-8; rename it"),
        },
    }
}

/// Returns true for a file or folder in a folder that an import leaves out, because its name begins with a dot. Maildir folders
/// have such names, and are read.
#[must_use]
pub fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) && !is_maildir(path)
}

/// Returns true if a folder has the folders of a Maildir.
fn is_maildir(folder: &Path) -> bool {
    ["cur", "new"].iter().all(|name| folder.join(name).is_dir())
}
