//! Opens a backup and verifies all of it.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fetchwell_state::beside;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use super::error::BackupError;
use crate::database::{Header, check_format, connect};
use crate::error::sqlite_error;

/// The number of connections, records and bytes in a store or a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// Number of connections.
    pub connections: u64,
    /// Number of records, without deleted ones.
    pub records: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// SQL for the columns of every table and the names of the indexes.
const SCHEMA: &str = "SELECT t.name || '.' || c.name || ' ' || c.type || c.\"notnull\" || c.pk
     FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c WHERE t.type = 'table'
     UNION SELECT name FROM sqlite_schema WHERE type = 'index' ORDER BY 1";

/// Backup that is open for reading. SQLite creates no file beside it.
#[derive(Debug)]
pub(super) struct OpenBackup {
    path: PathBuf,
    pub(super) connection: Connection,
}

impl OpenBackup {
    /// Opens a file that may be a backup, without trusting its contents.
    pub(super) fn open(path: &Path) -> Result<Self, BackupError> {
        let unreadable = |problem: &dyn ToString| BackupError::Unreadable {
            path: path.to_owned(),
            problem: problem.to_string(),
        };
        let foreign = |problem| BackupError::Foreign { path: path.to_owned(), problem };
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(BackupError::Missing(path.to_owned()));
            }
            metadata => metadata.map_err(|error| unreadable(&error))?,
        };
        if !metadata.is_file() {
            return Err(foreign("it is not a file"));
        }
        let mut file = File::open(path).map_err(|error| unreadable(&error))?;
        if Header::read(&mut file).is_none() {
            return Err(foreign("it is not a SQLite database"));
        }
        drop(file);
        // SQLite would ignore the contents of such a file below.
        let logs = ["-wal", "-journal"].map(|suffix| beside(path, suffix));
        let has_changes = |log: &PathBuf| fs::metadata(log).is_ok_and(|log| log.len() > 0);
        if let Some(log) = logs.into_iter().find(has_changes) {
            return Err(BackupError::Incomplete { path: path.to_owned(), log });
        }
        let open =
            || connect(&immutable(path)?, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI);
        let from_sqlite = |error| BackupError::from_store(path, sqlite_error(path, &error));
        let connection = open().map_err(from_sqlite)?;
        check_format(path, &connection).map_err(|error| BackupError::from_store(path, error))?;
        Ok(Self { path: path.to_owned(), connection })
    }

    /// Reads every page and checks that the schema is complete.
    pub(super) fn verify(&self) -> Result<Contents, BackupError> {
        let damaged = |problem| BackupError::Damaged { path: self.path.clone(), problem };
        let problem = find_damage(&self.connection).map_err(|error| damaged(error.to_string()))?;
        if let Some(problem) = problem {
            return Err(damaged(problem));
        }
        let bytes = fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        contents(&self.connection, bytes).map_err(|error| damaged(error.to_string()))
    }
}

/// Returns the number of connections, records and bytes.
fn contents(store: &Connection, bytes: u64) -> Result<Contents, rusqlite::Error> {
    let sql =
        "SELECT (SELECT count(*) FROM connections), (SELECT count(*) FROM records WHERE data IS NOT NULL)";
    let (connections, records) =
        store.query_one(sql, (), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    Ok(Contents { connections: connections.unsigned_abs(), records: records.unsigned_abs(), bytes })
}

/// Returns the first problem of a store, if there is one.
fn find_damage(store: &Connection) -> Result<Option<String>, rusqlite::Error> {
    let integrity: String = store.query_one("PRAGMA integrity_check(1)", (), |row| row.get(0))?;
    if integrity != "ok" {
        return Ok(Some(integrity));
    }
    let mut statement = store.prepare("PRAGMA foreign_key_check")?;
    if statement.exists(())? {
        return Ok(Some("a row refers to one that is missing".to_owned()));
    }
    let model = Connection::open_in_memory()?;
    model.execute_batch(include_str!("../schema.sql"))?;
    let found = schema(store)?;
    if let Some(missing) = schema(&model)?.into_iter().find(|part| !found.contains(part)) {
        return Ok(Some(format!("it has no {missing}")));
    }
    // The version is that of the newest change; every index and every change token relies on it.
    let sql = "SELECT count(*) = 1 AND max(version) >= coalesce((SELECT max(version) FROM records), 0)
         AND min(length(uuid)) = 32 FROM store";
    let is_consistent = store.query_one(sql, (), |row| row.get::<_, Option<bool>>(0))?;
    Ok((is_consistent != Some(true)).then(|| "its version does not match its records".to_owned()))
}

fn schema(store: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    store.prepare(SCHEMA)?.query_map((), |row| row.get(0))?.collect()
}

/// Returns the URI with which SQLite reads a file without locks and without files beside it.
fn immutable(path: &Path) -> Result<PathBuf, rusqlite::Error> {
    let absolute =
        std::path::absolute(path).map_err(|_empty| rusqlite::Error::InvalidPath(path.to_owned()))?;
    let path = absolute.as_os_str().as_encoded_bytes();
    let path = percent_encode(path, NON_ALPHANUMERIC).to_string().replace("%2F", "/");
    let path =
        if cfg!(windows) { format!("/{}", path.replace("%5C", "/").replace("%3A", ":")) } else { path };
    Ok(format!("file://{path}?mode=ro&immutable=1").into())
}
