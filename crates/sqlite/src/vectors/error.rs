//! Conversion of errors of SQLite and of the operating system to those of vectors.

use std::path::Path;

use fetchwell_source::contract::VectorError;
use rusqlite::ErrorCode;

/// Converts a SQLite error of the vectors at `path`.
pub(super) fn sqlite_error(path: &Path, error: &rusqlite::Error) -> VectorError {
    let (path, problem) = (path.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => VectorError::DiskFull { path, problem },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => VectorError::Busy(path),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => VectorError::Damaged { path, problem },
        _ => VectorError::Unusable { path, problem },
    }
}

/// Converts an error of the operating system.
pub(super) fn io_error(path: &Path, error: &std::io::Error) -> VectorError {
    VectorError::Unusable { path: path.to_owned(), problem: error.to_string() }
}
