//! Single records.

use serde_json::Value;
use url::Url;

use super::{parse, wrong_shape};
use crate::handle::RecordAddress;
use crate::record::{Record, RecordData, short_connector_key};
use crate::source::SourceError;

/// One record, bare or wrapped in `data`, with its fields under `data` or beside its name.
pub(in super::super) fn record(body: &[u8], asked: &RecordAddress, url: Url) -> Result<Record, SourceError> {
    let body: RecordData = parse(body)?;
    let names_a_record = |body: &RecordData| {
        ["id", "record_key", "recordKey", "record_id", "stream"].iter().any(|name| body.contains_key(*name))
    };
    let mut body = match body.get("data") {
        Some(Value::Object(inner)) if !names_a_record(&body) && names_a_record(inner) => inner.clone(),
        _ => body,
    };
    let text = |names: &[&str]| names.iter().find_map(|name| body.get(*name)?.as_str()).map(str::to_owned);
    let connection = text(&["connection_id", "connectionId", "connector_instance_id", "connectorInstanceId"]);
    let emitted_at = text(&["emitted_at", "emittedAt"]);
    let connector_key = text(&["connector_key", "connectorKey", "connector_id", "connectorId"])
        .map(|key| short_connector_key(&key).to_owned());
    let display_name = text(&["display_name", "displayName"]);
    let data = match body.remove("data") {
        Some(Value::Object(data)) => data,
        _ if names_a_record(&body) => {
            body.retain(|name, _| !ENVELOPE_FIELDS.contains(&name.as_str()));
            body
        }
        _ => return Err(wrong_shape("record")),
    };
    let connection = asked.connection.clone().or(connection.and_then(|id| id.parse().ok()));
    Ok(Record {
        address: RecordAddress { connection, ..asked.clone() },
        data,
        emitted_at,
        connector_key,
        display_name,
        record_url: Some(url.into()),
        expanded: Vec::new(),
    })
}

/// Fields of a record without `data` that are about the record and not of it.
const ENVELOPE_FIELDS: [&str; 8] = [
    "object",
    "stream",
    "connection_id",
    "connector_instance_id",
    "display_name",
    "emitted_at",
    "links",
    "meta",
];
