//! State of the vectors of a store.

use std::fs;
use std::path::Path;

use fetchwell_source::contract::{EmbeddedStreams, GenerationStatus, VectorError, VectorStatus};
use rusqlite::Connection;

use super::error::sqlite_error;
use super::file::{Generation, open, vectors_path};
use super::lock::is_locked;
use super::plan::Coverage;
use super::refused::RefusedRecords;
use super::streams::{SkippedStreams, is_embedded_sql, streams_parameter};
use crate::database::{Database, identity};

/// Returns the state of the vectors of a store of which some streams are embedded.
///
/// # Errors
///
/// The store or its vectors cannot be read.
pub fn vector_status(store: &Path, streams: &EmbeddedStreams) -> Result<VectorStatus, VectorError> {
    let database = Database::open(store)?;
    let path = vectors_path(store);
    let is_locked = is_locked(&path);
    let Some(sqlite) = open(&path)? else { return Ok(VectorStatus { is_locked, ..VectorStatus::default() }) };
    let (uuid, _newest) = database.read(identity)?;
    let describe = |generation: Option<Generation>| -> Result<Option<GenerationStatus>, VectorError> {
        let Some(generation) = generation else { return Ok(None) };
        let chunks: Result<i64, rusqlite::Error> =
            sqlite.query_row("SELECT count(*) FROM chunks WHERE generation = ?1", [generation.id], |row| {
                row.get(0)
            });
        let chunks = chunks.map_err(|error| sqlite_error(&path, &error))?;
        let is_of_store = generation.store == uuid;
        let after = if is_of_store { generation.version } else { 0 };
        let skipped = if is_of_store {
            SkippedStreams::read(&sqlite, generation.id)
        } else {
            Ok(SkippedStreams::default())
        };
        let skipped = skipped.map_err(|error| sqlite_error(&path, &error))?;
        let covered = Coverage { version: after, skipped };
        let refused =
            RefusedRecords::read(&sqlite, generation.id).map_err(|error| sqlite_error(&path, &error))?;
        let refused = if is_of_store { refused } else { RefusedRecords::default() };
        let missing = database.read(|sqlite| {
            Ok(count_missing(sqlite, &covered, streams)? + count_refused(sqlite, &refused, covered.version)?)
        })?;
        Ok(Some(GenerationStatus {
            model: generation.model,
            dimensions: generation.dimensions,
            chunks: chunks.unsigned_abs(),
            missing_records: missing.unsigned_abs(),
            omitted_bytes: generation.omitted.unsigned_abs(),
        }))
    };
    let failed = |error: rusqlite::Error| sqlite_error(&path, &error);
    Ok(VectorStatus {
        current: describe(Generation::current(&sqlite).map_err(failed)?)?,
        building: describe(Generation::building(&sqlite).map_err(failed)?)?,
        is_locked,
        bytes: fs::metadata(&path).map_or(0, |metadata| metadata.len()),
        ..VectorStatus::default()
    })
}

/// Checks the whole file of the vectors of a store, without the numbers of the vectors. Takes a second for a million chunks
/// that are in the memory of the system.
///
/// # Errors
///
/// The file is damaged, or cannot be read.
pub fn check_vectors(store: &Path) -> Result<(), VectorError> {
    let path = vectors_path(store);
    let Some(sqlite) = open(&path)? else { return Ok(()) };
    let found = sqlite.query_row("PRAGMA quick_check(1)", (), |row| row.get::<_, String>(0));
    match found.map_err(|error| sqlite_error(&path, &error))? {
        found if found == "ok" => Ok(()),
        problem => {
            Err(VectorError::Damaged { path, problem: problem.lines().last().unwrap_or("").to_owned() })
        }
    }
}

/// Counts the records of embedded streams that a generation lacks.
fn count_missing(
    store: &Connection,
    covered: &Coverage,
    streams: &EmbeddedStreams,
) -> Result<i64, rusqlite::Error> {
    let names = streams_parameter(streams);
    let mut newer = store.prepare_cached(&format!(
        "SELECT count(*) FROM records
         WHERE version > ?1 AND (?1 > 0 OR data IS NOT NULL) AND {}",
        is_embedded_sql("stream", "?2")
    ))?;
    let mut missing: i64 = newer.query_row((covered.version, &names), |row| row.get(0))?;
    let mut skipped = store.prepare_cached(&format!(
        "SELECT count(*) FROM records
         WHERE version > ?1 AND version <= ?3 AND stream = ?4 AND data IS NOT NULL AND {}",
        is_embedded_sql("stream", "?2")
    ))?;
    for (stream, after) in covered.skipped.iter() {
        missing += skipped.query_row((after, &names, covered.version, stream), |row| row.get::<_, i64>(0))?;
    }
    Ok(missing)
}

/// Counts the refused records that have not changed since.
fn count_refused(store: &Connection, refused: &RefusedRecords, version: i64) -> Result<i64, rusqlite::Error> {
    let mut is_unchanged =
        store.prepare_cached("SELECT 1 FROM records WHERE id = ?1 AND data IS NOT NULL AND version <= ?2")?;
    let mut count = 0;
    for record in refused.iter() {
        count += i64::from(is_unchanged.exists((record, version))?);
    }
    Ok(count)
}
