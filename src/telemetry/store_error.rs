//! Why calls cannot be kept in their file, or read from it, each with what to do about it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// There is none.
    #[error("no calls are recorded at {}; `fetchwell serve` over HTTP records them, in the directory of --state-dir", .0.display())]
    Missing(PathBuf),
    /// It cannot be opened.
    #[error("{} cannot be opened ({problem}); check its permissions", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// It is something else.
    #[error("{} does not hold calls of fetchwell; move it away", .0.display())]
    Foreign(PathBuf),
    /// It was written by another version.
    #[error("{} has format {found} and this fetchwell reads {known}; delete it: only figures are lost", .path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The format this program reads.
        known: i64,
    },
    /// It is damaged.
    #[error("{} is damaged ({problem}); delete it: only figures are lost", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the database said.
        problem: String,
    },
    /// Another program holds it for too long.
    #[error("{} is locked by another program; end that program", .0.display())]
    Locked(PathBuf),
    /// There is no space.
    #[error("{} is full ({problem}); free space on its disk", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What the database said.
        problem: String,
    },
    /// It cannot be written.
    #[error("{} cannot be written ({problem}); change its permissions", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
}

impl TelemetryError {
    /// Reads a database error as one about the file at `path`.
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

    pub(super) fn unwritable(path: &Path, problem: &impl ToString) -> Self {
        Self::Unwritable { path: path.to_owned(), problem: problem.to_string() }
    }
}
