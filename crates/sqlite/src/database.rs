//! Opens the SQLite file of a store, validates it and pools the connections that read it.
//!
//! A file is opened with SQLite only after its header shows that it is a store, so databases of other programs are
//! never changed.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_source::contract::{FILES_ONLY, PostgresError, RECORDS_APPLICATION_ID, StoreError};
use fetchwell_source::{SourceError, is_database};
use fetchwell_state::{
    FileIdentity, beside, create_private_file, foreign_beside_database, orphan_of_database, read_head,
};
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OpenFlags};
use url::Url;

use super::tables::update_view;
use super::traces::{is_removal_unfinished, overwrite_removed};
use super::write_lock::{LOCK_TIMEOUT, WriteLock};
use crate::error::{sqlite_error, write_error};

/// Schema version that this release reads and writes.
const FORMAT: i64 = 2;

/// Timeout of a statement that waits for another process; after it the store counts as locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of concurrent reads and of pooled connections. A read takes well under a millisecond, so a few
/// connections serve many calls; the number exceeds the default concurrency limit of one caller.
pub(crate) const READERS: usize = 24;

/// Pages of the write-ahead log at which it is copied into the file: 32 MB.
const CHECKPOINT_PAGES: i64 = 8_000;

/// Memory of a writer's connection for pages, in SQLite's notation: a negative number of KiB.
const WRITER_CACHE: i64 = -32_000;

/// Error of a read: from the database, or from the query.
#[derive(Debug)]
pub(crate) enum ReadError {
    Sqlite(rusqlite::Error),
    Source(SourceError),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<FromSqlError> for ReadError {
    fn from(error: FromSqlError) -> Self {
        Self::Sqlite(error.into())
    }
}

impl From<SourceError> for ReadError {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

/// SQLite file of a store and the connection pool for its reads.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    pool: Mutex<Pool>,
}

#[derive(Debug, Default)]
struct Pool {
    /// Idle connections, at most [`READERS`].
    idle: Vec<Reader>,
    /// File that was last validated as a store.
    proved: Option<FileIdentity>,
}

/// Pooled connection for reads and the file that it has opened.
#[derive(Debug)]
struct Reader {
    connection: Connection,
    file: FileIdentity,
    /// Expected state of the file, for a connection that takes no locks.
    frozen: Option<FileState>,
}

/// File properties that change with every write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    len: u64,
    modified: Option<std::time::SystemTime>,
    has_log: bool,
}

impl FileState {
    fn new(path: &Path, metadata: &Metadata) -> Self {
        let log = fs::metadata(beside(path, "-wal"));
        let has_log = log.is_ok_and(|log| log.len() > 0);
        Self { len: metadata.len(), modified: metadata.modified().ok(), has_log }
    }
}

impl Reader {
    /// Returns true if the connection still reads the file that is now at the path.
    fn is_current(&self, path: &Path, metadata: &Metadata) -> bool {
        self.file == FileIdentity::from_metadata(metadata)
            && self.frozen.is_none_or(|frozen| frozen == FileState::new(path, metadata))
    }
}

