//! A connection or a stream that does not exist, said in the same words by every source that reads its own schema.

use super::{ConnectionChoice, QueryFault, SourceError};
use crate::handle::{ConnectionId, StreamName};
use crate::record::{ConnectionSchema, Schema};

/// Whether a connection, or a stream in it, does not exist, and what there is instead.
pub(crate) fn unknown_place(
    schema: &Schema,
    connection: Option<&ConnectionId>,
    stream: Option<&StreamName>,
) -> Option<SourceError> {
    let asked = |known: &&ConnectionSchema| connection.is_none_or(|id| known.connection_id == *id);
    let connections: Vec<&ConnectionSchema> = schema.connections.iter().filter(asked).collect();
    if let (Some(id), []) = (connection, connections.as_slice()) {
        let choices = schema.connections.iter().map(ConnectionChoice::from).collect();
        return Some(SourceError::UseKnownConnection { asked: id.to_string(), choices });
    }
    let stream = stream?;
    let mut known: Vec<&str> = connections
        .iter()
        .flat_map(|connection| &connection.streams)
        .map(|stream| stream.name.as_str())
        .collect();
    if known.contains(&stream.as_str()) {
        return None;
    }
    known.sort_unstable();
    known.dedup();
    known.truncate(STREAMS_NAMED);
    Some(SourceError::CorrectQuery {
        fault: QueryFault::UnknownStream,
        problem: match connection {
            Some(connection) => format!("connection `{connection}` has no stream `{stream}`"),
            None => format!("there is no stream `{stream}`"),
        },
        hint: format!("Streams there are: {}.", known.join(", ")),
    })
}

/// Streams that an error names.
const STREAMS_NAMED: usize = 12;

/// A hint with the streams there are; nothing when there is none.
pub(crate) fn there_are(names: &[&str]) -> Option<String> {
    let shown = names.get(..STREAMS_NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(STREAMS_NAMED) {
        _ if names.is_empty() => None,
        0 => Some(format!("There are: {shown}.")),
        rest => Some(format!("There are: {shown} and {rest} more.")),
    }
}
