//! What a stream can be asked: the full description where the server gives it, else the compact one.

use super::params::Params;
use super::transport::parsed;
use super::{Pdpp, wire};
use crate::handle::{ConnectionId, StreamName};
use crate::record::{ConnectionSchema, Schema, StreamDetail};
use crate::source::unknown_place::there_are;
use crate::source::{ConnectionChoice, ProtocolFault, QueryFault, Source, SourceError, StreamQuery};

/// One description for each connection that has the stream, at least one.
pub(super) async fn stream(pdpp: &Pdpp, query: &StreamQuery) -> Result<Vec<StreamDetail>, SourceError> {
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
        return Err(unknown_stream(pdpp, &query.stream, asked).await);
    }
    Ok(details)
}

/// The stream as a compact schema has it; `None` when it is not there.
pub(super) async fn compact(
    pdpp: &Pdpp,
    stream: &StreamName,
    connection: Option<&ConnectionId>,
) -> Result<Option<Vec<StreamDetail>>, SourceError> {
    let params = Params::default().and("view", "compact").and("stream", stream).connection(connection);
    let reply = pdpp.transport.get_metadata("/v1/schema", &params).await?;
    let stream = stream.clone();
    parsed(reply.body, move |body| wire::stream(body, &stream)).await
}

/// The stream with all that its connector declares; nothing from a server that does not tell it.
async fn full(
    pdpp: &Pdpp,
    stream: &StreamName,
    connection: &ConnectionId,
) -> Result<Vec<StreamDetail>, SourceError> {
    let params = Params::default().and("detail", "full").and("stream", stream).connection(Some(connection));
    let reply = pdpp.transport.get_metadata("/v1/schema", &params).await;
    let details = match reply {
        Ok(reply) => {
            let stream = stream.clone();
            parsed(reply.body, move |body| wire::stream(body, &stream)).await
        }
        Err(error) => Err(error),
    };
    match details {
        Ok(details) => Ok(details.unwrap_or_default()),
        Err(SourceError::Refused(_) | SourceError::FixServer(ProtocolFault::WrongShape { .. })) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// How a stream's records are ordered, and what a view of it shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ordering {
    /// The field, if it is known and can be read.
    pub(super) by: Option<String>,
    /// The fields of the view.
    pub(super) view: Option<Vec<String>>,
}

/// What has to be known of a stream to merge its records, as far as the server tells it.
pub(super) async fn ordering(
    pdpp: &Pdpp,
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
    let told = full(pdpp, &known.name, &known.connection_id).await?.first().map(of).unwrap_or_default();
    Ok(Ordering { by: known_ordering.by.or(told.by), view: known_ordering.view.or(told.view) })
}

/// Why there is no such stream, with the streams there are.
pub(super) async fn unknown_stream(
    pdpp: &Pdpp,
    stream: &StreamName,
    connection: Option<&ConnectionId>,
) -> SourceError {
    let schema = match pdpp.schema().await {
        Ok(schema) => schema,
        Err(error) => return error,
    };
    if let Some(asked) =
        connection.filter(|asked| schema.connections.iter().all(|c| c.connection_id != **asked))
    {
        let choices = schema.connections.iter().map(ConnectionChoice::from).collect();
        return SourceError::UseKnownConnection { asked: asked.to_string(), choices };
    }
    let place = connection.map_or_else(String::new, |connection| format!(" in connection `{connection}`"));
    SourceError::CorrectQuery {
        fault: QueryFault::UnknownStream,
        problem: format!("there is no stream `{stream}`{place}"),
        hint: streams_of(&schema, connection),
    }
}

fn streams_of(schema: &Schema, connection: Option<&ConnectionId>) -> String {
    let mut names: Vec<&str> = Vec::new();
    let is_asked = |of: &&ConnectionSchema| connection.is_none_or(|asked| *asked == of.connection_id);
    for stream in schema.connections.iter().filter(is_asked).flat_map(|connection| &connection.streams) {
        if !names.contains(&stream.name.as_str()) {
            names.push(stream.name.as_str());
        }
    }
    there_are(&names).unwrap_or_else(|| "The grant covers no stream; connect with a wider one.".to_owned())
}
