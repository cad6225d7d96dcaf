//! Rebuilds errors behind an allow-list from the visible schema. Pure.
//!
//! The message, hint and choices of a record server's error are its own text and may name hidden connections and
//! streams. Only the HTTP status and known codes of the contract are kept. The names in the rebuilt error come from
//! the call and the visible schema.

use fetchwell_core::handle::{ConnectionId, RecordAddress, StreamName};
use fetchwell_core::record::{ConnectionSchema, Schema};

use crate::unknown_place::unknown_place;
use crate::{ConnectionChoice, QueryFault, Refusal, SourceError};

/// Code of an error that a tool of an MCP server reports.
const TOOL_ERROR: &str = "tool_error";

/// Codes of the contract that are kept. An unknown code could contain a name.
const CODES: [&str; 28] = [
    "ambiguous_schema_detail",
    "connector_instance_busy",
    "cursor_expired",
    "field_not_found",
    "field_not_granted",
    "field_not_text",
    "grant_consumed",
    "grant_expired",
    "grant_invalid",
    "grant_revoked",
    "insufficient_scope",
    "invalid_argument",
    "invalid_cursor",
    "invalid_expand",
    "invalid_field_path",
    "invalid_filter",
    "invalid_request",
    "invalid_sort",
    "invalid_window",
    "not_found",
    "not_supported",
    "query_not_found",
    "resource_limit",
    "semantic_retrieval_unavailable",
    TOOL_ERROR,
    "unknown_field",
    "internal_error",
    "api_error",
];

/// Parameters of calls that are kept. The server may add a name in brackets.
const PARAMETERS: [&str; 25] = [
    "after_chars",
    "before_chars",
    "changes_since",
    "connection_id",
    "count",
    "cursor",
    "expand",
    "expand_limit",
    "field",
    "fields",
    "filter",
    "granularity",
    "group_by",
    "group_by_time",
    "limit",
    "limit_chars",
    "metric",
    "offset_chars",
    "order",
    "q",
    "sort",
    "stream",
    "streams",
    "time_zone",
    "view",
];

/// Connection, streams and record that a call is about.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallSubject<'a> {
    /// Connection that the call names.
    pub(super) connection: Option<&'a ConnectionId>,
    /// Streams that the call names, all of them on the allow-list.
    pub(super) streams: &'a [StreamName],
    /// Record that the call names.
    pub(super) record: Option<&'a RecordAddress>,
}

impl<'a> CallSubject<'a> {
    /// Creates the subject of a call about a record.
    pub(super) fn from_record(record: &'a RecordAddress) -> Self {
        let streams = std::slice::from_ref(&record.stream);
        Self { connection: record.connection.as_ref(), streams, record: Some(record) }
    }
}

/// Returns true if an error is about a connection or stream. It is then rebuilt from a newly read schema, because the
/// source may have lost a stream that the cached one has.
pub(super) fn is_about_a_place(error: &SourceError) -> bool {
    match error {
        SourceError::Refused(refusal) => refusal.is_about_a_place(),
        SourceError::InvalidQuery { fault: QueryFault::UnknownStream, .. }
        | SourceError::ConnectionNotFound { .. } => true,
        SourceError::FromSource { error, .. } => is_about_a_place(error),
        _ => false,
    }
}

/// Rebuilds an error of a source from the visible schema.
pub(super) fn rebuild(error: SourceError, schema: &Schema, subject: CallSubject<'_>) -> SourceError {
    if is_about_a_place(&error) {
        return unknown(schema, subject);
    }
    match error {
        SourceError::Refused(refusal) => rebuild_refusal(*refusal, schema, subject),
        SourceError::AmbiguousConnection { choices, .. } => choose(schema, subject, &choices),
        SourceError::NotFound { .. } => not_found(subject),
        SourceError::FromSource { source_name, error } => {
            SourceError::FromSource { source_name, error: Box::new(rebuild(*error, schema, subject)) }
        }
        // All other errors contain only our own text about the streams that the call names.
        other => other,
    }
}

/// Returns the error of a record that does not exist.
pub(super) fn no_record(address: &RecordAddress) -> SourceError {
    SourceError::NotFound {
        what: format!("there is no record `{}` in stream `{}`", address.record, address.stream),
    }
}

fn not_found(subject: CallSubject<'_>) -> SourceError {
    match subject.record {
        Some(address) => no_record(address),
        None => SourceError::NotFound { what: "the source does not have what was asked for".to_owned() },
    }
}

/// Returns the error of the first stream or connection that is not visible.
fn unknown(schema: &Schema, subject: CallSubject<'_>) -> SourceError {
    let of = |stream| unknown_place(schema, subject.connection, Some(stream));
    let mut unknown = subject.streams.iter().filter_map(of);
    unknown.next().or_else(|| unknown_place(schema, subject.connection, None)).unwrap_or_else(|| {
        // The source contradicts its own schema. The condition may be temporary.
        SourceError::Unreachable { problem: "it does not have what its schema says".to_owned() }
    })
}

fn rebuild_refusal(refusal: Refusal, schema: &Schema, subject: CallSubject<'_>) -> SourceError {
    let Refusal { status, code, param, choices, fault, advice, .. } = refusal;
    match (status, code.as_str()) {
        (_, "ambiguous_connection") => return choose(schema, subject, &choices),
        (404, "not_found" | "http_404") if subject.record.is_some() => return not_found(subject),
        _ => {}
    }
    let known = CODES.into_iter().find(|known| *known == code);
    let message = match known {
        // It has no status.
        Some(TOOL_ERROR) => "the tool of the MCP server reports an error".to_owned(),
        Some(code) => format!("the record server refuses the call with HTTP {status} (`{code}`)"),
        None => format!("the record server answers HTTP {status}"),
    };
    let param = param.and_then(|param| {
        let name = param.split('[').next().unwrap_or_default();
        PARAMETERS.into_iter().find(|known| *known == name)
    });
    SourceError::Refused(Box::new(Refusal {
        status,
        code: known.map_or_else(|| format!("http_{status}"), str::to_owned),
        message,
        hint: None,
        param: param.map(str::to_owned),
        choices: Vec::new(),
        // Only our own advice is kept, and the fault only together with it.
        fault: fault.filter(|_| advice.is_some()),
        advice,
    }))
}

/// Returns an error that offers the visible connections: those that the source offered, or otherwise all of them.
fn choose(schema: &Schema, subject: CallSubject<'_>, offered: &[ConnectionChoice]) -> SourceError {
    let has_streams = |connection: &&ConnectionSchema| {
        subject.streams.iter().all(|stream| connection.streams.iter().any(|known| known.name == *stream))
    };
    let visible: Vec<&ConnectionSchema> = schema.connections.iter().filter(has_streams).collect();
    let is_offered = |connection: &&&ConnectionSchema| {
        offered.iter().any(|choice| choice.connection_id == connection.connection_id)
    };
    let mut choices: Vec<ConnectionChoice> =
        visible.iter().filter(is_offered).map(|known| ConnectionChoice::from(*known)).collect();
    if choices.is_empty() {
        choices = visible.into_iter().map(ConnectionChoice::from).collect();
    }
    let what = match subject.record {
        Some(address) => format!("record `{}` of stream `{}`", address.record, address.stream),
        None => "what was asked for".to_owned(),
    };
    SourceError::AmbiguousConnection { what, choices }
}