impl Database {
    /// Opens an existing store.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        if is_database(path) {
            return Err(PostgresError::not_supported(FILES_ONLY).into());
        }
        let database = Self { path: path.to_owned(), pool: Mutex::default() };
        database.give_back(database.reader()?);
        Ok(database)
    }

    /// Opens an existing store, or creates one if there is no file. Acquires the write lock, which a synchronization
    /// holds for one batch.
    pub(crate) fn open_or_create(path: &Path) -> Result<(Self, WriteLock), StoreError> {
        let lock = || WriteLock::take_within(path, LOCK_TIMEOUT);
        match Self::open(path) {
            // No lock file is created beside a file that is not a store. A store without a format may be one that another
            // process is creating.
            Err(StoreError::Missing(_) | StoreError::Older(_)) => {}
            database => {
                let (database, lock) = (database?, lock()?);
                database.finish_removal(&lock)?;
                return Ok((database, lock));
            }
        }
        let lock = lock()?;
        // Another process may have created the store before this one acquired the lock.
        match Self::open(path) {
            Err(StoreError::Missing(_)) => {}
            database => return Ok((database?, lock)),
        }
        Ok((Self::create(path)?, lock))
    }

    /// Overwrites what an interrupted removal left. A reader that prevents it leaves it to the next writer.
    pub(crate) fn finish_removal(&self, _lock: &WriteLock) -> Result<(), StoreError> {
        if self.read(is_removal_unfinished)?
            && let Err(error) = overwrite_removed(&self.writer()?)
        {
            let error = self.error(&error);
            tracing::warn!(%error, "the store has text of removed records in free pages; run `fetchwell remove` again");
        }
        Ok(())
    }

    fn create(path: &Path) -> Result<Self, StoreError> {
        if let Some(foreign) = orphan_of_database(path).or_else(|| foreign_beside_database(path)) {
            return Err(foreign.into());
        }
        // SQLite fills the empty file and gives its log files the same permissions.
        match create_private_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(write_error(path, &error));
            }
            _ => {}
        }
        let database = Self { path: path.to_owned(), pool: Mutex::default() };
        // Without SQLITE_OPEN_CREATE: SQLite would create the target of a symbolic link with a mode that all users can read.
        let mut connection = database.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        create(&mut connection).map_err(|error| sqlite_error(path, &error))?;
        Ok(database)
    }

    /// Checks that the file still exists and can be read.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        // A new connection, because pooled ones may have cached pages of a file that was overwritten since.
        self.reader()?;
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a read on an idle or a new connection.
    pub(crate) fn read<Answer>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, rusqlite::Error>,
    ) -> Result<Answer, StoreError> {
        self.lend(read, |_| true)?.map_err(|error| self.error(&error))
    }

    /// Runs a read that can also fail for reasons other than the database.
    pub(crate) fn ask<Answer>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, ReadError>,
    ) -> Result<Answer, SourceError> {
        let is_sqlite = |error: &ReadError| matches!(error, ReadError::Sqlite(_));
        self.lend(read, is_sqlite)?.map_err(|error| match error {
            ReadError::Sqlite(error) => self.error(&error).into(),
            ReadError::Source(error) => error,
        })
    }

    /// Runs `read` on an idle or a new connection and returns the connection to the pool. The connection is closed
    /// instead if its database failed, since the file may have been overwritten.
    fn lend<Answer, Failed>(
        &self,
        read: impl FnOnce(&Connection) -> Result<Answer, Failed>,
        is_of_database: impl FnOnce(&Failed) -> bool,
    ) -> Result<Result<Answer, Failed>, StoreError> {
        let metadata = self.metadata()?;
        let idle = {
            let mut pool = self.pool.lock();
            // Stale connections are dropped before a new one opens the file that replaced theirs.
            pool.idle.retain(|reader| reader.is_current(&self.path, &metadata));
            pool.idle.pop()
        };
        let reader = idle.map_or_else(|| self.reader(), Ok)?;
        let answer = read(&reader.connection);
        if !answer.as_ref().is_err_and(is_of_database) {
            self.give_back(reader);
        }
        Ok(answer)
    }

    /// Returns the identity of the file at a path, or `None` if there is no file.
    pub(crate) fn identity_at(path: &Path) -> Option<FileIdentity> {
        fs::metadata(path).ok().map(|metadata| FileIdentity::from_metadata(&metadata))
    }

    /// Returns the identity of the file that is now at the store's path.
    pub(crate) fn file(&self) -> Result<FileIdentity, StoreError> {
        Ok(FileIdentity::from_metadata(&self.metadata()?))
    }

    fn metadata(&self) -> Result<Metadata, StoreError> {
        let metadata = fs::metadata(&self.path).map_err(|error| unreadable(&self.path, &error))?;
        if metadata.len() == 0 { Err(StoreError::Missing(self.path.clone())) } else { Ok(metadata) }
    }

    /// Opens a connection after validating that the file is a store.
    fn reader(&self) -> Result<Reader, StoreError> {
        // The metadata is read first: if the file is replaced in between, the connection is not reused.
        let metadata = self.metadata()?;
        let file = FileIdentity::from_metadata(&metadata);
        // Skipped for a file that is already open: closing any handle of a file releases the locks that SQLite holds
        // on it.
        if self.pool.lock().proved != Some(file) {
            check_file(&self.path)?;
        }
        let open = |connection: Connection| check_format(&self.path, &connection).map(|()| connection);
        let opened = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(open);
        let (connection, frozen) = match opened {
            Ok(connection) => (connection, None),
            // SQLite reads a write-ahead log through a shared-memory file beside it, which cannot be created here.
            Err(
                refused @ (StoreError::Unwritable { .. }
                | StoreError::Unreadable { .. }
                | StoreError::DiskFull { .. }),
            ) => {
                let state = FileState::new(&self.path, &metadata);
                if state.has_log {
                    return Err(unread_log(&self.path, refused));
                }
                (connect_frozen(&self.path).map_err(|_again| refused).and_then(open)?, Some(state))
            }
            Err(error) => return Err(error),
        };
        self.pool.lock().proved = Some(file);
        Ok(Reader { connection, file, frozen })
    }

    /// Opens a separate connection for the writer.
    pub(crate) fn writer(&self) -> Result<Connection, StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        use_write_ahead_log(&connection).map_err(|error| self.error(&error))?;
        // The write-ahead log makes every commit atomic. Only the last commits before a power failure can be lost,
        // and repeating the import restores them.
        let set = |name, value: &dyn rusqlite::ToSql| {
            connection.pragma_update(None, name, value).map_err(|error| self.error(&error))
        };
        set("synchronous", &"NORMAL")?;
        // A checkpoint waits for the disk three times. By default there is one after each two batches of an import.
        set("wal_autocheckpoint", &CHECKPOINT_PAGES)?;
        set("cache_size", &WRITER_CACHE)?;
        // People read the view, and no write needs it. If it cannot be replaced now, the next writer does it.
        if let Err(error) = update_view(&connection) {
            tracing::debug!(%error, "the view of an earlier release stays");
        }
        Ok(connection)
    }

    pub(crate) fn error(&self, error: &rusqlite::Error) -> StoreError {
        sqlite_error(&self.path, error)
    }

    fn give_back(&self, reader: Reader) {
        let mut pool = self.pool.lock();
        if pool.idle.len() < READERS {
            pool.idle.push(reader);
        }
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, StoreError> {
        connect(&self.path, flags).map_err(|error| self.error(&error))
    }
}

