//! Resolves the names of a scope to rows of a store.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::database::Database;
use crate::handle::RecordScope;
use crate::source::contract::ScopeError;

/// Rows that a scope names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) connection: i64,
    /// Streams in the order in which they were created.
    pub(super) streams: Vec<StreamPlace>,
    /// Row of the record, if the scope names one.
    pub(super) record: Option<RecordPlace>,
}

/// Row of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamPlace {
    pub(super) row: i64,
    pub(super) name: String,
    pub(super) records: u64,
}

/// Row of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordPlace {
    pub(super) row: i64,
    /// True if only the history of a deleted record is left.
    pub(super) is_deleted: bool,
}

impl Place {
    /// Resolves a scope.
    pub(super) fn resolve(database: &Database, scope: &RecordScope) -> Result<Self, ScopeError> {
        database.read(|sqlite| resolve(sqlite, scope))?
    }
}

/// Opens a store and resolves a scope.
pub(super) fn open(store: &Path, scope: &RecordScope) -> Result<(Database, Place), ScopeError> {
    let database = Database::open(store)?;
    let place = Place::resolve(&database, scope)?;
    Ok((database, place))
}

fn resolve(sqlite: &Connection, scope: &RecordScope) -> Result<Result<Place, ScopeError>, rusqlite::Error> {
    let asked = scope.connection.as_str();
    let connection: Option<i64> = sqlite
        .query_row("SELECT id FROM connections WHERE connection_id = ?1", [asked], |row| row.get(0))
        .optional()?;
    let Some(connection) = connection else {
        let known = names(sqlite, "SELECT connection_id FROM connections WHERE ?1 ORDER BY id", 1)?;
        return Ok(Err(ScopeError::ConnectionNotFound { asked: asked.to_owned(), known }));
    };
    let mut statement =
        sqlite.prepare("SELECT id, name, record_count FROM streams WHERE connection = ?1 ORDER BY id")?;
    let streams = statement.query_map([connection], |row| {
        Ok(StreamPlace {
            row: row.get(0)?,
            name: row.get(1)?,
            records: row.get::<_, i64>(2)?.try_into().unwrap_or(0),
        })
    })?;
    let mut streams: Vec<StreamPlace> = streams.collect::<Result<_, _>>()?;
    let Some(stream) = &scope.stream else { return Ok(Ok(Place { connection, streams, record: None })) };
    if !streams.iter().any(|known| known.name == stream.as_str()) {
        return Ok(Err(ScopeError::StreamNotFound {
            connection: asked.to_owned(),
            asked: stream.to_string(),
            known: streams.into_iter().map(|stream| stream.name).collect(),
        }));
    }
    streams.retain(|known| known.name == stream.as_str());
    let (Some(key), Some(stream)) = (&scope.record, streams.first()) else {
        return Ok(Ok(Place { connection, streams, record: None }));
    };
    let record = sqlite
        .query_row(
            "SELECT id, data IS NULL FROM records WHERE stream = ?1 AND key = ?2",
            params![stream.row, key.as_str()],
            |row| Ok(RecordPlace { row: row.get(0)?, is_deleted: row.get(1)? }),
        )
        .optional()?;
    Ok(match record {
        Some(record) => Ok(Place { connection, streams, record: Some(record) }),
        None => Err(ScopeError::RecordNotFound(scope.to_string())),
    })
}

fn names(sqlite: &Connection, sql: &str, value: i64) -> Result<Vec<String>, rusqlite::Error> {
    sqlite.prepare(sql)?.query_map([value], |row| row.get(0))?.collect()
}
