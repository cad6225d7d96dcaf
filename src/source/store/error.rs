//! What can go wrong with a store's files, each with what to do about it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use tantivy::TantivyError;
use tantivy::directory::error::LockError;

use super::index::IndexFault;
use crate::state::ForeignFile;

/// Why an embedded store cannot be used. The message names the file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no file.
    #[error("there is no store at {}; create it with `fetchwell import`, or correct the path", .0.display())]
    Missing(PathBuf),
    /// The file or its folder cannot be opened.
    #[error("the store {} cannot be opened ({problem}); check its path and permissions", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// The file is a database, or something else, of another program.
    #[error("{} is not a fetchwell store; name another file", .0.display())]
    Foreign(PathBuf),
    /// A file of another program lies where the store would keep one of its own.
    #[error("the file {} is not used or changed because {problem}; rename or move it, then run the command again: the store keeps a file of that name", .path.display())]
    ForeignFile {
        /// The file.
        path: PathBuf,
        /// The reason why it is not the store's.
        problem: &'static str,
    },
    /// The store was written by a newer fetchwell.
    #[error("the store {} has format {found} and this fetchwell reads up to {known}; upgrade fetchwell", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format this program reads.
        known: i64,
    },
    /// The store was written by an older fetchwell.
    #[error("the store {} is of an earlier format; import its files again, into a new store", .0.display())]
    Older(PathBuf),
    /// Another process holds the store or its search index.
    #[error("the store {} is locked by another process; wait for the other import to end, or stop it", .0.display())]
    Locked(PathBuf),
    /// The file is damaged.
    #[error("the store {} is damaged ({problem}); restore it from a backup, or delete it and import again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the database said.
        problem: String,
    },
    /// There is no space left for the store or its search index.
    #[error("the disk of {} is full ({problem}); free space there, then run the command again: what was written so far stays, and it goes on from there", .folder.display())]
    DiskFull {
        /// The folder of the store.
        folder: PathBuf,
        /// The error of the system or the database.
        problem: String,
    },
    /// The store may not be written.
    #[error("the store {} cannot be written ({problem}); change its permissions, or move it to a disk that can be written, then run the command again", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the database said.
        problem: String,
    },
    /// The newest changes are in the write-ahead log, which cannot be read without writing.
    #[error("the store {} cannot be read where nothing can be written ({problem}): its newest changes are in {}-wal; run `fetchwell connections --store` on it once where it can be written", .path.display(), .path.display())]
    UnreadLog {
        /// The file.
        path: PathBuf,
        /// The error of the database.
        problem: String,
    },
    /// There is no search index, and none can be made.
    #[error("the store {} has no search index of this version, and none can be made ({problem}); run `fetchwell search` on it once where it can be written", .path.display())]
    IndexUnmakeable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        problem: String,
    },
    /// The search index does not exist yet, and is being made.
    #[error("the search index of the store {} is being built; search again in a moment", .0.display())]
    Building(PathBuf),
    /// The search index does not exist yet, and another process holds the write lock.
    #[error("the store {} has no search index yet and {} is writing to the store; wait for it to end, then search again", .store.display(), process(*.holder))]
    IndexMissing {
        /// The file.
        store: PathBuf,
        /// The process that writes, where the system tells.
        holder: Option<u32>,
    },
    /// The search index is damaged and cannot be rebuilt before another process ends.
    #[error("the search index {} is damaged ({problem}) and cannot be rebuilt while {} is writing to the store; wait for it to end, then search again", .path.display(), process(*.holder))]
    IndexDamaged {
        /// The index's folder.
        path: PathBuf,
        /// The damage.
        problem: String,
        /// The process that writes, where the system tells.
        holder: Option<u32>,
    },
    /// The folder of the search index is not this store's.
    #[error("the folder {} is not used or changed because {problem}; rename or move it, then search again: the search index of the store is made there", .path.display())]
    IndexForeign {
        /// The folder.
        path: PathBuf,
        /// The reason why it is not this store's.
        problem: &'static str,
    },
    /// The search index cannot be read or written.
    #[error("the search index {} cannot be used ({problem}); delete that folder, it is rebuilt from the store", .path.display())]
    Index {
        /// The index's folder.
        path: PathBuf,
        /// What the index said.
        problem: String,
    },
}

impl From<ForeignFile> for StoreError {
    fn from(ForeignFile { path, problem }: ForeignFile) -> Self {
        Self::ForeignFile { path, problem }
    }
}

/// Less free space than this is a full disk: no segment of an index is smaller.
#[cfg(unix)]
const MIN_FREE_BYTES: u64 = 256 * 1024;

/// Returns the folder of a store.
fn disk_of(store: &Path) -> PathBuf {
    let folder = store.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Returns whether the disk of a store has no space left.
fn is_full(store: &Path) -> bool {
    #[cfg(unix)]
    return rustix::fs::statvfs(disk_of(store))
        .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < MIN_FREE_BYTES);
    #[cfg(not(unix))]
    return false;
}

/// Names the process that holds a lock.
fn process(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
}

impl StoreError {
    /// Reads a database error as one about the store at `path`.
    pub(super) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let problem = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::Foreign(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked(path),
            Some(
                ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::AuthorizationForStatementDenied,
            ) => Self::Unreadable { path, problem },
            Some(ErrorCode::DiskFull) => Self::DiskFull { folder: disk_of(&path), problem },
            // SQLite does not always tell why the system refused a write.
            Some(ErrorCode::SystemIoFailure) if is_full(&path) => {
                Self::DiskFull { folder: disk_of(&path), problem }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => Self::Unwritable { path, problem },
            _ => Self::Damaged { path, problem },
        }
    }

    /// Reads an index error as one about the index in `folder` of the store at `store`.
    pub(super) fn from_index(store: &Path, folder: &Path, error: &TantivyError) -> Self {
        match error {
            TantivyError::LockFailure(LockError::LockBusy, _) => Self::Locked(store.to_owned()),
            // Errors of the index's threads are texts.
            other if is_full(store) => Self::DiskFull { folder: disk_of(store), problem: other.to_string() },
            other => Self::Index { path: folder.to_owned(), problem: other.to_string() },
        }
    }

    /// Reads an error of writing a file of the store at `path`.
    pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        let problem = error.to_string();
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { folder: disk_of(path), problem }
            }
            _ => Self::Unwritable { path: path.to_owned(), problem },
        }
    }

    /// Reads a fault of the index in `folder`.
    pub(super) fn from_index_fault(folder: &Path, fault: IndexFault) -> Self {
        let path = folder.to_owned();
        match fault {
            IndexFault::Foreign(problem) => Self::IndexForeign { path, problem },
            IndexFault::Damaged(problem) | IndexFault::Unreadable(problem) => Self::Index { path, problem },
            IndexFault::Missing => Self::Index { path, problem: "it is missing".to_owned() },
            IndexFault::Outdated => {
                Self::Index { path, problem: "it is of an earlier state or version".to_owned() }
            }
        }
    }
}
