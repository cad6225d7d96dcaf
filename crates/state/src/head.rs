//! Reads the first bytes of a database without giving up the locks of SQLite.
//!
//! On Unix, closing any handle of a file releases the locks that the process has on it. A second reader of a store in
//! one process, such as a build of vectors beside searches, would so let another process delete a write-ahead log that
//! is in use. The handles of files that were read here are therefore kept open.

use std::io;
use std::path::Path;

use fetchwell_core::saturate::saturated;

/// Returns up to `length` bytes from the beginning of a file.
///
/// # Errors
///
/// The file cannot be opened or read.
#[cfg(unix)]
pub fn read_head(path: &Path, length: usize) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;

    let file = kept::open(path)?;
    let mut head = vec![0; length];
    let mut filled = 0;
    while let Some(rest) = head.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, saturated::<u64>(filled)) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(filled);
    Ok(head)
}

/// Returns up to `length` bytes from the beginning of a file.
///
/// # Errors
///
/// The file cannot be opened or read.
#[cfg(not(unix))]
pub fn read_head(path: &Path, length: usize) -> io::Result<Vec<u8>> {
    use std::fs::File;
    use std::io::Read;

    let mut head = Vec::with_capacity(length);
    File::open(path)?.take(saturated::<u64>(length)).read_to_end(&mut head)?;
    Ok(head)
}

/// The handles that are kept open.
#[cfg(unix)]
mod kept {
    use std::collections::HashMap;
    use std::fs::{self, File};
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::sync::{Arc, LazyLock};

    use parking_lot::Mutex;

    /// Number of handles above which those of deleted files are closed.
    const MANY: usize = 32;

    type Handles = HashMap<(u64, u64), Arc<File>>;

    static HANDLES: LazyLock<Mutex<Handles>> = LazyLock::new(Mutex::default);

    /// Returns the handle of the file that is now at a path.
    pub(crate) fn open(path: &Path) -> io::Result<Arc<File>> {
        let metadata = fs::metadata(path)?;
        // Only regular files have locks that matter, and opening a pipe would wait for its other end.
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut handles = HANDLES.lock();
        if let Some(known) = handles.get(&(metadata.dev(), metadata.ino())) {
            return Ok(Arc::clone(known));
        }
        if handles.len() >= MANY {
            handles.retain(|_, file| file.metadata().is_ok_and(|metadata| metadata.nlink() > 0));
        }
        let file = Arc::new(File::open(path)?);
        let metadata = file.metadata()?;
        handles.insert((metadata.dev(), metadata.ino()), Arc::clone(&file));
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_replaced_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert!(read_head(&path, 4).is_err());
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read_head(&path, 4).unwrap(), b"abc");
        assert_eq!(read_head(&path, 2).unwrap(), b"ab");
        std::fs::write(folder.path().join("b"), "xyzxyz").unwrap();
        std::fs::rename(folder.path().join("b"), &path).unwrap();
        assert_eq!(read_head(&path, 4).unwrap(), b"xyzx");
        assert!(read_head(folder.path(), 4).is_err());
    }

    /// Locks belong to a process, so another one has to look whether they are still there.
    #[cfg(unix)]
    #[test]
    fn reading_a_head_keeps_the_locks_of_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.db");
        let open = rusqlite::Connection::open(&path).unwrap();
        open.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
            .unwrap();
        assert!(read_head(&path, 16).unwrap().starts_with(b"SQLite format 3\0"));
        let script =
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM t').fetchall()";
        let other = std::process::Command::new("python3").args(["-c", script]).arg(&path).status();
        assert!(other.unwrap().success());
        // A process that closes the last connection deletes the log.
        assert!(super::super::beside(&path, "-wal").exists());
    }
}
