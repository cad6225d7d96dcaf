//! Detection of other programs' files at the paths of ours.
//!
//! Lock files, and the companion files that SQLite creates beside a database, have names that a user's file can have
//! too. They are checked here before they are used. A file that is not ours is never opened for writing, truncated or
//! deleted, and no symbolic link is followed.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::private::{create_private_file, private_options};

/// A file of another program at the path of one of ours.
#[derive(Debug, PartialEq, Eq)]
pub struct ForeignFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The reason why the file is not ours, for error messages.
    pub problem: &'static str,
}

/// An error of opening a lock file.
#[derive(Debug)]
pub enum LockFileError {
    /// File of another program.
    Foreign(ForeignFile),
    /// The file cannot be read.
    Io(io::Error),
}

impl From<io::Error> for LockFileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Opens a lock file, which is an empty file with mode 0600, and creates it where there is none.
///
/// # Errors
///
/// Something else has its name, or it cannot be created or opened.
pub fn open_lock_file(path: &Path) -> Result<File, LockFileError> {
    // `create_new` does not follow a symbolic link.
    match create_private_file(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        created => return Ok(created?),
    }
    let foreign = |problem| LockFileError::Foreign(ForeignFile { path: path.to_owned(), problem });
    let problem = |metadata: &Metadata| match not_a_file(metadata) {
        None if metadata.len() > 0 => Some("it is not empty, as lock files of fetchwell are"),
        problem => problem,
    };
    // A pipe is not opened at all, because opening one waits for its other end.
    if let Some(problem) = problem(&fs::symlink_metadata(path)?) {
        return Err(foreign(problem));
    }
    let file = private_options().write(true).open(path)?;
    match problem(&file.metadata()?) {
        Some(problem) => Err(foreign(problem)),
        None => Ok(file),
    }
}

/// Returns the first file beside a database that SQLite would use as its own, but did not write.
pub fn foreign_beside_database(database: &Path) -> Option<ForeignFile> {
    let not_sqlite = "it is not a file of SQLite, which keeps one of this name beside the database";
    let check = |suffix, is_sqlite: fn(&Path, &Metadata) -> io::Result<bool>| {
        let path = beside(database, suffix);
        let metadata = fs::symlink_metadata(&path).ok()?;
        let problem = not_a_file(&metadata).or_else(|| {
            // A file that disappears meanwhile belonged to SQLite.
            (!is_sqlite(&path, &metadata).unwrap_or(true)).then_some(not_sqlite)
        })?;
        Some(ForeignFile { path, problem })
    };
    check("-wal", |path, _| begins_as(path, &[[0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83]]))
        .or_else(|| check("-journal", |path, _| begins_as(path, &[[0xd9, 0xd5, 0x05, 0xf9]])))
        // Opening and closing it would give up the locks that SQLite has on it in this process.
        .or_else(|| check("-shm", |_, metadata| Ok(metadata.len() == 3 || metadata.len() % 4096 == 0)))
}

/// Returns the first non-empty companion file of a database that does not exist. SQLite deletes such files when a
/// database of this name is created, although they may contain the last changes of the missing one. `-shm` is not
/// checked, because it contains no changes and stays behind when a server is killed.
pub fn orphan_of_database(database: &Path) -> Option<ForeignFile> {
    let mut paths = ["-wal", "-journal"].into_iter().map(|suffix| beside(database, suffix));
    let path = paths.find(|path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.len() > 0))?;
    // Another process may have created the database meanwhile, and the file with it.
    let is_missing = fs::symlink_metadata(database).is_err();
    let problem = "it is of a database that is no longer there";
    is_missing.then_some(ForeignFile { path, problem })
}

/// Returns the path of a companion file, as SQLite names it: `DATABASE-wal`.
pub fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    PathBuf::from(path)
}

/// Returns the reason why a path is not a regular file, or `None` if it is one.
pub fn not_a_file(metadata: &Metadata) -> Option<&'static str> {
    match metadata.file_type() {
        kind if kind.is_symlink() => Some("it is a symbolic link"),
        kind if kind.is_dir() => Some("it is a folder"),
        kind if !kind.is_file() => Some("it is not a regular file"),
        _ => None,
    }
}

/// Returns true if a file is empty, or starts with one of these magic numbers or with zeros: SQLite zeroes the start
/// of a file that it no longer needs.
fn begins_as(path: &Path, magic: &[[u8; 4]]) -> io::Result<bool> {
    let mut head = Vec::with_capacity(4);
    File::open(path)?.take(4).read_to_end(&mut head)?;
    Ok(head.iter().all(|byte| *byte == 0) || magic.iter().any(|magic| head == magic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_sqlite_did_not_write_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("notes.db");
        assert_eq!(foreign_beside_database(&database), None);
        let sqlite = rusqlite::Connection::open(&database).unwrap();
        sqlite.pragma_update(None, "journal_mode", "WAL").unwrap();
        sqlite.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
        assert!(beside(&database, "-wal").exists() && beside(&database, "-shm").exists());
        assert_eq!(foreign_beside_database(&database), None);
        drop(sqlite);
        for suffix in ["-wal", "-journal", "-shm"] {
            let path = beside(&database, suffix);
            fs::write(&path, "").unwrap();
            assert_eq!(foreign_beside_database(&database), None, "{suffix}");
            fs::write(&path, "dear Ann").unwrap();
            assert_eq!(foreign_beside_database(&database).map(|foreign| foreign.path), Some(path.clone()));
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            assert_eq!(foreign_beside_database(&database).unwrap().problem, "it is a folder");
            fs::remove_dir(&path).unwrap();
        }
    }
}
