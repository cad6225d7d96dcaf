//! The SQLite file that keeps positions, and the connections to it.
//!
//! It is a store of its own kind, told apart by its header. It holds what users asked for, so only its owner can read
//! it, and what is deleted is overwritten.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::StateError;
use super::state_lock::StateLock;

const FILE: &str = "cursors.db";

/// `fwcu` in the header, so that other programs' databases are told apart.
const APPLICATION_ID: i64 = 0x6677_6375;

/// The format this program reads and writes.
const FORMAT: i64 = 1;

/// How long a call waits for another process. A cursor is written in well under a millisecond, and a page without a
/// cursor is better than a call that hangs.
const BUSY: Duration = Duration::from_secs(1);

/// Idle connections kept for the next call.
const IDLE: usize = 4;

/// 256 MiB of positions in pages of 4,096 bytes, and what the file takes beside them.
const PAGES_MOST: i64 = 80_000;

/// The file of a state directory.
#[derive(Debug)]
pub struct Database {
    directory: PathBuf,
    path: PathBuf,
    /// The most pages of 4,096 bytes.
    pub(super) pages_most: i64,
    /// Holds only connections that no call is using.
    idle: Mutex<Vec<Connection>>,
}

impl Database {
    /// That of a state directory, whether it is there or not.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            path: directory.join(FILE),
            pages_most: PAGES_MOST,
            idle: Mutex::default(),
        }
    }

    /// Whether there is a file.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// Makes the directory and the file where they are not there, and proves that the file is of this program.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be made, read or written, or is another program's or another version's.
    pub fn prepare(&self) -> Result<(), StateError> {
        make_directory(&self.directory)?;
        if !self.path.exists() {
            make_file(&self.path)?;
        }
        let mut connection = self.connect()?;
        if self.is_empty(&connection)? {
            let _lock = StateLock::of(&self.directory)?;
            // Another process may have filled it meanwhile.
            if self.is_empty(&connection)? {
                create(&mut connection).map_err(|error| self.error(&error))?;
            }
        }
        self.check_format(&connection)?;
        self.give_back(connection);
        Ok(())
    }

    /// Lends a connection. When the file was deleted it is made again: what it held has expired with it.
    ///
    /// # Errors
    ///
    /// As [`Database::prepare`], and whatever the call runs into.
    pub(super) fn with<Answer>(
        &self,
        call: impl FnOnce(&mut Connection) -> Result<Answer, rusqlite::Error>,
    ) -> Result<Answer, StateError> {
        if !self.is_there() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.prepare()?;
        }
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let answer = call(&mut connection).map_err(|error| self.error(&error))?;
        self.give_back(connection);
        Ok(answer)
    }

    fn error(&self, error: &rusqlite::Error) -> StateError {
        StateError::from_sqlite(&self.path, error)
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE {
            idle.push(connection);
        }
    }

    fn connect(&self) -> Result<Connection, StateError> {
        // NO_MUTEX: a connection is only ever used by the thread that took it out of the pool.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connect = || {
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(BUSY)?;
            // In the write-ahead log every commit is whole, and survives the process; a power cut loses the last ones.
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "secure_delete", true)?;
            connection.pragma_update(None, "max_page_count", self.pages_most)?;
            Ok(connection)
        };
        connect().map_err(|error| self.error(&error))
    }

    fn is_empty(&self, connection: &Connection) -> Result<bool, StateError> {
        let none = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)";
        connection.query_one(none, (), |row| row.get(0)).map_err(|error| self.error(&error))
    }

    fn check_format(&self, connection: &Connection) -> Result<(), StateError> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let read = || Ok((pragma("application_id")?, pragma("user_version")?));
        match read().map_err(|error| self.error(&error))? {
            (APPLICATION_ID, FORMAT) => Ok(()),
            (APPLICATION_ID, found) => {
                Err(StateError::OtherFormat { path: self.path.clone(), found, known: FORMAT })
            }
            _ => Err(StateError::Foreign(self.path.clone())),
        }
    }
}

fn create(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // One transaction: a reader sees no store, or a whole one.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(include_str!("schema.sql"))?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()
}

fn make_directory(directory: &Path) -> Result<(), StateError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(directory)
        .map_err(|error| StateError::Directory { path: directory.to_owned(), problem: error.to_string() })
}

/// An empty file, which SQLite fills. It gives the files beside it the same permissions.
fn make_file(path: &Path) -> Result<(), StateError> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(StateError::unwritable(path, &error)),
        _ => Ok(()),
    }
}
