//! Parser of single records, alone or in lists.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fetchwell_core::handle::{ConnectionId, RecordAddress, StreamName};
use fetchwell_core::record::{ExpandedRelation, Record, RecordData, short_connector_key};
use fetchwell_source::{Change, SourceError};
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use super::members::Members;
use super::tolerant::{Lookup, member, text};
use super::{parse, wrong_shape};

/// Parses a record, bare or wrapped in `data`, with its fields under `data` or beside its name.
pub fn record(body: &[u8], asked: &RecordAddress, url: Url) -> Result<Record, SourceError> {
    let body: RecordData = parse(body)?;
    let names_a_record = |body: &RecordData| body.contains_key("stream") || member(body, &KEY).is_some();
    let body = match body.get("data") {
        Some(Value::Object(inner)) if !names_a_record(&body) && names_a_record(inner) => inner.clone(),
        _ => body,
    };
    if !body.get("data").is_some_and(Value::is_object) && !names_a_record(&body) {
        return Err(wrong_shape("record"));
    }
    let connection = text(&body, &CONNECTION).and_then(|id| id.parse().ok());
    let connection = asked.connection.clone().or(connection);
    let address = RecordAddress { connection, ..asked.clone() };
    Ok(Record { record_url: Some(url.into()), ..at_address(body.into(), address) })
}

/// Returns true if a response, of a record or of a path below it, is about this record.
pub fn names(body: &[u8], address: &RecordAddress) -> bool {
    let Some(body) = naming_members(body) else { return false };
    let key = |body: &RecordData| match member(body, &KEY)? {
        Value::String(key) => Some(key.clone()),
        Value::Number(key) => Some(key.to_string()),
        _ => None,
    };
    let inner = || naming_members(body.get("data")?.as_str()?.as_bytes());
    let named = &if key(&body).is_none() { inner().unwrap_or(body) } else { body };
    let stream = text(named, &STREAM);
    key(named).as_deref() == Some(address.record.as_str())
        && stream.is_none_or(|stream| stream == address.stream.as_str())
}

/// Returns the members of a body that name a record, and the text of its `data`. Other values are skipped.
fn naming_members(body: &[u8]) -> Option<RecordData> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(body).ok()?;
    let value = |(name, raw): (Cow<'_, str>, &RawValue)| {
        let value = match &*name {
            "data" => Value::from(raw.get()),
            name if KEY.contains(&name) || STREAM.contains(&name) => serde_json::from_str(raw.get()).ok()?,
            _ => return None,
        };
        Some((name.into_owned(), value))
    };
    Some(members.into_iter().filter_map(value).collect())
}

/// Parses an item of a list: a record or a tombstone. Returns `None` for an item without a usable name.
///
/// The item's own stream and connection count; `stream` and `connection` are what was asked.
pub(super) fn item(
    body: Members,
    stream: Option<&StreamName>,
    connection: Option<&ConnectionId>,
) -> Option<Change> {
    let own_stream = text(&body, &STREAM).map(str::parse).transpose().ok()?;
    let own_connection = text(&body, &CONNECTION).map(str::parse).transpose().ok()?;
    let key = match member(&body, &KEY)? {
        Value::String(key) => key.parse().ok()?,
        Value::Number(key) => key.to_string().parse().ok()?,
        _ => return None,
    };
    let address = RecordAddress {
        connection: own_connection.or_else(|| connection.cloned()),
        stream: own_stream.or_else(|| stream.cloned())?,
        record: key,
    };
    if is_gone(&body) {
        let deleted_at = text(&body, &["deleted_at", "deletedAt"]).map(str::to_owned);
        return Some(Change::Deleted { address, deleted_at });
    }
    Some(Change::Present(Box::new(at_address(body, address))))
}

/// Returns true for a tombstone. A record without `data` may have a field named `deleted`; a tombstone has no other
/// fields.
fn is_gone(body: &Members) -> bool {
    let about_it =
        |name: &str| ENVELOPE_FIELDS.contains(&name) || KEY.contains(&name) || name.starts_with("deleted");
    body.get("deleted") == Some(&Value::Bool(true)) && (body.contains("data") || body.all_names(about_it))
}

fn at_address(mut body: Members, address: RecordAddress) -> Record {
    let own = |names: &[&str]| text(&body, names).map(str::to_owned);
    let emitted_at = own(&["emitted_at", "emittedAt"]);
    let display_name = own(&["display_name", "displayName"]);
    let connector_key = text(&body, &["connector_key", "connectorKey", "connector_id", "connectorId"])
        .map(|key| short_connector_key(key).to_owned());
    let expanded = match body.remove("expanded") {
        Some(Value::Object(relations)) => {
            relations.into_iter().filter_map(|(name, found)| expansion(name, found, &address)).collect()
        }
        _ => Vec::new(),
    };
    let data = match body.remove("data") {
        Some(Value::Object(data)) => data,
        _ => body.into_fields(|name| !ENVELOPE_FIELDS.contains(&name)),
    };
    Record { emitted_at, connector_key, display_name, expanded, ..Record::new(address, data) }
}

