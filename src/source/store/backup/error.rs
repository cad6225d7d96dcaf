//! Errors of backups, each with its remedy.

use std::path::{Path, PathBuf};

use super::super::StoreError;

/// An error of making or restoring a backup. The message names the file and the remedy.
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
        /// The file.
        path: PathBuf,
        /// The error of the system.
        problem: String,
    },
    /// The file to restore is not a backup.
    #[error("{} is not a backup of a fetchwell store ({problem}); name a file that `fetchwell backup` wrote", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The reason why it is none.
        problem: &'static str,
    },
    /// The backup was written by a newer fetchwell.
    #[error("the backup {} has format {found} and this fetchwell reads up to {known}; upgrade fetchwell", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format this program reads.
        known: i64,
    },
    /// The backup was written by an older fetchwell.
    #[error("the backup {} is of an earlier format; import its files again, into a new store", .0.display())]
    Older(PathBuf),
    /// The backup is damaged.
    #[error("the backup {} is damaged ({problem}); nothing was restored: name another backup", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error of the database.
        problem: String,
    },
    /// The file to restore is a database that is in use, or was copied without its log.
    #[error("{} is not a whole backup, because changes of it are in {}; make one with `fetchwell backup --store {}`", .path.display(), .log.display(), .path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// The file with the rest.
        log: PathBuf,
    },
    /// There is a file of that name.
    #[error("{} exists; name another file, or replace that backup with --force", .0.display())]
    Exists(PathBuf),
    /// There is something of that name that is not replaced.
    #[error("{} is not replaced because {problem}; name another file for the backup, or move it", .path.display())]
    NotReplaced {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: &'static str,
    },
    /// The backup cannot be written.
    #[error("the backup {} cannot be written ({problem}); free space, or name a file in another folder", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        problem: String,
    },
    /// The records of the store could not be kept before they are replaced.
    #[error(
        "nothing was restored, because the records that the store has now could not be kept first: {problem}; or replace them without a copy with --force"
    )]
    NotKept {
        /// The reason.
        problem: Box<Self>,
    },
    /// The file of the store does not take new contents.
    #[error("the store {} cannot be replaced ({problem}); move it and the files beside it that end with -wal and -shm, then restore again", .path.display())]
    NotReplaceable {
        /// The file.
        path: PathBuf,
        /// The error of the database.
        problem: String,
    },
    /// The backup to restore is the store itself.
    #[error("{} is the store itself; name a backup of it", .0.display())]
    SameFile(PathBuf),
    /// The user stopped it.
    #[error("stopped; everything is as it was")]
    Stopped,
}

impl BackupError {
    /// Reads a fault of a copy that was just made of a store as one of the store.
    pub(super) fn of_store(self, store: &Path, copy: &Path) -> Self {
        match self {
            Self::Damaged { path, problem } if path == copy => {
                StoreError::Damaged { path: store.to_owned(), problem }.into()
            }
            other => other,
        }
    }

    /// Reads an error about opening the backup at `path`.
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
