//! `GET /v1/streams/{stream}/records/{id}`: one record.

use fetchwell_core::handle::{RecordAddress, RecordId, StreamName};
use fetchwell_source::RecordQuery;
use schemars::JsonSchema;
use serde::Serialize;

use super::records::expansions;
use super::rows::RecordRow;
use crate::error::RequestError;
use crate::v1::envelope::{Answer, Call, Links, Meta};
use crate::v1::operation::Operation;
use crate::v1::table::{CONNECTION, CONNECTION_ALIAS, EXPAND, EXPAND_LIMIT, FIELDS};

pub(crate) const OPERATION: Operation = Operation {
    path: "/v1/streams/{stream}/records/{id}",
    id: "getRecord",
    summary: "One record, by its canonical key, percent-encoded as one path segment",
    parameters: &[FIELDS, EXPAND, EXPAND_LIMIT, CONNECTION, CONNECTION_ALIAS],
    statuses: &[400, 404, 409],
    answer: |generator| generator.subschema_for::<RecordObject>(),
};

/// A record by itself.
#[derive(Debug, Serialize, JsonSchema)]
struct RecordObject {
    #[serde(flatten)]
    row: RecordRow,
    connector_key: Option<String>,
    /// Length of `data` as compact JSON, in bytes.
    record_json_bytes: usize,
    links: Links,
    meta: Meta,
}

pub(crate) async fn answer(
    call: &mut Call<'_>,
    stream: StreamName,
    record: RecordId,
) -> Result<Answer, RequestError> {
    let connection = call.parameters.connection()?;
    let query = RecordQuery {
        address: RecordAddress { connection, stream, record },
        fields: call.parameters.names(FIELDS.name)?,
        expand: expansions(&call.parameters)?,
    };
    let mut record = call.source.record(&query).await?;
    Answer::new(&RecordObject {
        record_json_bytes: serde_json::to_string(&record.data).map_or(0, |json| json.len()),
        connector_key: record.connector_key.take(),
        row: RecordRow::new(record),
        links: call.links(),
        meta: call.meta(),
    })
}
