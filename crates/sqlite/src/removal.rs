//! Removes records with everything that is derived from them.
//!
//! The vectors of the records and the search index are deleted first: they are derived, so a removal that is stopped in between
//! can be run again. Then the rows of the records and of their history are deleted and overwritten, and the index is written
//! anew. The store gets a new id: change tokens of earlier versions expire, because no history is left that could tell of the
//! removal. A table marks the store from the deletion until its free pages are overwritten, so that a process that is killed in
//! between leaves the rest to the next writer.

use std::path::{Path, PathBuf};

use fetchwell_core::handle::RecordScope;
use fetchwell_source::contract::no_progress;
use fetchwell_source::contract::{RemovalCounts, RemovalError, RemovalResult, ScopeRows, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use super::database::{Database, identity};
use super::documents::DocumentWriter;
use super::fulltext::index::{IndexFollower, delete_index};
use super::place::{open, resolve};
use super::sync::note_removed_items;
use super::traces::{is_removal_unfinished, mark_removal, overwrite_removed};
use super::vectors::{RemovedRows, VectorRemover};
use super::write_lock::{IndexLock, WriteLock};

/// Counts the rows that a removal would delete.
pub(crate) fn count_removal(store: &Path, scope: &RecordScope) -> Result<RemovalCounts, RemovalError> {
    let (database, rows) = open(store, scope)?;
    Ok(count(&database, &rows, scope)?)
}

/// Overwrites the free pages of a store that an interrupted removal left.
pub(crate) fn finish_removal(store: &Path) -> Result<(), StoreError> {
    let database = Database::open(store)?;
    if !database.read(is_removal_unfinished)? {
        return Ok(());
    }
    let _lock = WriteLock::try_take(store)?.ok_or_else(|| StoreError::Locked(store.to_owned()))?;
    overwrite_removed(&database.writer()?).map_err(|error| database.error(&error))
}

fn count(database: &Database, place: &ScopeRows, scope: &RecordScope) -> Result<RemovalCounts, StoreError> {
    let sql = "SELECT count(*) FROM records WHERE stream = ?1";
    let count = |sqlite: &Connection, row: i64| sqlite.query_row(sql, [row], |row| row.get::<_, i64>(0));
    let rows = database.read(|sqlite| {
        place.removed_streams().into_iter().try_fold(0, |rows, row| Ok(rows + count(sqlite, row)?))
    })?;
    Ok(place.removal_counts(scope, rows.unsigned_abs()))
}

/// Removes a connection, a stream or a record.
///
/// # Errors
///
/// The records do not exist, the store or its vectors cannot be written, or another process writes to them. Then all records
/// are left; vectors and the search index are made again if they are missing.
pub(crate) async fn remove_records(store: &Path, scope: &RecordScope) -> Result<RemovalResult, RemovalError> {
    let database = Database::open(store)?;
    let locked = || StoreError::Locked(store.to_owned());
    let _lock = WriteLock::try_take(store)?.ok_or_else(locked)?;
    // An import holds it to its end.
    let index_lock = IndexLock::try_take(store)?.ok_or_else(locked)?;
    // Both files are locked before the first is changed, and until the end: a build in between would read the records again.
    let mut remover = VectorRemover::open(store).await?;
    let place = resolve(&database, scope)?;
    let counts = count(&database, &place, scope)?;
    let (before, _version) = database.read(identity)?;
    // The vectors get the new id before the store has it. Until then they are not those of the store, so after a stop the next
    // build replaces them, and no record stays without a vector.
    let after = database.read(random_id)?;
    let mut sqlite = database.writer()?;
    let vectors = remover.remove(&removed_rows(&place, scope), &before, &after)?;
    let mut problems = Vec::new();
    if let Err(error) = delete_index(store, &before) {
        problems.push(format!(
            "the search index cannot be deleted and has words of the removed records ({error})"
        ));
    }
    delete(&mut sqlite, &place, scope, &after).map_err(|error| database.error(&error))?;
    if let Err(error) = overwrite_removed(&sqlite) {
        problems.push(database.error(&error).to_string());
    }
    let copies: Vec<String> = earlier_copies(store).iter().map(|copy| copy.display().to_string()).collect();
    let notes = (!copies.is_empty())
        .then(|| format!("copies that `fetchwell restore` kept are not changed: {}", copies.join(", ")));
    let index = IndexFollower::with_lock(&database, index_lock).finish(&no_progress);
    problems.extend(index.map(|error| error.to_string()));
    Ok(RemovalResult { counts, vectors, problems, notes: notes.into_iter().collect() })
}

/// Returns the backups beside a store that a restore made of its earlier records.
fn earlier_copies(store: &Path) -> Vec<PathBuf> {
    let Some(name) = store.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let prefix = format!("{name}-before-restore-");
    let folder = store.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut copies: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect();
    copies.sort();
    copies
}

fn removed_rows(place: &ScopeRows, scope: &RecordScope) -> RemovedRows {
    match (place.record, &scope.stream) {
        (Some(record), _) => RemovedRows::Record(record.row),
        (None, Some(_)) => RemovedRows::Streams(place.stream_rows()),
        (None, None) => RemovedRows::Connection(place.connection),
    }
}

fn random_id(sqlite: &Connection) -> Result<String, rusqlite::Error> {
    sqlite.query_row("SELECT hex(randomblob(16))", (), |row| row.get(0))
}

/// Deletes the rows in one transaction and gives the store a new id.
fn delete(
    sqlite: &mut Connection,
    place: &ScopeRows,
    scope: &RecordScope,
    new_id: &str,
) -> Result<(), rusqlite::Error> {
    // Deleted rows are overwritten with zeros.
    sqlite.pragma_update(None, "secure_delete", true)?;
    let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
    mark_removal(&transaction)?;
    if scope.stream.is_some() {
        note_removed_items(&transaction, place)?;
    }
    if let Some(record) = place.record {
        transaction.execute("DELETE FROM records WHERE id = ?1", [record.row])?;
        for row in place.stream_rows().into_iter().filter(|_| !record.is_deleted) {
            transaction.execute("UPDATE streams SET record_count = record_count - 1 WHERE id = ?1", [row])?;
        }
    } else {
        for row in place.stream_rows() {
            transaction.execute("DELETE FROM records WHERE stream = ?1", [row])?;
            transaction.execute("DELETE FROM fields WHERE stream = ?1", [row])?;
            transaction.execute("DELETE FROM streams WHERE id = ?1", [row])?;
        }
        if scope.stream.is_none() {
            transaction.execute("DELETE FROM connections WHERE id = ?1", [place.connection])?;
        }
    }
    // A project that stays has other documents now.
    if let Some(documents) = DocumentWriter::find(&transaction, place.connection)? {
        documents.bump(&transaction)?;
    }
    transaction.execute("UPDATE store SET uuid = ?1 WHERE id = 1", [new_id])?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::super::SqliteTarget;
    use super::*;
    use fetchwell_core::record::RecordData;
    use fetchwell_source::contract::{Change, IncomingRecord, NewConnection};
    use fetchwell_source::sync::ImportTarget;

    #[test]
    fn a_removal_is_unfinished_until_its_traces_are_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.db");
        let connection = NewConnection {
            connection_id: "notes".parse().unwrap(),
            connector_key: "files".to_owned(),
            display_name: None,
            manifest: None,
        };
        let mut writer = SqliteTarget::new(&path).open(&connection, None, &no_progress).unwrap();
        let change = Change::Put { data: RecordData::new(), emitted_at: None };
        let incoming = IncomingRecord { stream: "s".parse().unwrap(), key: "a".parse().unwrap(), change };
        writer.write(incoming, 1).unwrap();
        writer.finish(&no_progress).unwrap();
        let scope: RecordScope = "notes/s:a".parse().unwrap();
        let (database, place) = open(&path, &scope).unwrap();
        assert!(!database.read(is_removal_unfinished).unwrap());
        delete(&mut database.writer().unwrap(), &place, &scope, "NEW").unwrap();
        assert!(database.read(is_removal_unfinished).unwrap());
        finish_removal(&path).unwrap();
        assert!(!database.read(is_removal_unfinished).unwrap());
    }
}