/// Opens a connection to a file without validating it.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    // NO_MUTEX: a connection is used only by the thread that took it from the pool.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Statements are planned once, not for the values of each read: the statistics that would improve a second plan
    // are never collected.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Opens a store that has no log where nothing can be written. SQLite takes no locks on it, so the caller has to
/// detect changes of the file.
fn connect_frozen(path: &Path) -> Result<Connection, rusqlite::Error> {
    let place = fs::canonicalize(path).unwrap_or_else(|_missing| path.to_owned());
    let mut address = Url::from_file_path(&place).map_err(|()| rusqlite::Error::InvalidPath(place))?;
    address.set_query(Some("immutable=1"));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect(Path::new(address.as_str()), flags)
}

/// Returns the error for a store with its newest changes in a write-ahead log that cannot be read on a read-only
/// file system.
fn unread_log(path: &Path, refused: StoreError) -> StoreError {
    match refused {
        StoreError::Unwritable { problem, .. } | StoreError::Unreadable { problem, .. } => {
            StoreError::UnreadLog { path: path.to_owned(), problem }
        }
        other => other,
    }
}

/// Switches a store to the write-ahead log, in which readers and the writer do not block each other. Backups have no
/// log, so that they are one file.
pub(crate) fn use_write_ahead_log(connection: &Connection) -> Result<(), rusqlite::Error> {
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        connection.pragma_update(None, "journal_mode", "WAL")?;
    }
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> StoreError {
    if error.kind() == std::io::ErrorKind::NotFound {
        StoreError::Missing(path.to_owned())
    } else {
        StoreError::Unreadable { path: path.to_owned(), problem: error.to_string() }
    }
}

