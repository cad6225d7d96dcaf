//! One SQLite file of a state directory, created on first use and identified by its header.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::foreign::{beside, foreign_beside_database, not_a_file};
use super::head::read_head;
use super::identity::FileIdentity;
use super::private::{create_private_directory, create_private_file};
use super::{FileKind, StateError, StateLock};

/// Timeout for the lock of another process. Writes to these files take well under a millisecond, so a longer wait is
/// not useful.
const BUSY: Duration = Duration::from_secs(1);

/// Size of a write-ahead log in bytes at which SQLite moves it into the database.
const CHECKPOINT_BYTES: i64 = 4 * 1024 * 1024;

/// First bytes of a database of SQLite.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Length of the header up to the end of the application id.
const HEADER: usize = 72;

/// A file of a state directory, which may not exist yet.
#[derive(Debug)]
pub struct StateFile {
    kind: FileKind,
    directory: PathBuf,
    path: PathBuf,
    /// Maximum size in bytes.
    pub max_bytes: i64,
}

impl StateFile {
    /// Returns the file of this kind in a state directory. Does not access the disk.
    #[must_use]
    pub fn in_directory(kind: FileKind, directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            path: directory.join(kind.name),
            max_bytes: kind.max_bytes,
            kind,
        }
    }

    /// Returns the state directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns true if the file exists.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// Returns the identity of the file that is now at the path; `None` if there is none.
    pub(crate) fn identity(&self) -> Option<FileIdentity> {
        std::fs::metadata(&self.path).ok().map(|metadata| FileIdentity::from_metadata(&metadata))
    }

    /// Converts a database error of this file.
    #[must_use]
    pub fn error(&self, error: &rusqlite::Error) -> StateError {
        StateError::from_sqlite(&self.path, &self.kind, error)
    }

    /// Opens a connection for writing. Creates the directory and the file if they do not exist, upgrades a file of an
    /// earlier version, and verifies that the file belongs to this program.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be created, read or written, or belongs to another program or version.
    pub fn prepare(&self) -> Result<Connection, StateError> {
        create_private_directory(&self.directory).map_err(|error| StateError::Directory {
            path: self.directory.clone(),
            problem: error.to_string(),
        })?;
        self.check_files()?;
        // SQLite fills the empty file and gives its companion files (`-wal`, `-shm`) the same permissions.
        match create_private_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(StateError::unwritable(&self.path, &error));
            }
            _ => {}
        }
        let mut connection = self.connect()?;
        if self.is_empty(&connection)? {
            let _lock = StateLock::acquire(&self.directory)?;
            // Another process may have created the tables meanwhile.
            if self.is_empty(&connection)? {
                self.create(&mut connection).map_err(|error| self.error(&error))?;
            }
        }
        if self.upgrade_of(&connection)?.is_some() {
            let _lock = StateLock::acquire(&self.directory)?;
            // Another process may have upgraded the file meanwhile.
            while let Some((format, upgrade)) = self.upgrade_of(&connection)? {
                self.upgrade(&mut connection, format, upgrade).map_err(|error| self.error(&error))?;
            }
        }
        self.check_format(&connection)?;
        Ok(connection)
    }

    /// Checks that the path is no symbolic link and that SQLite finds no file of another program beside the database.
    fn check_files(&self) -> Result<(), StateError> {
        let problem = std::fs::symlink_metadata(&self.path).ok().and_then(|metadata| not_a_file(&metadata));
        if let Some(problem) = problem {
            return Err(StateError::ForeignFile { path: self.path.clone(), problem });
        }
        foreign_beside_database(&self.path).map_or(Ok(()), |foreign| Err(StateError::from_foreign(foreign)))
    }

    /// Opens a connection for writing to a file that was prepared.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn connect(&self) -> Result<Connection, StateError> {
        self.connect_with(OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Opens a connection for reading, which may run concurrently with a writer. Upgrades a file of an earlier
    /// version.
    ///
    /// # Errors
    ///
    /// The file does not exist, cannot be read, or belongs to another program or version.
    pub fn reader(&self) -> Result<Connection, StateError> {
        if !self.is_there() {
            return Err(StateError::Missing { path: self.path.clone(), what: self.kind.what });
        }
        let mut connection = self.connect_with(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        if self.upgrade_of(&connection)?.is_some() {
            drop(self.prepare()?);
            connection = self.connect_with(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        }
        self.check_format(&connection)?;
        Ok(connection)
    }

    fn connect_with(&self, flags: OpenFlags) -> Result<Connection, StateError> {
        self.open(flags).map_err(|error| self.error(&error))
    }

    fn open(&self, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
        // NO_MUTEX: a connection is only ever used by one thread at a time.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY)?;
        // In write-ahead mode every commit is atomic and survives the process. A power failure loses the latest ones, and
        // without syncs it may damage the file.
        let synchronous = if self.kind.is_disposable { "OFF" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "secure_delete", self.kind.overwrites)?;
        // Has an effect on an empty file only.
        connection.pragma_update(None, "page_size", self.kind.page_bytes)?;
        let page_bytes = connection.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))?.max(1);
        connection.pragma_update(None, "max_page_count", self.max_bytes / page_bytes)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_BYTES / page_bytes)?;
        Ok(connection)
    }

    /// Deletes a damaged file whose content may be lost, after a read or write failed with `error`. Does nothing if the
    /// file is not damaged, as when another process has replaced it. Returns false if the content may not be lost.
    ///
    /// # Errors
    ///
    /// It cannot be read or deleted.
    pub(crate) fn delete_damaged(&self, error: &StateError) -> Result<bool, StateError> {
        if !self.kind.is_disposable || !matches!(error, StateError::Damaged { .. }) {
            return Ok(false);
        }
        let _lock = StateLock::acquire(&self.directory)?;
        self.check_files()?;
        let head =
            read_head(&self.path, HEADER).map_err(|error| StateError::unreadable(&self.path, &error))?;
        let is_ours = head.starts_with(MAGIC) && head.ends_with(&self.kind.application_id.to_be_bytes()[4..]);
        if !is_ours || !self.is_damaged()? {
            return Ok(is_ours);
        }
        for path in [self.path.clone(), beside(&self.path, "-wal"), beside(&self.path, "-shm")] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(StateError::unwritable(&path, &error));
                }
                _ => {}
            }
        }
        let holds = self.kind.holds;
        tracing::warn!("{error}; it was deleted, and a new one is created: only {holds} were lost");
        Ok(true)
    }

    /// Returns true if SQLite finds damage.
    fn is_damaged(&self) -> Result<bool, StateError> {
        let check = || {
            let connection = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            connection.query_row("PRAGMA quick_check(1)", (), |row| row.get::<_, String>(0))
        };
        let error = match check() {
            Ok(result) => return Ok(result != "ok"),
            Err(error) => error,
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Ok(true),
            _ => Err(self.error(&error)),
        }
    }

    fn is_empty(&self, connection: &Connection) -> Result<bool, StateError> {
        let none = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)";
        connection.query_one(none, (), |row| row.get(0)).map_err(|error| self.error(&error))
    }

    /// Returns the file's application id and format version.
    fn header(&self, connection: &Connection) -> Result<(i64, i64), StateError> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let read = || Ok((pragma("application_id")?, pragma("user_version")?));
        read().map_err(|error| self.error(&error))
    }

    /// Returns the version of a file in an earlier format of this program, with the SQL that upgrades it to the next.
    fn upgrade_of(&self, connection: &Connection) -> Result<Option<(i64, &'static str)>, StateError> {
        let (id, format) = self.header(connection)?;
        let known = self.kind.upgrades.iter().find(|(from, _)| *from == format);
        Ok(known.copied().filter(|_| id == self.kind.application_id))
    }

    fn upgrade(
        &self,
        connection: &mut Connection,
        format: i64,
        upgrade: &str,
    ) -> Result<(), rusqlite::Error> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(upgrade)?;
        transaction.pragma_update(None, "user_version", format + 1)?;
        transaction.commit()
    }

    fn check_format(&self, connection: &Connection) -> Result<(), StateError> {
        let FileKind { what, application_id, format, .. } = self.kind;
        let path = || self.path.clone();
        match self.header(connection)? {
            (id, found) if id == application_id && found == format => Ok(()),
            (id, found) if id == application_id => {
                Err(StateError::OtherFormat { path: path(), found, known: format, what })
            }
            _ => Err(StateError::Foreign { path: path(), what }),
        }
    }

    fn create(&self, connection: &mut Connection) -> Result<(), rusqlite::Error> {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // One transaction, so that a reader sees either no tables or all of them.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(self.kind.schema)?;
        transaction.pragma_update(None, "user_version", self.kind.format)?;
        transaction.pragma_update(None, "application_id", self.kind.application_id)?;
        transaction.commit()
    }
}
