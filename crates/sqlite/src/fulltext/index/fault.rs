//! Faults that prevent the use of an index.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use fetchwell_source::contract::StoreError;
use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenReadError};

use super::folder::folder_of;
use crate::lock_holder::lock_holder;

/// Fault that prevents the use of an index.
#[derive(Debug)]
pub(crate) enum IndexFault {
    /// There is no index.
    Missing,
    /// The index was written by an earlier release, or for another state of the store.
    Outdated,
    /// The files differ from those that were written. The problem names the file if it is known.
    Damaged(String),
    /// The folder does not belong to this store; the reason is part of error messages.
    Foreign(&'static str),
    /// The index cannot be read at the moment, for example because the process has too many open files.
    Unreadable(String),
}

impl IndexFault {
    /// Converts an error of an open index. It counts as damage unless the system ran out of a resource.
    pub(crate) fn from_tantivy(error: &TantivyError) -> Self {
        match error {
            TantivyError::IoError(io)
            | TantivyError::OpenReadError(OpenReadError::IoError { io_error: io, .. })
                if is_shortage(io) =>
            {
                Self::Unreadable(io.to_string())
            }
            TantivyError::LockFailure(LockError::IoError(io), _) => Self::Unreadable(io.to_string()),
            other => Self::Damaged(other.to_string()),
        }
    }

    /// Converts the fault to an error of the store with the index in `folder`.
    pub(crate) fn into_error(self, folder: &Path) -> StoreError {
        let path = folder.to_owned();
        match self {
            Self::Foreign(problem) => StoreError::IndexForeign { path, problem },
            Self::Damaged(problem) | Self::Unreadable(problem) => StoreError::Index { path, problem },
            Self::Missing => StoreError::Index { path, problem: "it is missing".to_owned() },
            Self::Outdated => {
                StoreError::Index { path, problem: "it is of an earlier state or version".to_owned() }
            }
        }
    }
}

/// Returns true if the same read can succeed later.
fn is_shortage(error: &Arc<io::Error>) -> bool {
    // `ErrorKind` has no variant for too many open files.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted)
        || (cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE)))
}

/// Runs work on an index and converts panics into errors: tantivy trusts its files, and damaged ones can make it
/// panic.
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T, TantivyError>) -> Result<T, TantivyError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_panic| {
        Err(TantivyError::InternalError("reading its files ended in a panic".to_owned()))
    })
}

/// Returns the error of an index that cannot be created or rebuilt because another process is writing.
pub(super) fn busy(store: &Path, damage: Option<String>) -> StoreError {
    let holder = lock_holder(store);
    match damage {
        Some(problem) => StoreError::IndexDamaged { path: folder_of(store), problem, holder },
        None => StoreError::IndexMissing { store: store.to_owned(), holder },
    }
}

/// Returns the error of a damaged index of a read-only store.
pub(super) fn unwritable(store: &Path, damage: &str, error: &StoreError) -> StoreError {
    let problem = format!("it is damaged: {damage}; it cannot be rebuilt: {error}");
    StoreError::Index { path: folder_of(store), problem }
}
