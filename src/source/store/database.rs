//! Opening the store's SQLite file, and making sure that it is one.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use crate::source::SourceError;
use crate::state::create_private_file;

/// `fwel` in the header of every store, so that other programs' databases are told apart.
const APPLICATION_ID: i64 = 0x6677_656C;

/// The format this program reads and writes.
const FORMAT: i64 = 2;

/// How long a statement waits for another process before the store counts as locked.
const BUSY: Duration = Duration::from_secs(5);

/// Reads at a time, and connections that are kept for them. A read takes well under a millisecond, so a few serve many; they
/// are more than the calls that one caller makes at a time when nothing else is configured.
pub(super) const READERS: usize = 24;

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
    pool: Mutex<Pool>,
}

#[derive(Debug, Default)]
struct Pool {
    /// Connections that no read is using.
    idle: Vec<Reader>,
    /// The file that was last proved to be a store.
    proved: Option<FileIdentity>,
}

/// A connection that reads, and the file it was opened on.
#[derive(Debug)]
struct Reader {
    connection: Connection,
    file: FileIdentity,
}

/// What tells a file from another that took its place: a connection goes on with the file it has opened, whatever is at
/// the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    #[cfg(not(unix))]
    created: Option<std::time::SystemTime>,
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Self { device_and_inode: (metadata.dev(), metadata.ino()) }
        }
        #[cfg(not(unix))]
        Self { created: metadata.created().ok() }
    }
}

impl Database {
    /// An existing store.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let database = Self { path: path.to_owned(), pool: Mutex::default() };
        database.give_back(database.reader()?);
        Ok(database)
    }

    /// An existing store, or a new one where there is no file.
    pub(super) fn open_or_create(path: &Path) -> Result<Self, StoreError> {
        match Self::open(path) {
            Err(StoreError::Missing(_)) => {}
            other => return other,
        }
        // SQLite fills the empty file, and gives the files beside it the same permissions.
        match create_private_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                let problem = error.to_string();
                return Err(StoreError::Unwritable { path: path.to_owned(), problem });
            }
            _ => {}
        }
        let database = Self { path: path.to_owned(), pool: Mutex::default() };
        let mut connection =
            database.connect(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        create(&mut connection).map_err(|error| StoreError::from_sqlite(path, &error))?;
        Ok(database)
    }

    /// Whether the file is still there and can be read.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        // One of the pool remembers pages of a file that was overwritten since.
        self.reader()?;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a read on an idle connection, or on a new one.
    pub(super) fn read<Answer>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, rusqlite::Error>,
    ) -> Result<Answer, StoreError> {
        self.lend(read, |_| true)?.map_err(|error| self.error(&error))
    }

    /// The same for a read that can fail for other reasons than the database.
    pub(super) fn ask<Answer>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, ReadError>,
    ) -> Result<Answer, SourceError> {
        let is_sqlite = |error: &ReadError| matches!(error, ReadError::Sqlite(_));
        self.lend(read, is_sqlite)?.map_err(|error| match error {
            ReadError::Sqlite(error) => self.error(&error).into(),
            ReadError::Source(error) => error,
        })
    }

    /// Lends an idle connection, or a new one, and takes it back; not one whose database failed, which may be about a
    /// file that was overwritten.
    fn lend<Answer, Failed>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, Failed>,
        is_of_database: impl FnOnce(&Failed) -> bool,
    ) -> Result<Result<Answer, Failed>, StoreError> {
        let file = self.file()?;
        let idle = {
            let mut pool = self.pool();
            // All of them go before one is opened on the file that took the place of theirs.
            pool.idle.retain(|reader| reader.file == file);
            pool.idle.pop()
        };
        let reader = idle.map_or_else(|| self.reader(), Ok)?;
        let answer = read(&reader.connection);
        if !answer.as_ref().is_err_and(is_of_database) {
            self.give_back(reader);
        }
        Ok(answer)
    }

    /// Which file is at the path now.
    pub(super) fn file(&self) -> Result<FileIdentity, StoreError> {
        let metadata = fs::metadata(&self.path).map_err(|error| unreadable(&self.path, &error))?;
        if metadata.len() == 0 {
            Err(StoreError::Missing(self.path.clone()))
        } else {
            Ok(FileIdentity::of(&metadata))
        }
    }

    /// A new connection, to a file that is proved to be a store.
    fn reader(&self) -> Result<Reader, StoreError> {
        // The file is looked at first: if it is replaced meanwhile, the connection is not used a second time.
        let file = self.file()?;
        // Not again for one that is open: a file that is closed gives up the locks that SQLite has on it.
        if self.pool().proved != Some(file) {
            check_file(&self.path)?;
        }
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        check_format(&self.path, &connection)?;
        self.pool().proved = Some(file);
        Ok(Reader { connection, file })
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn give_back(&self, reader: Reader) {
        let mut pool = self.pool();
        if pool.idle.len() < READERS {
            pool.idle.push(reader);
        }
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, StoreError> {
        // NO_MUTEX: a connection is only ever used by the thread that took it out of the pool.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connect = || {
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            // A plan is made once for a statement and not anew for the values of each read: the statistics that could
            // make another one better are never gathered.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            Ok(connection)
        };
        connect().map_err(|error| self.error(&error))
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> StoreError {
    if error.kind() == std::io::ErrorKind::NotFound {
        StoreError::Missing(path.to_owned())
    } else {
        StoreError::Unreadable { path: path.to_owned(), problem: error.to_string() }
    }
}

/// Tells a missing, unreadable or foreign file from a store before SQLite writes beside it.
fn check_file(path: &Path) -> Result<(), StoreError> {
    let unreadable = |error: std::io::Error| unreadable(path, &error);
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
