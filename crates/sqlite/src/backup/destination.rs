//! Destination file of a backup: checks that it may be written or replaced, and publishes it atomically.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use fetchwell_state::{beside, create_private_file, not_a_file};
use rusqlite::{Connection, OpenFlags};
use tempfile::{TempDir, TempPath};

use super::error::BackupError;
use crate::database::{Database, Header, connect, use_write_ahead_log};
use crate::fulltext::index::is_index_folder;

/// Suffixes of the files that SQLite and fetchwell keep beside a store.
const STORE_SUFFIXES: [&str; 7] =
    ["-wal", "-shm", "-journal", "-lock", "-lock-queue", "-index", "-index-lock"];

/// Path that is free, or holds a file that may be replaced.
#[derive(Debug)]
pub(super) struct Destination {
    path: PathBuf,
    folder: PathBuf,
    replaces: bool,
}

impl Destination {
    /// Checks the destination of a backup. Only an earlier backup is replaced: never a link, a store, or a file of
    /// another program.
    pub(super) fn check(path: &Path, store: &Path, replaces: bool) -> Result<Self, BackupError> {
        let destination = Self::new(path, replaces)?;
        let refuse = |path: PathBuf, problem| Err(BackupError::NotReplaced { path, problem });
        let place = destination.real_path();
        let is_in_place_of =
            |path: PathBuf| Self::new(&path, false).is_ok_and(|other| other.real_path() == place);
        if is_same_file(path, store) || is_in_place_of(store.to_owned()) {
            return refuse(path.to_owned(), "it is the store itself");
        }
        if STORE_SUFFIXES.into_iter().any(|suffix| is_in_place_of(beside(store, suffix))) {
            return refuse(path.to_owned(), "the store keeps a file of that name");
        }
        if is_in_index(&destination.folder) {
            return refuse(
                path.to_owned(),
                "its folder is the search index of a store, which is deleted when it is rebuilt",
            );
        }
        let logs = ["-wal", "-shm", "-journal"].map(|suffix| beside(path, suffix));
        if let Some(log) = logs.into_iter().find(|log| fs::symlink_metadata(log).is_ok()) {
            return refuse(log, "SQLite would read it as a part of the backup");
        }
        let metadata = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(destination),
            metadata => metadata.map_err(|error| destination.unwritable(&error))?,
        };
        if let Some(problem) = not_a_file(&metadata) {
            return refuse(path.to_owned(), problem);
        }
        if !replaces {
            return Err(BackupError::Exists(path.to_owned()));
        }
        let header = File::open(path).ok().and_then(|mut file| Header::read(&mut file));
        let has_server = ["-lock", "-index"].iter().any(|suffix| beside(path, suffix).exists());
        match header.filter(|header| header.is_store()) {
            None => refuse(path.to_owned(), "it is not a backup of fetchwell"),
            Some(header) if header.is_wal || has_server => refuse(path.to_owned(), "it is a store in use"),
            Some(_) => Ok(destination),
        }
    }

    /// Returns the destination of a store. If there is no store, an empty file may be there.
    pub(super) fn for_store(path: &Path) -> Result<Self, BackupError> {
        let metadata = fs::symlink_metadata(path);
        let is_empty_file = metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0);
        Self::new(path, is_empty_file)
    }

    fn new(path: &Path, replaces: bool) -> Result<Self, BackupError> {
        let unwritable =
            |problem: &str| BackupError::Unwritable { path: path.to_owned(), problem: problem.to_owned() };
        if path.file_name().is_none() {
            return Err(unwritable("it is a folder"));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(unwritable(&format!("there is no folder {}", folder.display())));
        }
        Ok(Self { path: path.to_owned(), folder: folder.to_owned(), replaces })
    }

    fn real_path(&self) -> Option<(PathBuf, OsString)> {
        Some((fs::canonicalize(&self.folder).ok()?, self.path.file_name()?.to_owned()))
    }

    fn unwritable(&self, problem: &impl ToString) -> BackupError {
        BackupError::Unwritable { path: self.path.clone(), problem: problem.to_string() }
    }
}

/// Returns true if a folder or one of its ancestors is a search index.
fn is_in_index(folder: &Path) -> bool {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_gone| folder.to_owned());
    folder.ancestors().any(is_index_folder)
}

/// Returns true if both paths lead to the same existing file.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (Database::identity_at(one), Database::identity_at(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// File that is written in a temporary folder beside its destination. Both are deleted unless the file is published.
#[derive(Debug)]
pub(super) struct StagedFile {
    /// Temporary folder; dropping it deletes everything that SQLite left in it.
    folder: TempDir,
    file: PathBuf,
    place: PathBuf,
}

impl StagedFile {
    pub(super) fn new(destination: &Destination) -> Result<Self, BackupError> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".fetchwell-").suffix(".tmp");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder =
            builder.tempdir_in(&destination.folder).map_err(|error| destination.unwritable(&error))?;
        let file = folder.path().join("backup.db");
        create_private_file(&file).map_err(|error| destination.unwritable(&error))?;
        Ok(Self { folder, file, place: destination.path.clone() })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn unwritable(&self, problem: &impl ToString) -> BackupError {
        BackupError::Unwritable { path: self.place.clone(), problem: problem.to_string() }
    }

    /// Opens the empty file without a journal: the file is synced once, when it is complete.
    pub(super) fn connect(&self) -> Result<Connection, BackupError> {
        let open = || {
            let connection = connect(&self.file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            connection.pragma_update(None, "journal_mode", "OFF")?;
            connection.pragma_update(None, "synchronous", "OFF")?;
            Ok(connection)
        };
        open().map_err(|error: rusqlite::Error| self.unwritable(&error))
    }

    /// Completes the copy as one file: a backup has no write-ahead log; a store has an empty one.
    pub(super) fn finish(&self, is_store: bool) -> Result<(), BackupError> {
        let finish = || {
            let connection = connect(&self.file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            if is_store {
                return use_write_ahead_log(&connection);
            }
            connection.pragma_update(None, "journal_mode", "DELETE")
        };
        finish().map_err(|error| self.unwritable(&error))
    }

    /// Syncs the file to disk and renames it to its destination.
    pub(super) fn publish(self, destination: &Destination) -> Result<(), BackupError> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::AlreadyExists => BackupError::Exists(destination.path.clone()),
            _ => destination.unwritable(&error),
        };
        File::options().write(true).open(&self.file).and_then(|file| file.sync_all()).map_err(failed)?;
        let file = TempPath::try_from_path(&self.file).map_err(failed)?;
        let published = if destination.replaces {
            file.persist(&destination.path)
        } else {
            file.persist_noclobber(&destination.path)
        };
        published.map_err(|error| failed(error.error))?;
        // Syncing the folder makes the new name durable. Not every system can do that.
        let _ = File::open(&destination.folder).and_then(|folder| folder.sync_all());
        let _ = self.folder.close();
        Ok(())
    }
}

/// Assigns a new id to a store, by which every process notices that it is another store.
pub(super) fn set_new_id(store: &Connection) -> Result<(), rusqlite::Error> {
    store.execute("UPDATE store SET uuid = hex(randomblob(16)) WHERE id = 1", ()).map(|_rows| ())
}
