//! Faults that keep an index from being used as it is.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenReadError};

/// A fault that keeps an index from being used as it is.
#[derive(Debug)]
pub(in crate::source::store) enum IndexFault {
    /// There is none.
    Missing,
    /// It is of an earlier fetchwell, or of another state of the store.
    Outdated,
    /// Its files are not as they were written. The problem names the file where that is known.
    Damaged(String),
    /// The folder in its place is not this store's. The reason is for people.
    Foreign(&'static str),
    /// It cannot be read now: for example, the process has too many files open.
    Unreadable(String),
}

impl IndexFault {
    /// Reads an error of an index that was opened, which is damage unless the system had too little of something.
    pub(in crate::source::store) fn from_tantivy(error: &TantivyError) -> Self {
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
}

/// Returns whether the same read can succeed later.
fn is_shortage(error: &Arc<io::Error>) -> bool {
    // Too many open files, in this process or in the system, have no kind of their own.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted)
        || (cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE)))
}

/// Runs work on an index. Tantivy trusts its files: what it reads in a damaged one can make it panic.
pub(in crate::source::store) fn guard<T>(
    work: impl FnOnce() -> Result<T, TantivyError>,
) -> Result<T, TantivyError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_panic| {
        Err(TantivyError::InternalError("reading its files ended in a panic".to_owned()))
    })
}
