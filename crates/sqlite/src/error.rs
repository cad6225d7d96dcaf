//! Conversion of errors of SQLite, of the index and of the system to those of a store.

use std::path::{Path, PathBuf};

use fetchwell_source::contract::StoreError;
use rusqlite::ErrorCode;
use tantivy::TantivyError;
use tantivy::directory::error::LockError;

/// Minimum free space in bytes; with less, a failed write counts as a full disk. No index segment is smaller.
#[cfg(unix)]
const MIN_FREE_BYTES: u64 = 256 * 1024;

/// Returns the folder of a store.
fn disk_of(store: &Path) -> PathBuf {
    let folder = store.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Returns true if the disk of a store has no space left.
fn is_full(store: &Path) -> bool {
    #[cfg(unix)]
    return rustix::fs::statvfs(disk_of(store))
        .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < MIN_FREE_BYTES);
    #[cfg(not(unix))]
    return false;
}

/// Returns true if a message of the index quotes the error of the system for a full disk. Errors from the index's own
/// threads arrive as messages without a kind, and the file that filled the disk may be deleted by then.
fn is_no_space(message: &str) -> bool {
    #[cfg(unix)]
    return [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT].into_iter().any(|error| {
        let text = std::io::Error::from(error).to_string();
        // The index quotes it with or without the number, which the standard library adds.
        text.split(" (os error").next().is_some_and(|text| message.contains(text))
    });
    #[cfg(not(unix))]
    return message.is_empty();
}

/// Converts a SQLite error of the store at `path`.
pub(crate) fn sqlite_error(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let problem = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::Foreign(path),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked(path),
        Some(
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied,
        ) => StoreError::Unreadable { path, problem },
        Some(ErrorCode::DiskFull) => StoreError::DiskFull { folder: disk_of(&path), problem },
        // SQLite does not always report why the system refused a write.
        Some(ErrorCode::SystemIoFailure) if is_full(&path) => {
            StoreError::DiskFull { folder: disk_of(&path), problem }
        }
        Some(ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => StoreError::Unwritable { path, problem },
        _ => StoreError::Damaged { path, problem },
    }
}

/// Converts an error of the index in `folder`, which belongs to the store at `store`.
pub(crate) fn index_error(store: &Path, folder: &Path, error: &TantivyError) -> StoreError {
    match error {
        TantivyError::LockFailure(LockError::LockBusy, _) => StoreError::Locked(store.to_owned()),
        other if is_full(store) || is_no_space(&other.to_string()) => StoreError::DiskFull {
            folder: disk_of(store),
            problem: format!("the search index of the store {} cannot be written", store.display()),
        },
        other => StoreError::Index { path: folder.to_owned(), problem: other.to_string() },
    }
}

/// Converts an IO error of writing a file of the store at `path`.
pub(crate) fn write_error(path: &Path, error: &std::io::Error) -> StoreError {
    let problem = error.to_string();
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            StoreError::DiskFull { folder: disk_of(path), problem }
        }
        std::io::ErrorKind::NotFound if !disk_of(path).is_dir() => StoreError::NoFolder(disk_of(path)),
        _ => StoreError::Unwritable { path: path.to_owned(), problem },
    }
}
