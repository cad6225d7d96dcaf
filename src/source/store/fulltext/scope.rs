//! Scope of a search: the whole store, one connection, or some streams.

use crate::handle::{ConnectionId, StreamName};
use crate::source::SourceError;
use crate::source::store::database::Database;
use crate::source::store::read::schema::{connection_row, schema};
use crate::source::unknown_place::unknown_place;

/// Part of the store that a search covers, by row ids.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Everything,
    Connection(i64),
    /// Streams, of one connection or of several.
    Streams(Vec<i64>),
}

impl Scope {
    /// Resolves a connection and stream names; each of them must exist.
    pub(super) fn resolve(
        database: &Database,
        connection: Option<&ConnectionId>,
        streams: &[StreamName],
    ) -> Result<Self, SourceError> {
        if streams.is_empty() {
            let Some(id) = connection else { return Ok(Self::Everything) };
            let row = database.read(|sqlite| connection_row(sqlite, id))?;
            return row.map(Self::Connection).map_or_else(|| Err(missing(database, connection, None)), Ok);
        }
        let known: Vec<(i64, String)> = database.read(|sqlite| {
            let mut statement = sqlite.prepare_cached(
                "SELECT s.id, s.name FROM streams s JOIN connections c ON c.id = s.connection
                 WHERE ?1 IS NULL OR c.connection_id = ?1",
            )?;
            let rows = statement
                .query_map([connection.map(ConnectionId::as_str)], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })?;
        let is_known = |stream: &&StreamName| known.iter().any(|(_, name)| name == stream.as_str());
        if let Some(unknown) = streams.iter().find(|stream| !is_known(stream)) {
            return Err(missing(database, connection, Some(unknown)));
        }
        let is_asked = |name: &str| streams.iter().any(|stream| stream.as_str() == name);
        Ok(Self::Streams(known.into_iter().filter(|(_, name)| is_asked(name)).map(|(row, _)| row).collect()))
    }
}

fn missing(
    database: &Database,
    connection: Option<&ConnectionId>,
    stream: Option<&StreamName>,
) -> SourceError {
    match schema(database) {
        Ok(schema) => unknown_place(&schema, connection, stream).unwrap_or(SourceError::InvalidCursor),
        Err(error) => error,
    }
}
