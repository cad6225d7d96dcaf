//! `GET /v1/schema`: connectors, their streams and the capabilities of fields, complete or compact.
//!
//! * `connector`: connectors with their streams
//! * `metadata`: streams with their connections and fields
//! * `capabilities`: what fields can be asked for
//! * `http_route`: paths of the connectors' own APIs

mod capabilities;
mod connector;
mod http_route;
pub(crate) mod metadata;

use axum::http::StatusCode;
use fetchwell_core::handle::StreamName;
use fetchwell_core::record::{ConnectionSchema, Schema, StreamDetail};
use fetchwell_source::{ConnectionChoice, QueryFault, SourceError, StreamQuery};
use schemars::JsonSchema;
use serde::Serialize;

use self::connector::Connector;
use crate::error::{OfferedConnection, RequestError};
use crate::v1::envelope::{Answer, Call, Links, Meta};
use crate::v1::operation::Operation;
use crate::v1::table::{CONNECTION, CONNECTION_ALIAS, Parameter, ParameterType};

pub(crate) const OPERATION: Operation = Operation {
    path: "/v1/schema",
    id: "getSchema",
    summary: "Connectors, their streams, and how each field can be queried",
    parameters: &[
        Parameter {
            name: "view",
            takes: ParameterType::Text,
            about: "`compact` returns a line for each field; any other value returns the complete schema.",
        },
        Parameter {
            name: "detail",
            takes: ParameterType::Choice(&["full"]),
            about: "`full` returns one stream of one connection; needs `stream`, and `connection_id` if several connections have it.",
        },
        Parameter {
            name: "stream",
            takes: ParameterType::Text,
            about: "Only this stream; for an unknown stream, the list of connectors is empty.",
        },
        CONNECTION,
        CONNECTION_ALIAS,
    ],
    statuses: &[400, 404, 409],
    answer: |generator| generator.subschema_for::<SchemaObject>(),
};

/// Connectors with their streams.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Schema")]
struct SchemaObject {
    #[schemars(extend("const" = "schema"))]
    object: &'static str,
    /// Set to `compact` with `view=compact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("const" = "compact"))]
    detail: Option<&'static str>,
    bearer: Bearer,
    connectors: Vec<Connector>,
    connector_count: usize,
    stream_count: usize,
    links: Links,
    meta: Meta,
}

/// Description of the caller. Requests from this machine carry no token.
#[derive(Debug, Serialize, JsonSchema)]
struct Bearer {
    #[schemars(extend("const" = "local"))]
    scope: &'static str,
    #[schemars(extend("const" = "none"))]
    token_kind: &'static str,
}

pub(crate) async fn answer(call: &mut Call<'_>) -> Result<Answer, RequestError> {
    let all = call.parameters.text("detail").is_some();
    let compact = !all && call.parameters.text("view") == Some("compact");
    let asked = call.parameters.text("stream").map(str::to_owned);
    if all && asked.is_none() {
        let problem =
            "detail=full needs `stream`; view=compact without it lists the streams there are".to_owned();
        return Err(RequestError::request(problem).about("detail"));
    }
    let mut known = asked_connections(call).await?;
    for connection in &mut known {
        let is_asked = |name: &StreamName| asked.as_deref().is_none_or(|asked| asked == name.as_str());
        connection.streams.retain(|stream| is_asked(&stream.name));
        connection.routes.retain(|route| is_asked(&route.stream));
    }
    known.retain(|connection| !connection.streams.is_empty());
    if all && known.len() > 1 {
        return Err(ambiguous_detail(&known));
    }
    let mut connectors = Vec::new();
    for (key, connections) in by_connector(&known) {
        let details = streams_of(call, &connections).await?;
        connectors.push(if compact {
            Connector::compact(key, &details, &connections)
        } else {
            Connector::full(key, &details, &connections)
        });
    }
    Answer::new(&SchemaObject {
        object: "schema",
        detail: compact.then_some("compact"),
        bearer: Bearer { scope: "local", token_kind: "none" },
        connector_count: connectors.len(),
        stream_count: connectors.iter().map(|connector| connector.stream_count).sum(),
        connectors,
        links: call.links(),
        meta: call.meta(),
    })
}

/// Returns all connections, or the requested one.
pub(crate) async fn asked_connections(call: &mut Call<'_>) -> Result<Vec<ConnectionSchema>, RequestError> {
    let asked = call.parameters.connection()?;
    let Schema { connections: mut known, unavailable } = call.source.schema().await?;
    call.warn_unavailable(&unavailable);
    let Some(asked) = asked else { return Ok(known) };
    let choices = known.iter().map(ConnectionChoice::from).collect();
    known.retain(|connection| connection.connection_id == asked);
    if known.is_empty() {
        return Err(SourceError::ConnectionNotFound { asked: asked.to_string(), choices }.into());
    }
    Ok(known)
}

fn ambiguous_detail(known: &[ConnectionSchema]) -> RequestError {
    let problem = "that stream is under more than one connection. Retry with `connection_id`.".to_owned();
    let offered = known.iter().map(|connection| OfferedConnection {
        connection_id: connection.connection_id.to_string(),
        display_name: connection.display_name.clone(),
        connector_key: connection.connector_key.clone(),
        stream: connection.streams.first().map(|stream| stream.name.to_string()),
    });
    RequestError::new(StatusCode::CONFLICT, "ambiguous_schema_detail", problem).offering(offered.collect())
}

/// Groups connections by connector, in the order in which connectors first occur.
fn by_connector(known: &[ConnectionSchema]) -> Vec<(&str, Vec<&ConnectionSchema>)> {
    let mut grouped: Vec<(&str, Vec<&ConnectionSchema>)> = Vec::new();
    for connection in known {
        let key = connection.connector_key.as_deref().unwrap_or("unknown");
        match grouped.iter_mut().find(|(before, _)| *before == key) {
            Some((_, connections)) => connections.push(connection),
            None => grouped.push((key, vec![connection])),
        }
    }
    grouped
}

/// Returns each stream of some connections, with the details from every connection that has it.
async fn streams_of(
    call: &Call<'_>,
    connections: &[&ConnectionSchema],
) -> Result<Vec<(StreamName, Vec<StreamDetail>)>, RequestError> {
    let mut described: Vec<(StreamName, Vec<StreamDetail>)> = Vec::new();
    for connection in connections {
        for stream in &connection.streams {
            let query = StreamQuery {
                stream: stream.name.clone(),
                connection: Some(connection.connection_id.clone()),
            };
            let details = match call.source.stream(&query).await {
                Ok(answer) => answer.details,
                // A source that cannot describe its streams still has them.
                Err(SourceError::InvalidQuery { fault: QueryFault::NotSupported, .. }) => {
                    vec![nameless(connection, &stream.name)]
                }
                Err(error) => return Err(error.into()),
            };
            match described.iter_mut().find(|(name, _)| *name == stream.name) {
                Some((_, before)) => before.extend(details),
                None => described.push((stream.name.clone(), details)),
            }
        }
    }
    Ok(described)
}

/// Creates the details of a stream of which only the name is known.
fn nameless(connection: &ConnectionSchema, name: &StreamName) -> StreamDetail {
    StreamDetail {
        name: name.clone(),
        connection_id: connection.connection_id.clone(),
        display_name: connection.display_name.clone(),
        connector_key: connection.connector_key.clone(),
        record_count: None,
        primary_key: Vec::new(),
        cursor_field: None,
        fields: Vec::new(),
        views: Vec::new(),
        relations: Vec::new(),
        declaration: None,
    }
}
