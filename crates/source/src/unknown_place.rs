//! Errors for unknown connections and streams, with the same wording in all sources that read their own schema.

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::{ConnectionSchema, Schema};

use super::{ConnectionChoice, QueryFault, SourceError};

/// Returns an error with the known alternatives if a connection, or a stream in it, does not exist.
pub fn unknown_place(
    schema: &Schema,
    connection: Option<&ConnectionId>,
    stream: Option<&StreamName>,
) -> Option<SourceError> {
    let asked = |known: &&ConnectionSchema| connection.is_none_or(|id| known.connection_id == *id);
    let connections: Vec<&ConnectionSchema> = schema.connections.iter().filter(asked).collect();
    if let (Some(id), []) = (connection, connections.as_slice()) {
        let choices = schema.connections.iter().map(ConnectionChoice::from).collect();
        return Some(SourceError::ConnectionNotFound { asked: id.to_string(), choices });
    }
    let stream = stream?;
    let known: Vec<&str> = connections
        .iter()
        .flat_map(|connection| &connection.streams)
        .map(|stream| stream.name.as_str())
        .collect();
    (!known.contains(&stream.as_str())).then(|| unknown_stream(stream, connection, known))
}

/// Returns the error of a stream that does not exist. The hint lists the existing ones.
pub fn unknown_stream(
    stream: &StreamName,
    connection: Option<&ConnectionId>,
    known: Vec<&str>,
) -> SourceError {
    let mut known = known;
    known.sort_unstable();
    known.dedup();
    let shown = known.get(..MAX_STREAMS).unwrap_or(&known).join(", ");
    let hint = match known.len().saturating_sub(MAX_STREAMS) {
        _ if known.is_empty() => "There is no stream to read here; `schema` tells what there is.".to_owned(),
        0 => format!("Existing streams: {shown}."),
        rest => format!("Existing streams: {shown} and {rest} more."),
    };
    SourceError::InvalidQuery {
        fault: QueryFault::UnknownStream,
        problem: match connection {
            Some(connection) => format!("connection `{connection}` has no stream `{stream}`"),
            None => format!("there is no stream `{stream}`"),
        },
        hint,
    }
}

/// Maximum number of streams that an error names.
const MAX_STREAMS: usize = 12;
