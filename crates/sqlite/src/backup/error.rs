//! Errors of backups, each with its remedy.

use std::path::{Path, PathBuf};

use fetchwell_source::contract::StoreError;

/// Error of creating or restoring a backup. The message names the file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no file to restore.
    #[error("there is no backup at {}; correct the path", .0.display())]
    Missing(PathBuf),
    /// The file to restore cannot be read.
    #[error("the backup {} cannot be read ({problem}); check its path and permissions", .path.display())]
    Unreadable {
        /// Path of the backup.
        path: PathBuf,
        /// Message of the operating system.
        problem: String,
    },
    /// The file to restore is not a backup.
    #[error("{} is not a backup of a fetchwell store ({problem}); name a file that `fetchwell backup` wrote", .path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// Reason why it is not a backup.
        problem: &'static str,
    },
    /// The backup was written by a newer release of fetchwell.
    #[error("the backup {} has format {found} and this fetchwell reads up to {known}; upgrade fetchwell", .path.display())]
    Newer {
        /// Path of the backup.
        path: PathBuf,
        /// Format version of the backup.
        found: i64,
        /// Newest format version that this release reads.
        known: i64,
    },
    /// The backup was written by an older release of fetchwell.
    #[error("the backup {} is of an earlier format; import its files again, into a new store", .0.display())]
    Older(PathBuf),
    /// The backup is damaged.
    #[error("the backup {} is damaged ({problem}); nothing was restored: name another backup", .path.display())]
    Damaged {
        /// Path of the backup.
        path: PathBuf,
        /// Message of SQLite.
        problem: String,
    },
    /// The file to restore is a database that is in use, or was copied without its log.
    #[error("{} is not a whole backup, because changes of it are in {}; make one with `fetchwell backup --store {}`", .path.display(), .log.display(), .path.display())]
    Incomplete {
        /// Path of the file.
        path: PathBuf,
        /// Path of the log with the remaining changes.
        log: PathBuf,
    },
    /// The file exists, and replacing it was not requested.
    #[error("{} exists; name another file, or replace that backup with --force", .0.display())]
    Exists(PathBuf),
    /// The file exists and is never replaced.
    #[error("{} is not replaced because {problem}; name another file for the backup, or move it", .path.display())]
    NotReplaced {
        /// Path of the file.
        path: PathBuf,
        /// Reason why it is not replaced.
        problem: &'static str,
    },
    /// The backup cannot be written.
    #[error("the backup {} cannot be written ({problem}); free space, or name a file in another folder", .path.display())]
    Unwritable {
        /// Path of the backup.
        path: PathBuf,
        /// Message of the operating system.
        problem: String,
    },
    /// The current records of the store could not be backed up before the restore.
    #[error(
        "nothing was restored, because the records that the store has now could not be kept first: {problem}; or replace them without a copy with --force"
    )]
    NotKept {
        /// Error of that backup.
        problem: Box<Self>,
    },
    /// The file of the store cannot take new contents.
    #[error("the store {} cannot be replaced ({problem}); move it and the files beside it that end with -wal and -shm, then restore again", .path.display())]
    NotReplaceable {
        /// Path of the store.
        path: PathBuf,
        /// Message of SQLite.
        problem: String,
    },
    /// The backup to restore is the store itself.
    #[error("{} is the store itself; name a backup of it", .0.display())]
    SameFile(PathBuf),
    /// The user cancelled the operation.
    #[error("stopped; everything is as it was")]
    Stopped,
}

impl BackupError {
    /// Converts an error about a copy that was just made of a store into one about the store.
    pub(super) fn for_store(self, store: &Path, copy: &Path) -> Self {
        match self {
            Self::Damaged { path, problem } if path == copy => {
                StoreError::Damaged { path: store.to_owned(), problem }.into()
            }
            other => other,
        }
    }

    /// Converts an error of opening the backup at `path`.
    pub(super) fn from_store(path: &Path, error: StoreError) -> Self {
        let path = path.to_owned();
        match error {
            StoreError::Newer { found, known, .. } => Self::Newer { path, found, known },
            StoreError::Older(_) => Self::Older(path),
            StoreError::Foreign(_) => Self::Foreign { path, problem: "it is of another program" },
            StoreError::Missing(_) => Self::Foreign { path, problem: "it is an empty database" },
            StoreError::Damaged { problem, .. } => Self::Damaged { path, problem },
            StoreError::Unreadable { problem, .. } => Self::Unreadable { path, problem },
            other => Self::Unreadable { path, problem: other.to_string() },
        }
    }
}
