//! What can go wrong with a file of a state directory, each with what to do about it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::{FileKind, ForeignFile};

/// Why state cannot be kept or read. The message names the file and the remedy.
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
    #[error("{} is not a {what} of fetchwell; move it away, or name another directory with --state-dir", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
    },
    /// A file of another program lies where one of ours would be.
    #[error("{} is not used or changed because {problem}; move it away, or name another directory with --state-dir", .path.display())]
    ForeignFile {
        /// The file.
        path: PathBuf,
        /// The reason why it is not ours.
        problem: &'static str,
    },
    /// There is none.
    #[error("there is no {what} at {}; `fetchwell serve` over HTTP makes it, in the directory of --state-dir", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
    },
    /// The store was written by another version.
    #[error("the {what} {} has format {found} and this fetchwell reads {known}; delete it, or name another directory with --state-dir", .path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The format this program reads.
        known: i64,
        /// What it is.
        what: &'static str,
    },
    /// The store is damaged.
    #[error("the {what} {} is damaged ({problem}); delete it: only {holds} are lost", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the database said.
        problem: String,
        /// What it is.
        what: &'static str,
        /// What it holds.
        holds: &'static str,
    },
    /// Another program holds the store for too long.
    #[error("the {what} {} is locked by another program; end that program", .path.display())]
    Locked {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// There is no space.
    #[error("the {what} {} is full ({problem}); free space on its disk", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What the database said.
        problem: String,
        /// What it is.
        what: &'static str,
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
            Self::NoRandom(_) => "without random bytes",
        }
    }

    /// Reads a database error as one about the file at `path`, which is of some kind.
    pub(super) fn from_sqlite(path: &Path, kind: &FileKind, error: &rusqlite::Error) -> Self {
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

    /// Reports a file of another program.
    pub(super) fn from_foreign(ForeignFile { path, problem }: ForeignFile) -> Self {
        Self::ForeignFile { path, problem }
    }

    /// A file cannot be read.
    pub(crate) fn unreadable(path: &Path, problem: &std::io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), problem: problem.to_string() }
    }

    /// A file cannot be written.
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
