//! The file of the vectors: `NAME-vectors` beside the store.

use std::fs;
use std::path::{Path, PathBuf};

use fetchwell_source::contract::{VECTORS_APPLICATION_ID, VectorError};
use fetchwell_state::{
    beside, create_private_file, foreign_beside_database, not_a_file, orphan_of_database, read_head,
};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior};

use super::error::{io_error, sqlite_error};
use crate::database::{connect, use_write_ahead_log};

/// Schema version that this release reads and writes.
const FORMAT: i64 = 1;

/// Size of a page in bytes. A chunk of 1,024 dimensions takes 2.1 KB, and 15 of them fill a page.
const PAGE_BYTES: i64 = 32_768;

/// Returns the path of the vectors of a store.
pub(super) fn vectors_path(store: &Path) -> PathBuf {
    let place = fs::canonicalize(store).unwrap_or_else(|_missing| store.to_owned());
    beside(&place, "-vectors")
}

/// Opens the vectors of a store, or returns `None` if there are none.
pub(super) fn open(path: &Path) -> Result<Option<Connection>, VectorError> {
    let foreign = |problem| VectorError::Foreign { path: path.to_owned(), problem };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(path, &error)),
        Ok(metadata) => {
            if let Some(problem) = not_a_file(&metadata) {
                return Err(foreign(problem));
            }
            // A process that was killed while it created the file leaves an empty one.
            if metadata.len() == 0 {
                return Ok(None);
            }
        }
    }
    if !is_ours(path).map_err(|error| io_error(path, &error))? {
        return Err(foreign("it is not a file of vectors"));
    }
    if let Some(found) = foreign_beside_database(path) {
        return Err(VectorError::Foreign { path: found.path, problem: found.problem });
    }
    let open = || {
        let sqlite = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let format: i64 = sqlite.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok((sqlite, format))
    };
    match open().map_err(|error| sqlite_error(path, &error))? {
        (_, format) if format > FORMAT => Err(VectorError::Newer(path.to_owned())),
        (_, 0) => Ok(None),
        (sqlite, _) => Ok(Some(sqlite)),
    }
}

/// Opens the vectors of a store for writing, and creates them if there are none.
pub(super) fn open_or_create(path: &Path) -> Result<Connection, VectorError> {
    let sqlite = match open(path)? {
        Some(sqlite) => sqlite,
        None => create(path)?,
    };
    let prepared =
        use_write_ahead_log(&sqlite).and_then(|()| sqlite.pragma_update(None, "synchronous", "NORMAL"));
    prepared.map_err(|error| sqlite_error(path, &error))?;
    Ok(sqlite)
}

fn create(path: &Path) -> Result<Connection, VectorError> {
    if let Some(found) = orphan_of_database(path) {
        return Err(VectorError::Foreign { path: found.path, problem: found.problem });
    }
    match create_private_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(io_error(path, &error));
        }
        _ => {}
    }
    let create = || {
        let mut sqlite = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        sqlite.pragma_update(None, "page_size", PAGE_BYTES)?;
        sqlite.pragma_update(None, "application_id", VECTORS_APPLICATION_ID)?;
        sqlite.pragma_update(None, "journal_mode", "WAL")?;
        let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(include_str!("schema.sql"))?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.commit()?;
        Ok(sqlite)
    };
    create().map_err(|error| sqlite_error(path, &error))
}

/// Reads the application id from the header of a file.
fn is_ours(path: &Path) -> std::io::Result<bool> {
    let header = read_head(path, 100)?;
    let id = header.get(68..72).and_then(|id| id.try_into().ok()).map(u32::from_be_bytes);
    Ok(header.starts_with(b"SQLite format 3\0") && id.map(i64::from) == Some(VECTORS_APPLICATION_ID))
}

/// A generation of vectors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Generation {
    pub(super) id: i64,
    pub(super) model: String,
    pub(super) dimensions: usize,
    pub(super) store: String,
    pub(super) version: i64,
    pub(super) revision: i64,
    pub(super) is_current: bool,
    pub(super) omitted: i64,
    pub(super) probe: Vec<u8>,
}

const GENERATION_COLUMNS: &str =
    "SELECT id, model, dimensions, store, version, revision, is_current, omitted, probe FROM generations";

impl Generation {
    fn from_row(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            id: row.get(0)?,
            model: row.get(1)?,
            dimensions: usize::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
            store: row.get(3)?,
            version: row.get(4)?,
            revision: row.get(5)?,
            is_current: row.get::<_, i64>(6)? == 1,
            omitted: row.get(7)?,
            probe: row.get(8)?,
        })
    }

    /// Returns the generation that is searched.
    pub(super) fn current(sqlite: &Connection) -> Result<Option<Self>, rusqlite::Error> {
        let sql = format!("{GENERATION_COLUMNS} WHERE is_current = 1 ORDER BY id DESC LIMIT 1");
        sqlite.prepare_cached(&sql)?.query_row((), Self::from_row).optional()
    }

    /// Returns the newest generation that is being built. An older one than the current is replaced, and is deleted by the
    /// next build.
    pub(super) fn building(sqlite: &Connection) -> Result<Option<Self>, rusqlite::Error> {
        let sql = format!(
            "{GENERATION_COLUMNS} WHERE is_current = 0
             AND id > (SELECT coalesce(max(id), 0) FROM generations WHERE is_current = 1)
             ORDER BY id DESC LIMIT 1"
        );
        sqlite.prepare_cached(&sql)?.query_row((), Self::from_row).optional()
    }
}