/// Parses the value of a relation: a list, a list in an object with `has_more`, one record, or `null`.
fn expansion(relation: String, found: Value, parent: &RecordAddress) -> Option<ExpandedRelation> {
    let has_more = |body: &RecordData| member(body, &["has_more", "hasMore"]) == Some(&Value::Bool(true));
    let (many, has_more, items) = match found {
        Value::Array(items) => (true, false, items),
        Value::Object(mut body) => match body.remove("data") {
            Some(Value::Array(items)) => (true, has_more(&body), items),
            data => {
                body.extend(data.map(|data| ("data".to_owned(), data)));
                (false, false, vec![Value::Object(body)])
            }
        },
        Value::Null => (false, false, Vec::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    let present = |change| match change {
        Change::Present(record) => Some(*record),
        Change::Deleted { .. } => None,
    };
    let read = |value| match value {
        Value::Object(body) => item(body.into(), None, parent.connection.as_ref()).and_then(present),
        _ => None,
    };
    Some(ExpandedRelation { relation, many, has_more, records: items.into_iter().filter_map(read).collect() })
}

const STREAM: [&str; 3] = ["stream", "stream_name", "streamName"];

const KEY: [&str; 5] = ["record_key", "recordKey", "record_id", "recordId", "id"];

const CONNECTION: [&str; 4] =
    ["connection_id", "connectionId", "connector_instance_id", "connectorInstanceId"];

/// Fields of a record without `data` that describe the record and are not part of it.
const ENVELOPE_FIELDS: [&str; 18] = [
    "object",
    "stream",
    "connection_id",
    "connectionId",
    "connector_instance_id",
    "connectorInstanceId",
    "connector_key",
    "connectorKey",
    "display_name",
    "displayName",
    "emitted_at",
    "emittedAt",
    "record_key",
    "recordKey",
    "record_json_bytes",
    "expanded",
    "links",
    "meta",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::members::Item;
    use super::super::tolerant::Any;
    use super::*;

    fn read(value: Value) -> Option<Change> {
        let (stream, connection) = ("mail".parse().unwrap(), "asked".parse().unwrap());
        let members = serde_json::from_value::<Any<Item>>(value).unwrap().0.0?;
        item(members, Some(&stream), Some(&connection))
    }

    #[track_caller]
    fn check(value: Value, address: &str, data: &Value) {
        let Some(Change::Present(record)) = read(value) else { panic!("no record") };
        let RecordAddress { connection, stream, record: key } = &record.address;
        assert_eq!(format!("{}/{stream}:{key}", connection.as_ref().unwrap()), address);
        assert_eq!(Value::Object(record.data), *data);
    }

    #[test]
    fn items_have_their_fields_under_data_or_beside_their_name() {
        check(json!({"id": "m1", "data": {"a": 1}, "emitted_at": "t"}), "asked/mail:m1", &json!({"a": 1}));
        check(
            json!({"object": "record", "id": "m1", "a": 1, "connection_id": "c", "emitted_at": "t", "metadata": {}}),
            "c/mail:m1",
            &json!({"id": "m1", "a": 1, "metadata": {}}),
        );
        check(
            json!({"recordKey": 7, "stream": "notes", "connectionId": "c", "data": {"id": "x"}}),
            "c/notes:7",
            &json!({"id": "x"}),
        );
        check(
            json!({"id": "m1", "stream": 7, "connection_id": null, "data": {}}),
            "asked/mail:m1",
            &json!({}),
        );
    }

    #[test]
    fn what_no_handle_can_name_is_left_out() {
        for value in [
            json!({"data": {"a": 1}}),
            json!({"id": ".."}),
            json!({"id": ""}),
            json!({"id": {}}),
            json!({"id": "m1", "stream": "a/../b"}),
            json!({"id": "m1", "connection_id": "."}),
            json!("m1"),
            json!(null),
        ] {
            assert_eq!(read(value.clone()), None, "{value}");
        }
    }

    #[test]
    fn a_tombstone_is_no_record_with_a_field_called_deleted() {
        for (value, gone) in [
            (json!({"id": "m1", "deleted": true, "deleted_at": "t"}), true),
            (json!({"id": "m1", "deleted": true, "stream": "mail", "data": null}), true),
            (json!({"id": "m1", "deleted": true, "text": "a flat record"}), false),
            (json!({"id": "m1", "deleted": false, "data": {}}), false),
        ] {
            assert_eq!(matches!(read(value.clone()), Some(Change::Deleted { .. })), gone, "{value}");
        }
    }

    #[test]
    fn relations_come_as_lists_or_alone() {
        let file = json!({"id": "f1", "stream": "files", "data": {"n": 1}});
        let value = json!({"id": "m1", "data": {}, "expanded": {
            "files": {"object": "list", "data": [file, 7], "has_more": true},
            "plain": [file],
            "author": {"id": "p1", "stream": "people", "data": {"name": "Ann"}},
            "nobody": null,
            "strange": 7,
        }});
        let Some(Change::Present(record)) = read(value) else { panic!("no record") };
        let shown: Vec<String> = record
            .expanded
            .iter()
            .map(|e| format!("{} {} {} {}", e.relation, e.many, e.records.len(), e.has_more))
            .collect();
        assert_eq!(
            shown,
            ["files true 1 true", "plain true 1 false", "author false 1 false", "nobody false 0 false"]
        );
        // Related records belong to the same connection.
        let related = &record.expanded[0].records[0].address;
        assert_eq!(related.connection, record.address.connection);
        assert_eq!(related.stream.as_str(), "files");
    }
}
