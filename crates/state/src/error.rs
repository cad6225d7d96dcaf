//! Errors of state, each with its remedy.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::redis::RedisError;
use super::{FileKind, ForeignFile};

/// The reason why state cannot be stored or read. The message contains the path and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The state directory does not exist and cannot be created.
    #[error("the state directory {} cannot be made ({problem}); name one that can with --state-dir", .path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// Error message of the system.
        problem: String,
    },
    /// The file with the keys is readable by other users.
    #[error("others can read the keys in {} (mode {mode:o}); run `chmod 600 {}`, and delete the file if someone else may have read it: a new one is created, and cursors and change tokens of its keys become invalid", .path.display(), .path.display())]
    OpenToOthers {
        /// Path of the key file.
        path: PathBuf,
        /// Unix permissions of the file.
        mode: u32,
    },
    /// The content of the key file is invalid.
    #[error("the key file {} is damaged ({problem}); delete it, and a new one is created: cursors and change tokens of its keys become invalid", .path.display())]
    DamagedKeys {
        /// Path of the key file.
        path: PathBuf,
        /// Position of the error in the file, without its content.
        problem: String,
    },
    /// A file cannot be opened.
    #[error("{} cannot be opened ({problem}); check its permissions, or name another directory with --state-dir", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error message of the system.
        problem: String,
    },
    /// The file is a database, or another file, of another program.
    #[error("{} is not a {what} of fetchwell; move it away, or name another directory with --state-dir", .path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// Expected content, such as `cursor store`.
        what: &'static str,
    },
    /// A file of another program is at the path of one of ours.
    #[error("{} is not used or changed because {problem}; move it away, or name another directory with --state-dir", .path.display())]
    ForeignFile {
        /// Path of the file.
        path: PathBuf,
        /// The reason why the file is not ours.
        problem: &'static str,
    },
    /// The file does not exist.
    #[error("there is no {what} at {}; `fetchwell serve` over HTTP makes it, in the directory of --state-dir", .path.display())]
    Missing {
        /// Path of the file.
        path: PathBuf,
        /// Expected content, such as `cursor store`.
        what: &'static str,
    },
    /// The file was written by another version of this program.
    #[error("the {what} {} has format {found} and this fetchwell reads {known}; delete it, or name another directory with --state-dir", .path.display())]
    OtherFormat {
        /// Path of the file.
        path: PathBuf,
        /// Format version of the file.
        found: i64,
        /// Format version that this program reads.
        known: i64,
        /// Content of the file, such as `cursor store`.
        what: &'static str,
    },
    /// The database is damaged.
    #[error("the {what} {} is damaged ({problem}); delete it: only {holds} are lost", .path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Error message of SQLite.
        problem: String,
        /// Content of the file, such as `cursor store`.
        what: &'static str,
        /// Data that is lost if the file is deleted, in the plural.
        holds: &'static str,
    },
    /// Another program has held the database lock for longer than the timeout.
    #[error("the {what} {} is locked by another program; end that program", .path.display())]
    Locked {
        /// Path of the file.
        path: PathBuf,
        /// Content of the file, such as `cursor store`.
        what: &'static str,
    },
    /// The disk, or the maximum size of the database, is full.
    #[error("the {what} {} is full ({problem}); free space on its disk", .path.display())]
    Full {
        /// Path of the file.
        path: PathBuf,
        /// Error message of SQLite or the system.
        problem: String,
        /// Content of the file, such as `cursor store`.
        what: &'static str,
    },
    /// The file cannot be written.
    #[error("{} cannot be written ({problem}); change its permissions, or name another directory with --state-dir", .path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Error message of the system.
        problem: String,
    },
    /// A cursor position exceeds its maximum size.
    #[error("a position would take {bytes} bytes, and {max_bytes} is the most; ask for less at once")]
    TooLarge {
        /// Size of the position in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        max_bytes: usize,
    },
    /// The Redis that servers share cannot be used.
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// The system provides no random bytes.
    #[error("the system provides no random bytes ({0})")]
    NoRandom(getrandom::Error),
}

impl StateError {
    /// Returns the kind of the error in one to three words.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Directory { .. } | Self::Missing { .. } => "missing",
            Self::Unreadable { .. } => "unreadable",
            Self::OpenToOthers { .. } => "open to others",
            Self::DamagedKeys { .. } | Self::Damaged { .. } => "damaged",
            Self::Foreign { .. } | Self::ForeignFile { .. } => "foreign",
            Self::OtherFormat { .. } => "of another version",
            Self::Locked { .. } => "locked",
            Self::Full { .. } => "full",
            Self::Unwritable { .. } => "read-only",
            Self::TooLarge { .. } => "too small",
            Self::Redis(error) => error.kind(),
            Self::NoRandom(_) => "without random bytes",
        }
    }

    /// Converts a database error of the file at `path`.
    pub(crate) fn from_sqlite(path: &Path, kind: &FileKind, error: &rusqlite::Error) -> Self {
        let FileKind { what, holds, .. } = *kind;
        let path = path.to_owned();
        let problem = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::Foreign { path, what },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path, what },
            Some(ErrorCode::DiskFull) => Self::Full { path, problem, what },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::Unreadable { path, problem },
            Some(ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => Self::Unwritable { path, problem },
            _ => Self::Damaged { path, problem, what, holds },
        }
    }

    /// Creates the error for a file of another program.
    pub(crate) fn from_foreign(ForeignFile { path, problem }: ForeignFile) -> Self {
        Self::ForeignFile { path, problem }
    }

    /// Creates the error for a file that cannot be read.
    pub(crate) fn unreadable(path: &Path, problem: &std::io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), problem: problem.to_string() }
    }

    /// Creates the error for a file that cannot be written.
    pub(crate) fn unwritable(path: &Path, problem: &std::io::Error) -> Self {
        let (path, text) = (path.to_owned(), problem.to_string());
        match problem.kind() {
            std::io::ErrorKind::StorageFull => Self::Full { path, problem: text, what: "file" },
            _ => Self::Unwritable { path, problem: text },
        }
    }
}

impl From<getrandom::Error> for StateError {
    fn from(error: getrandom::Error) -> Self {
        Self::NoRandom(error)
    }
}
