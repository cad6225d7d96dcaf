//! The SQLite file that keeps calls, and the connections to it.
//!
//! Several processes of a state directory write to one file. It is told apart from others by its header.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::TelemetryError;

const FILE: &str = "telemetry.db";

/// `fwte` in the header, so that other programs' databases are told apart.
const APPLICATION_ID: i64 = 0x6677_7465;

/// The format this program reads and writes.
const FORMAT: i64 = 1;

/// How long a write waits for another process. Calls wait for no write.
const BUSY: Duration = Duration::from_secs(1);

/// 128 MiB in pages of 4,096 bytes: three times what the most rows take.
const PAGES_MOST: i64 = 32_768;

/// Rows that are kept; the oldest go.
const ROWS_MOST: i64 = 100_000;

/// The file of a state directory.
#[derive(Debug)]
pub(super) struct Database {
    directory: PathBuf,
    path: PathBuf,
    /// The most pages of 4,096 bytes.
    pub(super) pages_most: i64,
    /// The most rows.
    pub(super) rows_most: i64,
}

impl Database {
    pub(super) fn in_directory(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            path: directory.join(FILE),
            pages_most: PAGES_MOST,
            rows_most: ROWS_MOST,
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.path.exists()
    }

    pub(super) fn error(&self, error: &rusqlite::Error) -> TelemetryError {
        TelemetryError::from_sqlite(&self.path, error)
    }

    /// A connection that writes; the directory and the file are made where they are not there.
    pub(super) fn writer(&self) -> Result<Connection, TelemetryError> {
        make_directory(&self.directory)?;
        make_file(&self.path)?;
        let mut connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        if self.is_empty(&connection)? {
            let lock = self.lock()?;
            // Another process may have filled it meanwhile.
            if self.is_empty(&connection)? {
                create(&mut connection).map_err(|error| self.error(&error))?;
            }
            drop(lock);
        }
        self.check_format(&connection)?;
        Ok(connection)
    }

    /// A connection that reads, beside whoever writes.
    pub(super) fn reader(&self) -> Result<Connection, TelemetryError> {
        if !self.is_there() {
            return Err(TelemetryError::Missing(self.path.clone()));
        }
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        self.check_format(&connection)?;
        Ok(connection)
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, TelemetryError> {
        // NO_MUTEX: a connection is only ever used by one thread.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connect = || {
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(BUSY)?;
            // In the write-ahead log every commit is whole, and survives the process; a power cut loses the last ones.
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "max_page_count", self.pages_most)?;
            Ok(connection)
        };
        connect().map_err(|error| self.error(&error))
    }

    /// Lets one process at a time make the file. The system releases it when the process ends, however it ends.
    fn lock(&self) -> Result<File, TelemetryError> {
        let path = self.directory.join("lock");
        let unwritable = |error| TelemetryError::unwritable(&path, &error);
        let file =
            File::options().create(true).write(true).truncate(false).open(&path).map_err(unwritable)?;
        file.lock().map_err(unwritable)?;
        Ok(file)
    }

    fn is_empty(&self, connection: &Connection) -> Result<bool, TelemetryError> {
        let none = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)";
        connection.query_one(none, (), |row| row.get(0)).map_err(|error| self.error(&error))
    }

    fn check_format(&self, connection: &Connection) -> Result<(), TelemetryError> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let read = || Ok((pragma("application_id")?, pragma("user_version")?));
        match read().map_err(|error| self.error(&error))? {
            (APPLICATION_ID, FORMAT) => Ok(()),
            (APPLICATION_ID, found) => {
                Err(TelemetryError::OtherFormat { path: self.path.clone(), found, known: FORMAT })
            }
            _ => Err(TelemetryError::Foreign(self.path.clone())),
        }
    }
}

fn create(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // One transaction: a reader sees no file of calls, or a whole one.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(include_str!("schema.sql"))?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()
}

fn make_directory(directory: &Path) -> Result<(), TelemetryError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|error| TelemetryError::unwritable(directory, &error))
}

/// An empty file, which SQLite fills. It gives the files beside it the same permissions.
fn make_file(path: &Path) -> Result<(), TelemetryError> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(TelemetryError::unwritable(path, &error))
        }
        _ => Ok(()),
    }
}
