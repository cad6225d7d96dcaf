//! Looks up streams by name.

use super::stream_row::StreamRow;
use super::tables::Tables;
use crate::handle::{ConnectionId, StreamName};
use crate::record::StreamDetail;
use crate::source::unknown_place::unknown_place;
use crate::source::{SourceError, StreamQuery};

pub(in crate::source) fn streams<T: Tables>(
    tables: &T,
    query: &StreamQuery,
) -> Result<Vec<StreamDetail>, T::Error> {
    let rows = stream_rows(tables, &query.stream, query.connection.as_ref())?;
    Ok(rows.into_iter().map(|row| row.detail).collect())
}

/// Returns the streams of a name, in one connection or in all. Returns at least one, or an error that lists the known
/// ones.
pub(in crate::source) fn stream_rows<T: Tables>(
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
pub(in crate::source) fn unknown<T: Tables>(
    tables: &T,
    connection: Option<&ConnectionId>,
    stream: &StreamName,
) -> Result<Option<SourceError>, T::Error> {
    Ok(unknown_place(&tables.schema()?, connection, Some(stream)))
}
