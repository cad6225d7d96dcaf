//! Description of a store: its files with their sizes, and the numbers of its records.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde::Serialize;

use super::database::{Database, identity};
use super::fulltext::index::folder_of;
use super::vectors::vector_status;
use crate::source::contract::{
    ConnectionInfo, EmbeddedStreams, StoreError, StreamInfo, VectorError, VectorStatus,
};
use crate::state::beside;

/// Description of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SqliteInfo {
    /// Path of the store.
    pub path: PathBuf,
    /// Version of the format of the file.
    pub format: i64,
    /// Number of changes since the store was created.
    pub version: i64,
    /// Number of records, without deleted ones.
    pub records: u64,
    /// Number of deleted records that `changes_since` tells of.
    pub deleted: u64,
    /// Sizes of the files.
    pub bytes: SqliteBytes,
    /// Connections in the order in which they were imported first.
    pub connections: Vec<ConnectionInfo>,
    /// State of the vectors.
    pub vectors: VectorStatus,
}

/// Sizes in bytes of the files of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SqliteBytes {
    /// The file of the records, with free pages.
    pub records: u64,
    /// Free pages in it, which the next imports use.
    pub free: u64,
    /// The write-ahead log.
    pub log: u64,
    /// The search index.
    pub index: u64,
    /// The vectors, with their log.
    pub vectors: u64,
}

/// Numbers that are read from the file of the records in one transaction.
struct Counts {
    format: i64,
    version: i64,
    free_bytes: i64,
    connections: Vec<ConnectionInfo>,
}

/// Reads the description of a store, of which some streams are embedded. Nothing is written.
///
/// # Errors
///
/// The store or its vectors cannot be read.
pub fn sqlite_info(store: &Path, embedded: &EmbeddedStreams) -> Result<SqliteInfo, VectorError> {
    let database = Database::open(store)?;
    let counts = database.read(|sqlite| {
        let snapshot = sqlite.unchecked_transaction()?;
        read(&snapshot)
    })?;
    let all = || counts.connections.iter().flat_map(|connection| &connection.streams);
    let vectors = vector_status(store, embedded)?;
    Ok(SqliteInfo {
        path: store.to_owned(),
        format: counts.format,
        version: counts.version,
        records: all().map(|stream| stream.records).sum(),
        deleted: all().map(|stream| stream.deleted).sum(),
        bytes: SqliteBytes {
            records: file_bytes(store),
            free: counts.free_bytes.unsigned_abs(),
            log: file_bytes(&beside(store, "-wal")),
            index: folder_bytes(&folder_of(store)).map_err(|error| StoreError::Unreadable {
                path: folder_of(store),
                problem: error.to_string(),
            })?,
            vectors: vectors.bytes + file_bytes(&beside(store, "-vectors-wal")),
        },
        connections: counts.connections,
        vectors,
    })
}

/// Returns the version of the format of a store that this release reads and writes.
///
/// # Errors
///
/// The store cannot be read, or is of another format.
pub fn store_format(store: &Path) -> Result<i64, StoreError> {
    Database::open(store)?
        .read(|sqlite| sqlite.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)))
}

fn read(sqlite: &Connection) -> Result<Counts, rusqlite::Error> {
    let pragma = |name| sqlite.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    // The number of rows is read from an index, without the records.
    let mut statement = sqlite.prepare(
        "SELECT c.connection_id, c.display_name, c.connector_key, s.name, s.record_count,
                (SELECT count(*) FROM records r INDEXED BY sqlite_autoindex_records_1 WHERE r.stream = s.id)
         FROM connections c LEFT JOIN streams s ON s.connection = c.id ORDER BY c.id, s.id",
    )?;
    let mut rows = statement.query(())?;
    let mut connections: Vec<ConnectionInfo> = Vec::new();
    while let Some(row) = rows.next()? {
        let connection_id: String = row.get(0)?;
        if connections.last().is_none_or(|last| last.connection_id != connection_id) {
            connections.push(ConnectionInfo {
                connection_id,
                display_name: row.get(1)?,
                connector_key: row.get(2)?,
                streams: Vec::new(),
            });
        }
        let (Some(last), Some(name)) = (connections.last_mut(), row.get(3)?) else { continue };
        let (records, rows): (i64, i64) = (row.get(4)?, row.get(5)?);
        let (records, rows) = (records.try_into().unwrap_or(0), rows.unsigned_abs());
        last.streams.push(StreamInfo { name, records, deleted: rows.saturating_sub(records) });
    }
    Ok(Counts {
        format: pragma("user_version")?,
        version: identity(sqlite)?.1,
        free_bytes: pragma("freelist_count")? * pragma("page_size")?,
        connections,
    })
}

/// Returns the size of a file, or 0 if there is none.
fn file_bytes(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns the sizes of all files of a folder, or 0 if there is none. Files that vanish meanwhile are not counted.
fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len());
    Ok(sizes.sum())
}
