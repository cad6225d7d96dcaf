//! What can go wrong with the files that cursors need, each with what to do about it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why cursors cannot be given or read. The message names the file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The state directory is not there and cannot be made.
    #[error("the state directory {} cannot be made ({problem}); name one that can with --state-dir", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// Others can read the keys.
    #[error("others can read the keys in {} (mode {mode:o}); run `chmod 600 {}`, then `fetchwell cursor rotate`", .path.display(), .path.display())]
    OpenToOthers {
        /// The key file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The key file does not hold keys.
    #[error("the key file {} is damaged ({problem}); delete it, and a new one is made: cursors given so far end", .path.display())]
    DamagedKeys {
        /// The file.
        path: PathBuf,
        /// Where it is wrong, without quoting it.
        problem: String,
    },
    /// A file cannot be opened.
    #[error("{} cannot be opened ({problem}); check its permissions, or name another directory with --state-dir", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// The file is a database, or something else, of another program.
    #[error("{} is not a cursor store of fetchwell; move it away, or name another directory with --state-dir", .0.display())]
    Foreign(PathBuf),
    /// The store was written by another version.
    #[error("the cursor store {} has format {found} and this fetchwell reads {known}; delete it, or name another directory with --state-dir", .path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The format this program reads.
        known: i64,
    },
    /// The store is damaged.
    #[error("the cursor store {} is damaged ({problem}); delete it: only cursors are lost", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the database said.
        problem: String,
    },
    /// Another program holds the store for too long.
    #[error("the cursor store {} is locked by another program; end that program", .0.display())]
    Locked(PathBuf),
    /// There is no space.
    #[error("the cursor store {} is full ({problem}); free space on its disk", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What the database said.
        problem: String,
    },
    /// It cannot be written.
    #[error("{} cannot be written ({problem}); change its permissions, or name another directory with --state-dir", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// A position is larger than any should be.
    #[error("a position would take {bytes} bytes, and {most} is the most; ask for less at once")]
    TooLarge {
        /// What it takes.
        bytes: usize,
        /// What it may take.
        most: usize,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes ({0})")]
    NoRandom(getrandom::Error),
}

impl StateError {
    /// What is the matter, in a word or two.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "missing",
            Self::Unreadable { .. } => "unreadable",
            Self::OpenToOthers { .. } => "open to others",
            Self::DamagedKeys { .. } | Self::Damaged { .. } => "damaged",
            Self::Foreign(_) => "foreign",
            Self::OtherFormat { .. } => "of another version",
            Self::Locked(_) => "locked",
            Self::Full { .. } => "full",
            Self::Unwritable { .. } => "read-only",
            Self::TooLarge { .. } => "too small",
            Self::NoRandom(_) => "without random bytes",
        }
    }

    /// Reads a database error as one about the store at `path`.
    pub(super) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let problem = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::Foreign(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked(path),
            Some(ErrorCode::DiskFull) => Self::Full { path, problem },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::Unreadable { path, problem },
            Some(ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => Self::Unwritable { path, problem },
            _ => Self::Damaged { path, problem },
        }
    }

    pub(super) fn unreadable(path: &Path, problem: &std::io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), problem: problem.to_string() }
    }

    pub(super) fn unwritable(path: &Path, problem: &std::io::Error) -> Self {
        let (path, text) = (path.to_owned(), problem.to_string());
        match problem.kind() {
            std::io::ErrorKind::StorageFull => Self::Full { path, problem: text },
            _ => Self::Unwritable { path, problem: text },
        }
    }
}

impl From<getrandom::Error> for StateError {
    fn from(error: getrandom::Error) -> Self {
        Self::NoRandom(error)
    }
}
