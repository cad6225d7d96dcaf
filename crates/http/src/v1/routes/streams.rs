//! `GET /v1/streams` and `GET /v1/streams/{stream}`: all streams, and the metadata of one.

use fetchwell_core::handle::StreamName;
use fetchwell_core::record::ConnectionSchema;
use fetchwell_source::{StreamAnswer, StreamQuery};
use schemars::JsonSchema;
use serde::Serialize;

use super::schema::metadata::{Freshness, StreamMetadata};
use crate::error::RequestError;
use crate::v1::envelope::{Answer, Call, Links, ListLinks, Meta};
use crate::v1::operation::Operation;
use crate::v1::table::{CONNECTION, CONNECTION_ALIAS};

pub(crate) const LIST: Operation = Operation {
    path: "/v1/streams",
    id: "listStreams",
    summary: "A row for each stream of each connection",
    parameters: &[CONNECTION, CONNECTION_ALIAS],
    statuses: &[400, 404],
    answer: |generator| generator.subschema_for::<StreamList>(),
};

pub(crate) const ONE: Operation = Operation {
    path: "/v1/streams/{stream}",
    id: "getStream",
    summary: "How a stream can be queried, over every connection that has it",
    parameters: &[CONNECTION, CONNECTION_ALIAS],
    statuses: &[400, 404],
    answer: |generator| generator.subschema_for::<StreamObject>(),
};

/// All streams of all connections.
#[derive(Debug, Serialize, JsonSchema)]
struct StreamList {
    #[schemars(extend("const" = "list"))]
    object: &'static str,
    data: Vec<StreamRow>,
    has_more: bool,
    links: ListLinks,
    meta: Meta,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StreamRow {
    #[schemars(extend("const" = "stream"))]
    object: &'static str,
    name: String,
    record_count: Option<u64>,
    last_updated: Option<String>,
    connection_id: String,
    connector_instance_id: String,
    display_name: Option<String>,
    freshness: Freshness,
}

/// A stream by itself.
#[derive(Debug, Serialize, JsonSchema)]
struct StreamObject {
    #[serde(flatten)]
    stream: StreamMetadata,
    links: Links,
    meta: Meta,
}

pub(crate) async fn list(call: &mut Call<'_>) -> Result<Answer, RequestError> {
    let connections = super::schema::asked_connections(call).await?;
    let data = rows(&connections);
    let items = data.len();
    let answer = Answer::new(&StreamList {
        object: "list",
        data,
        has_more: false,
        links: call.list_links(None),
        meta: call.meta(),
    })?;
    Ok(answer.with_items(items))
}

/// Returns the rows with those of one stream together, in the order in which streams first occur.
fn rows(connections: &[ConnectionSchema]) -> Vec<StreamRow> {
    let mut rows: Vec<StreamRow> = Vec::new();
    for connection in connections {
        for stream in &connection.streams {
            let row = StreamRow {
                object: "stream",
                name: stream.name.to_string(),
                record_count: stream.record_count,
                last_updated: None,
                connection_id: connection.connection_id.to_string(),
                connector_instance_id: connection.connection_id.to_string(),
                display_name: connection.display_name.clone(),
                freshness: Freshness::UNKNOWN,
            };
            let after = rows.iter().rposition(|before| before.name == row.name).map(|last| last + 1);
            rows.insert(after.unwrap_or(rows.len()), row);
        }
    }
    rows
}

pub(crate) async fn one(call: &mut Call<'_>, stream: StreamName) -> Result<Answer, RequestError> {
    let query = StreamQuery { stream, connection: call.parameters.connection()? };
    let StreamAnswer { details, unavailable } = call.source.stream(&query).await?;
    call.warn_unavailable(&unavailable);
    Answer::new(&StreamObject {
        stream: StreamMetadata::new(query.stream.as_str(), &details, &[]),
        links: call.links(),
        meta: call.meta(),
    })
}
