//! Removes records with everything that is derived from them.
//!
//! The rows of the records and of their history are deleted and overwritten, the vectors of the records too, and the
//! search index is written anew. The store gets a new id: change tokens of earlier versions expire, because no history is left
//! that could tell of the removal.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use serde::Serialize;

use super::StoreError;
use super::database::{Database, identity, overwrite_free_pages};
use super::fulltext::index::{IndexFollower, delete_index};
use super::place::{Place, ScopeError, open};
use super::vectors::{RemovedRows, VectorError, VectorRemover};
use super::write_lock::WriteLock;
use crate::handle::RecordScope;

/// Number of rows that a removal deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RemovalCounts {
    /// Number of connections.
    pub connections: u64,
    /// Number of streams.
    pub streams: u64,
    /// Number of records, without deleted ones.
    pub records: u64,
    /// Number of deleted records of which only the history is left.
    pub deleted: u64,
}

/// Result of a removal.
#[derive(Debug)]
pub struct Removed {
    /// Number of rows that were deleted.
    pub counts: RemovalCounts,
    /// Number of vectors that were deleted.
    pub vectors: u64,
    /// Error that leaves data of the records in a file, or prevents use of the search index. The records are removed all the
    /// same.
    pub problems: Vec<String>,
}

/// Reason why records cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// The records do not exist, or the store cannot be used.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The vectors cannot be used.
    #[error(transparent)]
    Vectors(#[from] VectorError),
}

impl From<StoreError> for RemovalError {
    fn from(error: StoreError) -> Self {
        Self::Scope(error.into())
    }
}

/// Counts the rows that a removal would delete.
///
/// # Errors
///
/// The records do not exist, or the store cannot be used.
pub fn count_removal(store: &Path, scope: &RecordScope) -> Result<RemovalCounts, RemovalError> {
    let (database, place) = open(store, scope)?;
    Ok(database.read(|sqlite| count(sqlite, &place, scope))?)
}

fn count(sqlite: &Connection, place: &Place, scope: &RecordScope) -> Result<RemovalCounts, rusqlite::Error> {
    if let Some(record) = place.record {
        let deleted = u64::from(record.is_deleted);
        return Ok(RemovalCounts { deleted, records: 1 - deleted, ..RemovalCounts::default() });
    }
    let mut counts = RemovalCounts {
        connections: u64::from(scope.stream.is_none()),
        streams: u64::try_from(place.streams.len()).unwrap_or(u64::MAX),
        ..RemovalCounts::default()
    };
    for stream in &place.streams {
        let rows: i64 =
            sqlite.query_row("SELECT count(*) FROM records WHERE stream = ?1", [stream.row], |row| {
                row.get(0)
            })?;
        counts.records += stream.records;
        counts.deleted += rows.unsigned_abs().saturating_sub(stream.records);
    }
    Ok(counts)
}

/// Removes a connection, a stream or a record.
///
/// # Errors
///
/// The records do not exist, the store cannot be written, or another process writes to it. Then nothing is removed.
pub async fn remove_records(store: &Path, scope: &RecordScope) -> Result<Removed, RemovalError> {
    let database = Database::open(store)?;
    let lock = || WriteLock::try_take(store)?.ok_or_else(|| StoreError::Locked(store.to_owned()));
    let _lock = lock()?;
    // Both files are locked before the first is changed.
    let vectors = VectorRemover::open(store).await?;
    let place = Place::resolve(&database, scope)?;
    let counts = database.read(|sqlite| count(sqlite, &place, scope))?;
    let (before, _version) = database.read(identity)?;
    let mut sqlite = database.writer()?;
    delete(&mut sqlite, &place, scope).map_err(|error| database.error(&error))?;
    let mut problems = Vec::new();
    let mut keep = |done: Result<(), String>| problems.extend(done.err());
    let (after, _version) = database.read(identity)?;
    let removed_vectors = vectors.remove(&removed_rows(&place, scope), &before, &after);
    let vectors = removed_vectors.as_ref().copied().unwrap_or(0);
    keep(removed_vectors.map(drop).map_err(|error| error.to_string()));
    keep(overwrite_free_pages(&sqlite).map_err(|error| database.error(&error).to_string()));
    keep(delete_index(store, &before).map_err(|error| {
        format!("the search index cannot be deleted and has words of the removed records ({error})")
    }));
    keep(match IndexFollower::open(&database).finish(&database) {
        None => Ok(()),
        Some(error) => Err(error.to_string()),
    });
    Ok(Removed { counts, vectors, problems })
}

fn removed_rows(place: &Place, scope: &RecordScope) -> RemovedRows {
    match (place.record, &scope.stream) {
        (Some(record), _) => RemovedRows::Record(record.row),
        (None, Some(_)) => RemovedRows::Streams(place.streams.iter().map(|stream| stream.row).collect()),
        (None, None) => RemovedRows::Connection(place.connection),
    }
}

/// Deletes the rows in one transaction and gives the store a new id.
fn delete(sqlite: &mut Connection, place: &Place, scope: &RecordScope) -> Result<(), rusqlite::Error> {
    // Deleted rows are overwritten with zeros.
    sqlite.pragma_update(None, "secure_delete", true)?;
    let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(record) = place.record {
        transaction.execute("DELETE FROM records WHERE id = ?1", [record.row])?;
        for stream in place.streams.iter().filter(|_| !record.is_deleted) {
            transaction
                .execute("UPDATE streams SET record_count = record_count - 1 WHERE id = ?1", [stream.row])?;
        }
    } else {
        for stream in &place.streams {
            transaction.execute("DELETE FROM records WHERE stream = ?1", [stream.row])?;
            transaction.execute("DELETE FROM fields WHERE stream = ?1", [stream.row])?;
            transaction.execute("DELETE FROM streams WHERE id = ?1", [stream.row])?;
        }
        if scope.stream.is_none() {
            transaction.execute("DELETE FROM connections WHERE id = ?1", [place.connection])?;
        }
    }
    transaction.execute("UPDATE store SET uuid = hex(randomblob(16)) WHERE id = 1", ())?;
    transaction.commit()
}
