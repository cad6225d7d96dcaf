//! Looks up streams by name.

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::StreamDetail;
use fetchwell_source::unknown_place::unknown_place;
use fetchwell_source::{SourceError, StreamQuery};

use super::stream_row::StreamRow;
use super::tables::Tables;

/// Returns the schema of a stream in each connection that has it.
///
/// # Errors
///
/// No connection has the stream, or the tables cannot be read.
pub fn streams<T: Tables>(tables: &T, query: &StreamQuery) -> Result<Vec<StreamDetail>, T::Error> {
    let rows = stream_rows(tables, &query.stream, query.connection.as_ref())?;
    Ok(rows.into_iter().map(|row| row.detail).collect())
}

/// Returns the streams of a name, in one connection or in all. Returns at least one, or an error that lists the known
/// ones.
pub fn stream_rows<T: Tables>(
    tables: &T,
    stream: &StreamName,
    connection: Option<&ConnectionId>,
) -> Result<Vec<StreamRow>, T::Error> {
    let rows = tables.streams(stream, connection)?;
    if rows.is_empty() {
        return Err(unknown(tables, connection, stream)?.unwrap_or(SourceError::InvalidCursor).into());
    }
    Ok(rows)
}

/// Returns the stream of a name in the connection of another stream.
pub(super) fn sibling<T: Tables>(
    tables: &T,
    of: &StreamRow,
    stream: &StreamName,
) -> Result<Option<StreamRow>, T::Error> {
    let rows = tables.streams(stream, Some(&of.detail.connection_id))?;
    Ok(rows.into_iter().next())
}

/// Returns the error that says which connection or stream does not exist, if one does not.
pub fn unknown<T: Tables>(
    tables: &T,
    connection: Option<&ConnectionId>,
    stream: &StreamName,
) -> Result<Option<SourceError>, T::Error> {
    Ok(unknown_place(&tables.schema()?, connection, Some(stream)))
}
