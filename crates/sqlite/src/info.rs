//! Description of a store: its files with their sizes, and the numbers of its records.

use std::fs;
use std::path::Path;

use fetchwell_source::contract::{
    ConnectionInfo, EmbeddedStreams, StoreError, StoreInfo, StorePart, StreamInfo, VectorError,
};
use fetchwell_state::beside;
use rusqlite::Connection;

use super::database::{Database, identity};
use super::fulltext::index::folder_of;
use super::vectors::vector_status;

/// Reads the description of a store, of which some streams are embedded. Nothing is written.
pub(crate) fn sqlite_info(store: &Path, embedded: &EmbeddedStreams) -> Result<StoreInfo, VectorError> {
    let database = Database::open(store)?;
    let (info, free) = database.read(|sqlite| {
        let snapshot = sqlite.unchecked_transaction()?;
        let pragma = |name| snapshot.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let (_id, version) = identity(&snapshot)?;
        let info = StoreInfo::new(pragma("user_version")?, version, connections(&snapshot)?);
        Ok((info, pragma("freelist_count")? * pragma("page_size")?))
    })?;
    let vectors = vector_status(store, embedded)?;
    let index = folder_of(store);
    let index = folder_bytes(&index)
        .map_err(|error| StoreError::Unreadable { path: index, problem: error.to_string() })?;
    let bytes = [
        ("records", file_bytes(store)),
        ("free", free.unsigned_abs()),
        ("log", file_bytes(&beside(store, "-wal"))),
        ("index", index),
        ("vectors", vectors.bytes + file_bytes(&beside(store, "-vectors-wal"))),
    ];
    let bytes = bytes.map(|(name, bytes)| StorePart { name, bytes }).to_vec();
    Ok(StoreInfo { path: Some(store.to_owned()), bytes, vectors: Some(vectors), ..info })
}

/// Returns the version of the format of a store that this release reads and writes.
pub(crate) fn store_format(store: &Path) -> Result<i32, StoreError> {
    Database::open(store)?.read(|sqlite| sqlite.pragma_query_value(None, "user_version", |row| row.get(0)))
}

/// Reads the connections, each with one of its streams.
fn connections(sqlite: &Connection) -> Result<Vec<ConnectionInfo>, rusqlite::Error> {
    // The number of rows is read from an index, without the records.
    let mut statement = sqlite.prepare(
        "SELECT c.connection_id, c.display_name, c.connector_key, s.name, s.record_count,
                (SELECT count(*) FROM records r INDEXED BY sqlite_autoindex_records_1 WHERE r.stream = s.id)
         FROM connections c LEFT JOIN streams s ON s.connection = c.id ORDER BY c.id, s.id",
    )?;
    let rows = statement.query_map((), |row| {
        let stream = match row.get(3)? {
            Some(name) => Some(StreamInfo::new(name, row.get(4)?, row.get(5)?)),
            None => None,
        };
        Ok(ConnectionInfo {
            connection_id: row.get(0)?,
            display_name: row.get(1)?,
            connector_key: row.get(2)?,
            streams: stream.into_iter().collect(),
        })
    })?;
    rows.collect()
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
