//! The request of a piece: typed arguments, validated without IO.

use fetchwell_core::handle::{ConnectionId, Handle, RecordAddress, RecordId, SourceName, StreamName};
use fetchwell_source::{WindowQuery, WindowStart};
use serde::Deserialize;

use super::chunk::ChunkRequest;
use super::spec::READ_RECORD_FIELD;
use crate::arguments::{RecordReference, named_record, safe_connection};
use crate::error::ToolError;

/// Length of a window without `limit_chars`.
const DEFAULT_LIMIT: usize = 4_096;

/// Maximum length of a window, in characters.
const MAX_LIMIT: usize = 16_384;

/// Characters before and after a match without any length.
const DEFAULT_CONTEXT: usize = 500;

/// Maximum length of `q`, in characters.
const MAX_QUERY_CHARS: usize = 1_000;

/// Arguments as they are sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    id: Option<String>,
    #[serde(default, deserialize_with = "safe_connection")]
    connection_id: Option<ConnectionId>,
    stream: Option<StreamName>,
    record_id: Option<RecordId>,
    field: String,
    offset_chars: Option<usize>,
    limit_chars: Option<usize>,
    q: Option<String>,
    before_chars: Option<usize>,
    after_chars: Option<usize>,
    #[serde(default)]
    unit: Unit,
    cursor: Option<String>,
    source: Option<SourceName>,
}

/// Unit in which a piece is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    #[default]
    Chars,
    Chunk,
}

/// A validated call.
pub(crate) struct Request {
    /// Address that the id names, without the connection of the argument.
    pub(super) named: RecordAddress,
    pub(super) piece: PieceRequest,
}

/// The piece to read.
pub(super) enum PieceRequest {
    Window(WindowRequest),
    Chunk(ChunkRequest),
}

/// A call that reads characters.
pub(crate) struct WindowRequest {
    /// Id as it was sent, or the handle of the named record. Empty if that has none.
    pub(super) id: String,
    pub(super) source: Option<SourceName>,
    pub(super) query: WindowQuery,
    /// Length of the pieces before and after this one, in characters.
    pub(super) step: usize,
}

/// Validates arguments that depend on each other.
pub(super) fn resolve(args: Args) -> Result<Request, ToolError> {
    if args.field.is_empty() {
        return Err(READ_RECORD_FIELD.invalid_argument("field", "it is empty"));
    }
    // Clients in strict mode send every number, so 0 means absent.
    let offset_chars = args.offset_chars.filter(|offset| *offset > 0);
    for (name, chars) in [("before_chars", args.before_chars), ("after_chars", args.after_chars)] {
        if chars.is_some_and(|chars| chars > 0) && args.q.is_none() {
            return Err(READ_RECORD_FIELD.invalid_argument(name, "it only goes with `q`"));
        }
    }
    let unit = args.unit;
    let character_arguments = [
        ("offset_chars", offset_chars.is_some()),
        ("limit_chars", args.limit_chars.is_some()),
        ("q", args.q.is_some()),
    ];
    if let (Unit::Chunk, Some((name, _))) = (unit, character_arguments.into_iter().find(|(_, given)| *given))
    {
        return Err(READ_RECORD_FIELD
            .invalid_argument(name, "it does not go with `unit` \"chunk\", which continues by `cursor`"));
    }
    if unit == Unit::Chars && args.cursor.is_some() {
        return Err(READ_RECORD_FIELD.invalid_argument("cursor", "it only goes with `unit` \"chunk\""));
    }
    let start = match args.q {
        Some(_) if offset_chars.is_some() => {
            return Err(READ_RECORD_FIELD.invalid_argument("q", "it does not go with `offset_chars`"));
        }
        Some(text) if text.chars().nth(MAX_QUERY_CHARS).is_some() => {
            return Err(READ_RECORD_FIELD
                .invalid_argument("q", format!("it is longer than {MAX_QUERY_CHARS} characters")));
        }
        Some(text) => {
            // With a limit, the window has that length, with the match in its middle.
            let context = args.limit_chars.unwrap_or(DEFAULT_CONTEXT);
            WindowStart::Around {
                text,
                before: args.before_chars.unwrap_or(context),
                after: args.after_chars.unwrap_or(context),
            }
        }
        None => WindowStart::Offset(offset_chars.unwrap_or(0)),
    };
    let default = if matches!(start, WindowStart::Around { .. }) { MAX_LIMIT } else { DEFAULT_LIMIT };
    let limit_chars = args.limit_chars.unwrap_or(default);
    let (id, RecordReference { named, address, .. }) =
        find_record(args.id, args.stream, args.record_id, args.connection_id)?;
    if unit == Unit::Chunk {
        let (field, cursor, source) = (args.field, args.cursor, args.source);
        let piece = PieceRequest::Chunk(ChunkRequest { address, field, cursor, source });
        return Ok(Request { named, piece });
    }
    let query = WindowQuery { address, field: args.field, start, limit_chars };
    let step = args.limit_chars.unwrap_or(DEFAULT_LIMIT);
    let piece = PieceRequest::Window(WindowRequest { id, source: args.source, query, step });
    Ok(Request { named, piece })
}

/// Returns the id of the record and its reference. A handle, or stream and key, name the record.
fn find_record(
    id: Option<String>,
    stream: Option<StreamName>,
    record: Option<RecordId>,
    connection: Option<ConnectionId>,
) -> Result<(String, RecordReference), ToolError> {
    match (id, stream, record) {
        (Some(id), None, None) => {
            let reference = named_record(&id, connection)?;
            if reference.part.is_some() {
                let problem = "it names a part of a document; leave the part out";
                return Err(READ_RECORD_FIELD.invalid_argument("id", problem));
            }
            Ok((id, reference))
        }
        (None, Some(stream), Some(record)) => {
            let named = RecordAddress { connection: None, stream, record };
            let address = RecordAddress { connection, ..named.clone() };
            let id = Handle::mint(&address).map(|handle| handle.to_string());
            Ok((id.unwrap_or_default(), RecordReference { named, address, part: None, version: None }))
        }
        (Some(_), _, _) => {
            Err(READ_RECORD_FIELD.invalid_argument("id", "it does not go with `stream` and `record_id`"))
        }
        (None, _, _) => Err(READ_RECORD_FIELD
            .invalid_argument("id", "it is missing, or `stream` and `record_id` in its place")),
    }
}
