//! One SQLite file of a state directory: made when it is needed, told apart from others by its header.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::foreign::{foreign_beside_database, not_a_file};
use super::private::{create_private_directory, create_private_file};
use super::{StateError, StateLock};

/// How long a connection waits for another process. What is kept here is written in well under a millisecond, and nobody
/// waits for longer than that is worth.
const BUSY: Duration = Duration::from_secs(1);

/// What a file is for.
#[derive(Debug, Clone, Copy)]
pub struct FileKind {
    /// Its name in the directory.
    pub name: &'static str,
    /// What it is called in errors, such as `cursor store`.
    pub what: &'static str,
    /// What is lost with it, in the plural.
    pub holds: &'static str,
    /// In its header, so that other programs' databases are told apart.
    pub application_id: i64,
    /// The format this program reads and writes.
    pub format: i64,
    /// What it is made of.
    pub schema: &'static str,
    /// Earlier formats that are taken over, each with what makes the next one of it.
    pub upgrades: &'static [(i64, &'static str)],
    /// The most pages of 4,096 bytes.
    pub pages_most: i64,
    /// What is deleted is overwritten.
    pub overwrites: bool,
}

/// A file of a state directory, whether it is there or not.
#[derive(Debug)]
pub struct StateFile {
    kind: FileKind,
    directory: PathBuf,
    path: PathBuf,
    /// The most pages of 4,096 bytes.
    pub(crate) pages_most: i64,
}

impl StateFile {
    /// That of a state directory.
    #[must_use]
    pub fn in_directory(kind: FileKind, directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            path: directory.join(kind.name),
            pages_most: kind.pages_most,
            kind,
        }
    }

    /// Whether there is a file.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// What a database error says of it.
    #[must_use]
    pub fn error(&self, error: &rusqlite::Error) -> StateError {
        StateError::from_sqlite(&self.path, &self.kind, error)
    }

    /// A connection that writes. The directory and the file are made where they are not there, and the file is proved to
    /// be of this program.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be made, read or written, or is another program's or another version's.
    pub fn prepare(&self) -> Result<Connection, StateError> {
        create_private_directory(&self.directory).map_err(|error| StateError::Directory {
            path: self.directory.clone(),
            problem: error.to_string(),
        })?;
        self.check_files()?;
        // SQLite fills the empty file, and gives the files beside it the same permissions.
        match create_private_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(StateError::unwritable(&self.path, &error));
            }
            _ => {}
        }
        let mut connection = self.connect()?;
        if self.is_empty(&connection)? {
            let _lock = StateLock::of(&self.directory)?;
            // Another process may have filled it meanwhile.
            if self.is_empty(&connection)? {
                self.create(&mut connection).map_err(|error| self.error(&error))?;
            }
        }
        if self.upgrade_of(&connection)?.is_some() {
            let _lock = StateLock::of(&self.directory)?;
            // Another process may have taken it over meanwhile.
            while let Some((format, upgrade)) = self.upgrade_of(&connection)? {
                self.upgrade(&mut connection, format, upgrade).map_err(|error| self.error(&error))?;
            }
        }
        self.check_format(&connection)?;
        Ok(connection)
    }

    /// Checks that SQLite follows no link, and that it finds no file of another program beside the file.
    fn check_files(&self) -> Result<(), StateError> {
        let problem = std::fs::symlink_metadata(&self.path).ok().and_then(|metadata| not_a_file(&metadata));
        if let Some(problem) = problem {
            return Err(StateError::ForeignFile { path: self.path.clone(), problem });
        }
        foreign_beside_database(&self.path).map_or(Ok(()), |foreign| Err(StateError::from_foreign(foreign)))
    }

    /// A connection that writes to a file that was prepared.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn connect(&self) -> Result<Connection, StateError> {
        self.connect_with(OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// A connection that reads, beside whoever writes.
    ///
    /// # Errors
    ///
    /// The file is not there, cannot be read, or is another program's or another version's.
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
        // NO_MUTEX: a connection is only ever used by one thread at a time.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connect = || {
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(BUSY)?;
            // In the write-ahead log every commit is whole, and survives the process; a power cut loses the last ones.
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "secure_delete", self.kind.overwrites)?;
            connection.pragma_update(None, "max_page_count", self.pages_most)?;
            Ok(connection)
        };
        connect().map_err(|error| self.error(&error))
    }

    fn is_empty(&self, connection: &Connection) -> Result<bool, StateError> {
        let none = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)";
        connection.query_one(none, (), |row| row.get(0)).map_err(|error| self.error(&error))
    }

    /// Whose file it is, and its format.
    fn header(&self, connection: &Connection) -> Result<(i64, i64), StateError> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let read = || Ok((pragma("application_id")?, pragma("user_version")?));
        read().map_err(|error| self.error(&error))
    }

    /// The format of an earlier file of this program, and what makes the next one of it.
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
        // One transaction: a reader sees no store, or a whole one.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(self.kind.schema)?;
        transaction.pragma_update(None, "user_version", self.kind.format)?;
        transaction.pragma_update(None, "application_id", self.kind.application_id)?;
        transaction.commit()
    }
}
