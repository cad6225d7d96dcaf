//! Opening the store's SQLite file, and making sure that it is one.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use crate::source::SourceError;

/// `fwel` in the header of every store, so that other programs' databases are told apart.
const APPLICATION_ID: i64 = 0x6677_656C;

/// The format this program reads and writes.
const FORMAT: i64 = 2;

/// How long a statement waits for another process before the store counts as locked.
const BUSY: Duration = Duration::from_secs(5);

/// Idle connections kept for the next read. A read takes well under a millisecond, so a few serve many.
const IDLE_READERS: usize = 4;

/// Why a read has no answer: the database, or the question.
#[derive(Debug)]
pub(super) enum ReadError {
    Sqlite(rusqlite::Error),
    Source(SourceError),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<SourceError> for ReadError {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

/// The SQLite file of a store, and the connections that read it.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    /// Holds only connections that no read is using.
    idle: Mutex<Vec<Connection>>,
}

impl Database {
    /// An existing store.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let database = Self { path: path.to_owned(), idle: Mutex::default() };
        check_file(path)?;
        let connection = database.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        check_format(path, &connection)?;
        database.give_back(connection);
        Ok(database)
    }

    /// An existing store, or a new one where there is no file.
    pub(super) fn open_or_create(path: &Path) -> Result<Self, StoreError> {
        match Self::open(path) {
            Err(StoreError::Missing(_)) => {}
            other => return other,
        }
        let database = Self { path: path.to_owned(), idle: Mutex::default() };
        let mut connection =
            database.connect(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        create(&mut connection).map_err(|error| StoreError::from_sqlite(path, &error))?;
        database.give_back(connection);
        Ok(database)
    }

    /// Whether the file is still there and can be read.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        // A connection goes on reading a file that was deleted.
        check_file(&self.path)?;
        self.read(|connection| connection.query_one("SELECT version FROM store", (), |_row| Ok(())))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a read on an idle connection, or on a new one.
    pub(super) fn read<Answer>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, rusqlite::Error>,
    ) -> Result<Answer, StoreError> {
        self.lend(read)?.map_err(|error| self.error(&error))
    }

    /// The same for a read that can fail for other reasons than the database.
    pub(super) fn ask<Answer>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, ReadError>,
    ) -> Result<Answer, SourceError> {
        self.lend(read)?.map_err(|error| match error {
            ReadError::Sqlite(error) => self.error(&error).into(),
            ReadError::Source(error) => error,
        })
    }

    /// Lends an idle connection, or a new one, and takes it back.
    fn lend<Answer>(&self, read: impl FnOnce(&Connection) -> Answer) -> Result<Answer, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?,
        };
        let answer = read(&connection);
        self.give_back(connection);
        Ok(answer)
    }

    /// A connection of its own for a writer.
    pub(super) fn writer(&self) -> Result<Connection, StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // The write-ahead log makes every commit atomic; only the last commits before a power cut can
        // be missing, and an import that is run again brings them back.
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(|error| self.error(&error))?;
        Ok(connection)
    }

    pub(super) fn error(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, error)
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_READERS {
            idle.push(connection);
        }
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, StoreError> {
        // NO_MUTEX: a connection is only ever used by the thread that took it out of the pool.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connect = || {
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            Ok(connection)
        };
        connect().map_err(|error| self.error(&error))
    }
}

/// Tells a missing, unreadable or foreign file from a store before SQLite writes beside it.
fn check_file(path: &Path) -> Result<(), StoreError> {
    let unreadable = |error: std::io::Error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            StoreError::Missing(path.to_owned())
        } else {
            StoreError::Unreadable { path: path.to_owned(), problem: error.to_string() }
        }
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(StoreError::Unreadable { path: path.to_owned(), problem: "it is not a file".to_owned() });
    }
    let mut magic = [0; 16];
    match file.read_exact(&mut magic) {
        Ok(()) if magic == *b"SQLite format 3\0" => Ok(()),
        Ok(()) => Err(StoreError::Foreign(path.to_owned())),
        // SQLite creates the file before it writes the first page: an empty one is a store that
        // was never finished.
        Err(_too_short) if metadata.len() == 0 => Err(StoreError::Missing(path.to_owned())),
        Err(_too_short) => Err(StoreError::Foreign(path.to_owned())),
    }
}

fn check_format(path: &Path, connection: &Connection) -> Result<(), StoreError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables =
        || connection.query_one("SELECT count(*) FROM sqlite_schema", (), |row| row.get::<_, i64>(0));
    let read = || Ok((pragma("application_id")?, pragma("user_version")?, tables()?));
    let (application, found, tables) = read().map_err(|error| StoreError::from_sqlite(path, &error))?;
    match (application, found) {
        (APPLICATION_ID, FORMAT) => Ok(()),
        // Another process has just made the file and not yet committed its tables.
        (0, 0) if tables == 0 => Err(StoreError::Missing(path.to_owned())),
        (APPLICATION_ID, found) if found > FORMAT => {
            Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT })
        }
        (APPLICATION_ID, _) => Err(StoreError::Older(path.to_owned())),
        _ => Err(StoreError::Foreign(path.to_owned())),
    }
}

fn create(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // One transaction: another process sees no store, or a whole one.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let made: i64 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if made != APPLICATION_ID {
        transaction.execute_batch(include_str!("schema.sql"))?;
        transaction
            .execute("INSERT INTO store (id, uuid, version) VALUES (1, hex(randomblob(16)), 0)", ())?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    transaction.commit()
}