/// Returns the store's unique id and the version of its newest change.
pub(crate) fn identity(sqlite: &Connection) -> Result<(String, i64), rusqlite::Error> {
    let mut statement = sqlite.prepare_cached("SELECT uuid, version FROM store WHERE id = 1")?;
    statement.query_row((), |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Distinguishes a store from a missing, unreadable or foreign file, before SQLite writes anything beside it.
fn check_file(path: &Path) -> Result<(), StoreError> {
    let unreadable = |error: std::io::Error| unreadable(path, &error);
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(StoreError::Unreadable { path: path.to_owned(), problem: "it is not a file".to_owned() });
    }
    match Header::parse(&read_head(path, Header::BYTES).map_err(unreadable)?) {
        Some(header) if header.can_be_store(metadata.len()) => {}
        // SQLite creates the file before it writes the first page: an empty file is a store that was never completed.
        None if metadata.len() == 0 => return Err(StoreError::Missing(path.to_owned())),
        Some(_) | None => return Err(StoreError::Foreign(path.to_owned())),
    }
    foreign_beside_database(path).map_or(Ok(()), |foreign| Err(foreign.into()))
}

/// Parts of a SQLite file header that tell stores from other programs' databases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    page_size: u64,
    application_id: i64,
    /// True if the database was last written with a write-ahead log.
    pub(crate) is_wal: bool,
}

impl Header {
    /// Length of the header in bytes.
    const BYTES: usize = 100;

    /// Reads the header of a file. Returns `None` if the file is not a SQLite database.
    pub(crate) fn read(file: &mut File) -> Option<Self> {
        let mut bytes = [0; Self::BYTES];
        file.read_exact(&mut bytes).ok()?;
        Self::parse(&bytes)
    }

    /// Parses the first bytes of a file. Returns `None` if it is not a SQLite database.
    fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.get(..Self::BYTES)?;
        let [high, low] = bytes.get(16..18)?.try_into().ok()?;
        bytes.starts_with(b"SQLite format 3\0").then_some(())?;
        Some(Self {
            page_size: match u16::from_be_bytes([high, low]) {
                1 => 65_536,
                bytes => bytes.into(),
            },
            application_id: u32::from_be_bytes(bytes.get(68..72)?.try_into().ok()?).into(),
            is_wal: bytes.get(19) == Some(&2),
        })
    }

    /// Returns true if the application id is that of a store.
    pub(crate) fn is_store(self) -> bool {
        self.application_id == RECORDS_APPLICATION_ID
    }

    /// Returns true if the file can be a store. In stores created by early releases the id can still be in the
    /// write-ahead log, and the file has one page until then. SQLite must not open a database of another program,
    /// because it would write the contents of the log into it.
    fn can_be_store(self, len: u64) -> bool {
        self.is_store() || (self.application_id == 0 && len <= self.page_size)
    }
}

pub(crate) fn check_format(path: &Path, connection: &Connection) -> Result<(), StoreError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables =
        || connection.query_one("SELECT count(*) FROM sqlite_schema", (), |row| row.get::<_, i64>(0));
    let read = || Ok((pragma("application_id")?, pragma("user_version")?, tables()?));
    let (application, found, tables) = read().map_err(|error| sqlite_error(path, &error))?;
    match (application, found) {
        (RECORDS_APPLICATION_ID, FORMAT) => Ok(()),
        // Another process has just created the file and has not committed its tables yet.
        (0 | RECORDS_APPLICATION_ID, 0) if tables == 0 => Err(StoreError::Missing(path.to_owned())),
        (RECORDS_APPLICATION_ID, found) if found > FORMAT => {
            Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT })
        }
        (RECORDS_APPLICATION_ID, _) => Err(StoreError::Older(path.to_owned())),
        _ => Err(StoreError::Foreign(path.to_owned())),
    }
}

fn create(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    // Set first, so that the id is in the file and not only in the log.
    connection.pragma_update(None, "application_id", RECORDS_APPLICATION_ID)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // One transaction: another process sees either no store or a complete one.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let format: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if format != FORMAT {
        transaction.execute_batch(include_str!("schema.sql"))?;
        transaction
            .execute("INSERT INTO store (id, uuid, version) VALUES (1, hex(randomblob(16)), 0)", ())?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()
}
