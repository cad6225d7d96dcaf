//! Opening the store's SQLite file, and making sure that it is one.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use url::Url;

use super::StoreError;
use super::write_lock::WriteLock;
use crate::source::SourceError;
use crate::state::{beside, create_private_file, foreign_beside_database, orphan_of_database};

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
    /// The state that the file has to keep, for a connection that takes no locks.
    frozen: Option<FileState>,
}

/// What changes when a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    len: u64,
    modified: Option<std::time::SystemTime>,
    has_log: bool,
}

impl FileState {
    fn of(path: &Path, metadata: &Metadata) -> Self {
        let log = fs::metadata(beside(path, "-wal"));
        let has_log = log.is_ok_and(|log| log.len() > 0);
        Self { len: metadata.len(), modified: metadata.modified().ok(), has_log }
    }
}

impl Reader {
    /// Returns whether the connection reads the file that is at the path now.
    fn is_current(&self, path: &Path, metadata: &Metadata) -> bool {
        self.file == FileIdentity::of(metadata)
            && self.frozen.is_none_or(|frozen| frozen == FileState::of(path, metadata))
    }
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

    /// Opens an existing store, or creates one where there is no file. Holds the write lock.
    pub(super) fn open_or_create(path: &Path) -> Result<(Self, WriteLock), StoreError> {
        let lock = || WriteLock::try_take(path)?.ok_or_else(|| StoreError::Locked(path.to_owned()));
        match Self::open(path) {
            // No lock file is made beside a file that is not a store.
            Err(StoreError::Missing(_)) => {}
            database => return Ok((database?, lock()?)),
        }
        let lock = lock()?;
        // Another process may have created it before this one had the lock.
        match Self::open(path) {
            Err(StoreError::Missing(_)) => {}
            database => return Ok((database?, lock)),
        }
        Ok((Self::create(path)?, lock))
    }

    fn create(path: &Path) -> Result<Self, StoreError> {
        if let Some(foreign) = orphan_of_database(path).or_else(|| foreign_beside_database(path)) {
            return Err(foreign.into());
        }
        // SQLite fills the empty file, and gives the files beside it the same permissions.
        match create_private_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(StoreError::unwritable(path, &error));
            }
            _ => {}
        }
        let database = Self { path: path.to_owned(), pool: Mutex::default() };
        // Without SQLITE_OPEN_CREATE: SQLite would create the target of a symbolic link with a mode that all users can read.
        let mut connection = database.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
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
        let metadata = self.metadata()?;
        let idle = {
            let mut pool = self.pool();
            // All of them go before one is opened on the file that took the place of theirs.
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

    /// Returns which file a path leads to, if it leads to one.
    pub(super) fn identity_at(path: &Path) -> Option<FileIdentity> {
        fs::metadata(path).ok().map(|metadata| FileIdentity::of(&metadata))
    }

    /// Which file is at the path now.
    pub(super) fn file(&self) -> Result<FileIdentity, StoreError> {
        Ok(FileIdentity::of(&self.metadata()?))
    }

    fn metadata(&self) -> Result<Metadata, StoreError> {
        let metadata = fs::metadata(&self.path).map_err(|error| unreadable(&self.path, &error))?;
        if metadata.len() == 0 { Err(StoreError::Missing(self.path.clone())) } else { Ok(metadata) }
    }

    /// A new connection, to a file that is proved to be a store.
    fn reader(&self) -> Result<Reader, StoreError> {
        // The file is looked at first: if it is replaced meanwhile, the connection is not used a second time.
        let metadata = self.metadata()?;
        let file = FileIdentity::of(&metadata);
        // Not again for one that is open: a file that is closed gives up the locks that SQLite has on it.
        if self.pool().proved != Some(file) {
            check_file(&self.path)?;
        }
        let open = |connection: Connection| check_format(&self.path, &connection).map(|()| connection);
        let opened = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(open);
        let (connection, frozen) = match opened {
            Ok(connection) => (connection, None),
            // SQLite reads a write-ahead log with a file beside it, which cannot be made here.
            Err(
                refused @ (StoreError::Unwritable { .. }
                | StoreError::Unreadable { .. }
                | StoreError::DiskFull { .. }),
            ) => {
                let state = FileState::of(&self.path, &metadata);
                if state.has_log {
                    return Err(unread_log(&self.path, refused));
                }
                (connect_frozen(&self.path).map_err(|_again| refused).and_then(open)?, Some(state))
            }
            Err(error) => return Err(error),
        };
        self.pool().proved = Some(file);
        Ok(Reader { connection, file, frozen })
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of its own for a writer.
    pub(super) fn writer(&self) -> Result<Connection, StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        use_write_ahead_log(&connection).map_err(|error| self.error(&error))?;
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
        connect(&self.path, flags).map_err(|error| self.error(&error))
    }
}

