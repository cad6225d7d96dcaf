//! Looks up streams by name, with their fields and capabilities.

use std::sync::Arc;

use rusqlite::{Connection, params};

use super::schema::schema;
use crate::handle::{ConnectionId, StreamName};
use crate::record::StreamDetail;
use crate::source::store::database::{Database, ReadError};
use crate::source::store::manifest::Manifest;
use crate::source::store::manifest::declaration::fields;
use crate::source::store::manifest::kinds::Kinds;
use crate::source::unknown_place::unknown_place;
use crate::source::{SourceError, StreamQuery};

/// Stream of one connection with its row id.
#[derive(Debug)]
pub(in crate::source::store) struct StreamRow {
    pub(in crate::source::store) row: i64,
    pub(in crate::source::store) detail: StreamDetail,
}

pub(in crate::source::store) fn streams(
    database: &Database,
    query: &StreamQuery,
) -> Result<Vec<StreamDetail>, SourceError> {
    let rows = stream_rows(database, &query.stream, query.connection.as_ref())?;
    Ok(rows.into_iter().map(|row| row.detail).collect())
}

/// Returns the streams of a name, in one connection or in all. Returns at least one, or an error that lists the known
/// ones.
pub(in crate::source::store) fn stream_rows(
    database: &Database,
    stream: &StreamName,
    connection: Option<&ConnectionId>,
) -> Result<Vec<StreamRow>, SourceError> {
    let rows = database.ask(|sqlite| read_rows(sqlite, stream, connection))?;
    if rows.is_empty() {
        return Err(
            unknown_place(&schema(database)?, connection, Some(stream)).unwrap_or(SourceError::InvalidCursor)
        );
    }
    Ok(rows)
}

/// Returns the stream of a name in the connection of another stream.
pub(super) fn sibling(
    sqlite: &Connection,
    of: &StreamRow,
    stream: &StreamName,
) -> Result<Option<StreamRow>, ReadError> {
    let rows = read_rows(sqlite, stream, Some(&of.detail.connection_id))?;
    Ok(rows.into_iter().next())
}

fn read_rows(
    sqlite: &Connection,
    stream: &StreamName,
    connection: Option<&ConnectionId>,
) -> Result<Vec<StreamRow>, ReadError> {
    let mut statement = sqlite.prepare_cached(
        "SELECT s.id, c.connection_id, c.display_name, c.connector_key, s.record_count, c.manifest, s.cursor_field
         FROM streams s JOIN connections c ON c.id = s.connection
         WHERE s.name = ?1 AND (?2 IS NULL OR c.connection_id = ?2) ORDER BY s.id",
    )?;
    let mut rows = statement.query(params![stream.as_str(), connection.map(ConnectionId::as_str)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        // An invalid name that another program wrote cannot be addressed, so it is skipped.
        let Ok(connection_id) = row.get_ref(1)?.as_str().unwrap_or_default().parse::<ConnectionId>() else {
            continue;
        };
        let manifest = row.get_ref(5)?.as_str().ok().and_then(Manifest::cached);
        let declaration = manifest.as_deref().and_then(|manifest| manifest.stream(stream.as_str()).ok());
        let id = row.get(0)?;
        found.push(StreamRow {
            row: id,
            detail: StreamDetail {
                name: stream.clone(),
                connection_id,
                display_name: Some(row.get(2)?),
                connector_key: Some(row.get(3)?),
                record_count: row.get::<_, i64>(4)?.try_into().ok(),
                primary_key: declaration.map(|declared| declared.primary_key.clone()).unwrap_or_default(),
                cursor_field: row.get(6)?,
                fields: fields(declaration, &observed(sqlite, id)?),
                views: declaration.map(|declared| declared.views()).unwrap_or_default(),
                relations: declaration.map(|declared| declared.relations()).unwrap_or_default(),
                declaration: declaration.map(|declared| Arc::clone(declared.given())),
            },
        });
    }
    Ok(found)
}

fn observed(sqlite: &Connection, stream: i64) -> Result<Vec<(String, Kinds)>, rusqlite::Error> {
    let mut statement =
        sqlite.prepare_cached("SELECT name, kinds FROM fields WHERE stream = ?1 ORDER BY name")?;
    let rows = statement.query_map([stream], |row| Ok((row.get(0)?, Kinds::from_bits(row.get(1)?))))?;
    rows.collect()
}
