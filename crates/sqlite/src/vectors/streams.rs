//! The streams that a build embeds, the dimensions that documents need, and the changes that it skipped in others.
//!
//! A configuration can hide streams. Their text is not read, so it is sent to no model. A generation remembers from which
//! version on it lacks a stream, so that a configuration that shows the stream embeds those records, too.

use std::collections::BTreeMap;
use std::path::Path;

use fetchwell_source::contract::{EMBEDDING_DIMENSIONS, EmbeddedStreams, VectorError, WrongDimensions};
use fetchwell_source::documents::DOCUMENTS_STREAM;
use rusqlite::Connection;

use crate::database::Database;
use crate::tables::{has_projects, has_table};

/// Returns an error if a store has projects of documents to embed, and vectors of a model have other dimensions than
/// documents need.
///
/// # Errors
///
/// The dimensions are wrong, or the store cannot be read.
pub fn check_document_dimensions(
    store: &Path,
    dimensions: usize,
    streams: &EmbeddedStreams,
) -> Result<(), VectorError> {
    if dimensions == EMBEDDING_DIMENSIONS {
        return Ok(());
    }
    check_dimensions(&Database::open(store)?, dimensions, streams)
}

/// As [`check_document_dimensions`], for a store that is open.
pub(super) fn check_dimensions(
    database: &Database,
    dimensions: usize,
    streams: &EmbeddedStreams,
) -> Result<(), VectorError> {
    if dimensions != EMBEDDING_DIMENSIONS
        && streams.contains(DOCUMENTS_STREAM)
        && database.read(has_projects)?
    {
        return Err(WrongDimensions(dimensions).into());
    }
    Ok(())
}

/// Returns the names of embedded streams as JSON for [`is_embedded_sql`], or `None` for all streams.
pub(super) fn streams_parameter(streams: &EmbeddedStreams) -> Option<String> {
    Some(serde_json::Value::from(streams.names()?).to_string())
}

/// Returns the SQL condition that a stream is embedded, by the row id in `column` and the value of
/// [`streams_parameter`] in `parameter`.
pub(super) fn is_embedded_sql(column: &str, parameter: &str) -> String {
    format!(
        "({parameter} IS NULL OR {column} IN
         (SELECT id FROM streams WHERE name IN (SELECT value FROM json_each({parameter}))))"
    )
}

/// The streams of which a generation lacks records, each with the version after which it lacks them. It lacks no change
/// that is newer than the version of the generation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SkippedStreams(BTreeMap<i64, i64>);

impl SkippedStreams {
    /// Reads the skipped streams of a generation.
    pub(super) fn read(sqlite: &Connection, generation: i64) -> Result<Self, rusqlite::Error> {
        if !has_table(sqlite, "skipped_streams")? {
            return Ok(Self::default());
        }
        let mut statement =
            sqlite.prepare_cached("SELECT stream, after FROM skipped_streams WHERE generation = ?1")?;
        let rows = statement.query_map([generation], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<_, _>>().map(Self)
    }

    /// Replaces the skipped streams of a generation. The table is created by the first of them.
    pub(super) fn write(&self, sqlite: &Connection, generation: i64) -> Result<(), rusqlite::Error> {
        sqlite.execute_batch(include_str!("skipped_streams.sql"))?;
        sqlite.execute(
            "DELETE FROM skipped_streams
             WHERE generation = ?1 OR generation NOT IN (SELECT id FROM generations)",
            [generation],
        )?;
        let mut insert = sqlite
            .prepare_cached("INSERT INTO skipped_streams (generation, stream, after) VALUES (?1, ?2, ?3)")?;
        for (stream, after) in &self.0 {
            insert.execute((generation, stream, after))?;
        }
        Ok(())
    }

    /// Remembers that a change of a stream was skipped.
    pub(super) fn skip(&mut self, stream: i64, version: i64) {
        self.0.entry(stream).or_insert(version - 1);
    }

    /// Remembers that a skipped stream was embedded up to a version.
    pub(super) fn embedded_until(&mut self, stream: i64, version: i64) {
        self.0.insert(stream, version);
    }

    /// Remembers that a skipped stream lacks nothing any more.
    pub(super) fn complete(&mut self, stream: i64) {
        self.0.remove(&stream);
    }

    /// Returns the skipped streams with the versions after which records lack.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.0.iter().map(|(stream, after)| (*stream, *after))
    }
}
