//! Schemas of streams: the full description if the server has it, otherwise the compact one.

use std::collections::HashSet;
use std::sync::Arc;

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::{Schema, StreamDetail};
use fetchwell_source::unknown_place::{unknown_place, unknown_stream};
use fetchwell_source::{ProtocolFault, SourceError, StreamQuery};

use super::client::Client;
use super::known::StreamKey;
use super::params::Params;
use super::transport::parsed;
use super::wire;

/// Returns the connections and the names of their streams, without counts.
pub(crate) async fn schema(pdpp: &Client<'_>) -> Result<Schema, SourceError> {
    let compact = Params::default().and("view", "compact");
    let grant = pdpp.requests.grant().await?;
    let reply = pdpp.requests.get_metadata("/v1/schema", &compact).await?;
    let schema = parsed(reply.body, |body| wire::schema(body, None)).await?;
    pdpp.known.keep_schema(grant, &schema);
    Ok(schema)
}

/// Returns one description for each connection that has the stream, at least one.
pub(crate) async fn stream(pdpp: &Client<'_>, query: &StreamQuery) -> Result<Vec<StreamDetail>, SourceError> {
    let asked = query.connection.as_ref();
    let is_asked = |detail: &StreamDetail| asked.is_none_or(|asked| *asked == detail.connection_id);
    let mut details = match asked {
        Some(connection) => full(pdpp, &query.stream, connection).await?,
        None => Vec::new(),
    };
    details.retain(is_asked);
    if details.is_empty() {
        details = compact(pdpp, &query.stream, asked).await?.unwrap_or_default();
        details.retain(is_asked);
    }
    if details.is_empty() {
        return Err(missing(pdpp, &query.stream, asked).await);
    }
    Ok(details)
}

/// Returns the stream as the compact schema describes it, or `None` if it is not there.
async fn compact(
    pdpp: &Client<'_>,
    stream: &StreamName,
    connection: Option<&ConnectionId>,
) -> Result<Option<Vec<StreamDetail>>, SourceError> {
    let params = Params::default().and("view", "compact").and("stream", stream).connection(connection);
    let reply = pdpp.requests.get_metadata("/v1/schema", &params).await?;
    let stream = stream.clone();
    parsed(reply.body, move |body| wire::stream(body, &stream)).await
}

/// Returns the stream with its declaration, or `None` from a server without full descriptions.
async fn full(
    pdpp: &Client<'_>,
    stream: &StreamName,
    connection: &ConnectionId,
) -> Result<Vec<StreamDetail>, SourceError> {
    let params = Params::default().and("detail", "full").and("stream", stream).connection(Some(connection));
    let reply = pdpp.requests.get_metadata("/v1/schema", &params).await;
    let details = match reply {
        Ok(reply) => {
            let stream = stream.clone();
            parsed(reply.body, move |body| wire::stream(body, &stream)).await
        }
        Err(error) => Err(error),
    };
    match details {
        Ok(details) => Ok(details.unwrap_or_default()),
        Err(error) if is_untold(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns true if the server has no full description or does not support `detail`. Any other refusal may be about
/// the call.
fn is_untold(error: &SourceError) -> bool {
    match error {
        SourceError::Refused(refusal) => {
            matches!(refusal.status, 404 | 405 | 501) || refusal.param.as_deref() == Some("detail")
        }
        other => matches!(other, SourceError::Protocol(ProtocolFault::WrongShape { .. })),
    }
}

/// Connections that have a stream.
#[derive(Debug)]
pub(crate) struct Holders {
    /// Their descriptions, or none on a server without a schema or without connection ids.
    pub(crate) details: Arc<Vec<StreamDetail>>,
    /// True if the descriptions came from the cache.
    pub(crate) is_kept: bool,
}

/// Returns the connections that have a stream, from the cache if possible.
pub(crate) async fn holders(pdpp: &Client<'_>, stream: &StreamName) -> Result<Holders, SourceError> {
    let key = StreamKey { grant: pdpp.requests.grant().await?, stream: stream.clone(), full_of: None };
    if let Some(details) = pdpp.known.stream(&key) {
        return Ok(Holders { details, is_kept: true });
    }
    let mut details = match compact(pdpp, stream, None).await {
        Ok(Some(details)) => details,
        Ok(None) => return Err(missing(pdpp, stream, None).await),
        Err(error) if is_untold(&error) => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut known = HashSet::new();
    details.retain(|detail| known.insert(detail.connection_id.clone()));
    // An empty list may be due to a failure, so it is not cached.
    let details = if details.is_empty() { Arc::default() } else { pdpp.known.keep_stream(key, details) };
    Ok(Holders { details, is_kept: false })
}

/// Returns the full description of a stream of one connection, from the cache if possible.
async fn lately_full(
    pdpp: &Client<'_>,
    stream: &StreamName,
    connection: &ConnectionId,
) -> Result<Arc<Vec<StreamDetail>>, SourceError> {
    let grant = pdpp.requests.grant().await?;
    let key = StreamKey { grant, stream: stream.clone(), full_of: Some(connection.clone()) };
    match pdpp.known.stream(&key) {
        Some(details) => Ok(details),
        None => Ok(pdpp.known.keep_stream(key, full(pdpp, stream, connection).await?)),
    }
}

/// Order of a stream's records, and the fields of a view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ordering {
    /// Field that orders the records, if it is known and readable.
    pub(crate) by: Option<String>,
    /// Fields of the view.
    pub(crate) view: Option<Vec<String>>,
}

/// Returns what is needed to merge the records of a stream, as far as the server tells it.
pub(crate) async fn ordering(
    pdpp: &Client<'_>,
    known: &StreamDetail,
    view: Option<&str>,
) -> Result<Ordering, SourceError> {
    let by =
        |detail: &StreamDetail| detail.cursor_field.clone().filter(|field| detail.field(field).is_some());
    let of = |detail: &StreamDetail| Ordering {
        by: by(detail),
        view: view.and_then(|name| detail.view_fields(name)),
    };
    let known_ordering = of(known);
    if known_ordering.by.is_some() && known_ordering.view.is_some() == view.is_some() {
        return Ok(known_ordering);
    }
    let full_ordering = lately_full(pdpp, &known.name, &known.connection_id).await?;
    let full_ordering = full_ordering.first().map(of).unwrap_or_default();
    Ok(Ordering {
        by: known_ordering.by.or(full_ordering.by),
        view: known_ordering.view.or(full_ordering.view),
    })
}

/// Returns the error that says which streams exist.
async fn missing(pdpp: &Client<'_>, stream: &StreamName, connection: Option<&ConnectionId>) -> SourceError {
    match schema(pdpp).await {
        Ok(schema) => unknown_place(&schema, connection, Some(stream)).unwrap_or_else(|| {
            // The server contradicts its own schema.
            let streams = schema.connections.iter().flat_map(|connection| &connection.streams);
            unknown_stream(stream, connection, streams.map(|stream| stream.name.as_str()).collect())
        }),
        Err(error) => error,
    }
}