/// Opens a connection to a file, which is not checked.
pub(super) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    // NO_MUTEX: a connection is only ever used by the thread that took it out of the pool.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // A plan is made once for a statement and not anew for the values of each read: the statistics that could
    // make another one better are never gathered.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Opens a store without a log where nothing can be written. SQLite takes no locks on it, so the caller has to watch for
/// changes of the file.
fn connect_frozen(path: &Path) -> Result<Connection, rusqlite::Error> {
    let place = fs::canonicalize(path).unwrap_or_else(|_missing| path.to_owned());
    let mut address = Url::from_file_path(&place).map_err(|()| rusqlite::Error::InvalidPath(place))?;
    address.set_query(Some("immutable=1"));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect(Path::new(address.as_str()), flags)
}

/// Returns the error of a store whose newest changes are in a log that cannot be read where nothing can be written.
fn unread_log(path: &Path, refused: StoreError) -> StoreError {
    match refused {
        StoreError::Unwritable { problem, .. } | StoreError::Unreadable { problem, .. } => {
            StoreError::UnreadLog { path: path.to_owned(), problem }
        }
        other => other,
    }
}

/// Switches a store to the write-ahead log, in which readers and the writer do not wait for each other. A backup has none, so
/// that it is one file.
pub(super) fn use_write_ahead_log(connection: &Connection) -> Result<(), rusqlite::Error> {
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

/// Tells a missing, unreadable or foreign file from a store before SQLite writes beside it.
fn check_file(path: &Path) -> Result<(), StoreError> {
    let unreadable = |error: std::io::Error| unreadable(path, &error);
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(StoreError::Unreadable { path: path.to_owned(), problem: "it is not a file".to_owned() });
    }
    match Header::read(&mut file) {
        Some(header) if header.can_be_store(metadata.len()) => {}
        // SQLite creates the file before it writes the first page: an empty one is a store that
        // was never finished.
        None if metadata.len() == 0 => return Err(StoreError::Missing(path.to_owned())),
        Some(_) | None => return Err(StoreError::Foreign(path.to_owned())),
    }
    foreign_beside_database(path).map_or(Ok(()), |foreign| Err(foreign.into()))
}

/// The header of a SQLite file, as far as it tells a store from other programs' databases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    page_size: u64,
    application_id: i64,
    /// The database was last written with a write-ahead log.
    pub(super) is_wal: bool,
}

impl Header {
    /// Reads the header; `None` when the file is not of SQLite.
    pub(super) fn read(file: &mut File) -> Option<Self> {
        let mut bytes = [0; 100];
        file.read_exact(&mut bytes).ok()?;
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

    /// Returns whether the file is a store by its id.
    pub(super) fn is_store(self) -> bool {
        self.application_id == APPLICATION_ID
    }

    /// Returns whether the file can be a store. The id of one that earlier versions created can still be in its write-ahead
    /// log; the file has one page until then. A database of another program is not opened with SQLite, because
    /// that would write what its log has into it.
    fn can_be_store(self, len: u64) -> bool {
        self.is_store() || (self.application_id == 0 && len <= self.page_size)
    }
}

pub(super) fn check_format(path: &Path, connection: &Connection) -> Result<(), StoreError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables =
        || connection.query_one("SELECT count(*) FROM sqlite_schema", (), |row| row.get::<_, i64>(0));
    let read = || Ok((pragma("application_id")?, pragma("user_version")?, tables()?));
    let (application, found, tables) = read().map_err(|error| StoreError::from_sqlite(path, &error))?;
    match (application, found) {
        (APPLICATION_ID, FORMAT) => Ok(()),
        // Another process has just made the file and not yet committed its tables.
        (0 | APPLICATION_ID, 0) if tables == 0 => Err(StoreError::Missing(path.to_owned())),
        (APPLICATION_ID, found) if found > FORMAT => {
            Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT })
        }
        (APPLICATION_ID, _) => Err(StoreError::Older(path.to_owned())),
        _ => Err(StoreError::Foreign(path.to_owned())),
    }
}

fn create(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    // First, so that it is in the file and not only in the log.
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // One transaction: another process sees no store, or a whole one.
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
