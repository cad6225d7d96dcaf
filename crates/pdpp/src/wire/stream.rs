//! Parser of the description of one stream in a compact or a full schema.

use std::sync::Arc;

use fetchwell_core::handle::StreamName;
use fetchwell_core::record::{
    FieldDetail, RecordData, Relation, RelationKind, StreamDetail, View, short_connector_key,
};
use fetchwell_source::SourceError;
use serde_json::Value;

use super::field::{field, role, types};
use super::schema::{WireConnection, choice};
use super::tolerant::{member, named, text, texts, whole};
use super::{parse, wrong_shape};

/// Parses a stream of a schema, once for each connection that has it. Returns `None` if the schema lacks it.
pub fn stream(body: &[u8], name: &StreamName) -> Result<Option<Vec<StreamDetail>>, SourceError> {
    let body: RecordData = parse(body)?;
    let connectors = body
        .get("connectors")
        .or_else(|| body.get("data")?.get("connectors"))
        .and_then(Value::as_array)
        .ok_or(wrong_shape("`connectors`"))?;
    let mut found = None;
    for connector in connectors.iter().filter_map(Value::as_object) {
        let streams = connector.get("streams").and_then(Value::as_array).into_iter().flatten();
        for body in streams.filter_map(Value::as_object) {
            if text(body, &["name"]) == Some(name.as_str()) {
                found.get_or_insert_with(Vec::new).extend(details(name, body, connector));
            }
        }
    }
    Ok(found)
}

fn details(name: &StreamName, body: &RecordData, connector: &RecordData) -> Vec<StreamDetail> {
    let key = text(connector, &["connector_key", "connectorKey", "connector_id", "connectorId"]);
    let granted = |body: &RecordData| match member(body, &["granted_connections", "grantedConnections"]) {
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    let own = granted(body);
    let granted = if own.is_empty() { granted(connector) } else { own };
    let connections = granted
        .into_iter()
        .filter_map(|item| serde_json::from_value::<WireConnection>(item).ok())
        .filter_map(|wire| choice(&wire));
    let is_full = body.contains_key("schema") || text(body, &["object"]) == Some("stream_metadata");
    let fields = fields(body);
    connections
        .map(|connection| StreamDetail {
            name: name.clone(),
            connection_id: connection.connection_id,
            display_name: connection.display_name,
            connector_key: key.map(|key| short_connector_key(key).to_owned()),
            record_count: whole(body, &["record_count", "recordCount"]),
            primary_key: texts(body, &["primary_key", "primaryKey"]),
            cursor_field: cursor_field(body),
            fields: fields.clone(),
            views: views(body),
            relations: relations(body),
            declaration: is_full.then(|| Arc::new(body.clone())),
        })
        .collect()
}

/// Returns the fields in the order of the schema's properties, then those that have capabilities but no property.
fn fields(body: &RecordData) -> Vec<FieldDetail> {
    let object = |value: Option<&'_ Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let capabilities = object(member(body, &["field_capabilities", "fieldCapabilities"]));
    let properties = object(body.get("schema").and_then(|schema| schema.get("properties")));
    let mut fields: Vec<FieldDetail> =
        capabilities.iter().filter_map(|(name, described)| field(name, described)).collect();
    for (name, schema) in &properties {
        let of_schema = schema.as_object().map(types).unwrap_or_default();
        match fields.iter_mut().find(|field| field.name == *name) {
            Some(field) if field.types.is_empty() => field.types = of_schema,
            Some(_) => {}
            None if capabilities.contains_key(name) => {}
            None => {
                fields.push(FieldDetail { name: name.clone(), types: of_schema, ..FieldDetail::default() });
            }
        }
    }
    let place = |field: &FieldDetail| properties.keys().position(|name| *name == field.name);
    fields.sort_by_key(|field| place(field).unwrap_or(usize::MAX));
    fields
}

fn cursor_field(body: &RecordData) -> Option<String> {
    let named = text(body, &["cursor_field", "cursorField"]).map(str::to_owned);
    named.or_else(|| {
        let fields = member(body, &["field_capabilities", "fieldCapabilities"])?.as_object()?;
        let is_cursor = |described: &Value| role(described).is_some_and(|role| role.starts_with("cursor"));
        fields.iter().find(|(_, described)| is_cursor(described)).map(|(name, _)| name.clone())
    })
}

fn views(body: &RecordData) -> Vec<View> {
    let views = named(body.get("views"), &["name", "id"]).into_iter();
    views.map(|(name, view)| View { name: name.to_owned(), fields: texts(view, &["fields"]) }).collect()
}

/// Returns the declared relations with their limits for expansion.
fn relations(body: &RecordData) -> Vec<Relation> {
    const NAMES: [&str; 3] = ["name", "relation", "relationship"];
    let expand = body.get("query").and_then(|query| query.get("expand"));
    let mut limits = named(expand, &NAMES);
    limits.extend(named(member(body, &["expand_capabilities", "expandCapabilities"]), &NAMES));
    let mut relations: Vec<Relation> = Vec::new();
    let declared = named(body.get("relationships"), &NAMES);
    for (name, relation) in declared.into_iter().chain(limits.iter().copied()) {
        let stream =
            text(relation, &["stream", "target_stream", "targetStream"]).and_then(|name| name.parse().ok());
        let Some(stream) = stream.filter(|_| relations.iter().all(|known| known.name != name)) else {
            continue;
        };
        let limit = |spellings: [&str; 2]| {
            let of_name = limits.iter().filter(|(limited, _)| *limited == name).map(|(_, limits)| *limits);
            let mut found = of_name.chain([relation]).filter_map(|limits| whole(limits, &spellings));
            found.next().and_then(|limit| usize::try_from(limit).ok())
        };
        relations.push(Relation {
            name: name.to_owned(),
            stream,
            kind: kind(text(relation, &["cardinality", "kind", "type"])),
            foreign_key: texts(relation, &["foreign_key", "foreignKey"])
                .into_iter()
                .next()
                .unwrap_or_default(),
            default_limit: limit(["default_limit", "defaultLimit"]),
            max_limit: limit(["max_limit", "maxLimit"]),
        });
    }
    relations
}

fn kind(cardinality: Option<&str>) -> RelationKind {
    match cardinality {
        Some("has_one" | "hasOne" | "one" | "one_to_one") => RelationKind::HasOne,
        Some("belongs_to" | "belongsTo" | "many_to_one") => RelationKind::BelongsTo,
        _ => RelationKind::HasMany,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<Option<Vec<StreamDetail>>, SourceError> {
        stream(body.to_string().as_bytes(), &"messages".parse().unwrap())
    }

    fn recorded(name: &str) -> Option<Vec<StreamDetail>> {
        let file = format!("{}/../../fixtures/record-server/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let reply: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        read(&reply["response"]).unwrap()
    }

    #[test]
    fn recorded_schemas_are_read() {
        for (name, connections, full) in [
            ("schema-compact-stream", "cin_work Work mail, cin_home Home mail", false),
            ("schema-compact-stream-conn", "cin_work Work mail", false),
            ("schema-detail-full-stream-conn", "cin_work Work mail", true),
            ("schema-full-global", "cin_work Work mail, cin_home Home mail", true),
        ] {
            let details = recorded(name).unwrap();
            let shown: Vec<String> = details
                .iter()
                .map(|detail| format!("{} {}", detail.connection_id, detail.display_name.as_ref().unwrap()))
                .collect();
            assert_eq!(shown.join(", "), connections, "{name}");
            assert!(
                details.iter().all(|detail| detail.connector_key.as_deref() == Some("acme-mail")),
                "{name}"
            );
            assert!(details.iter().all(|detail| detail.declaration.is_some() == full), "{name}");
            let fields: Vec<&str> = details[0].fields.iter().map(|field| field.name.as_str()).collect();
            assert_eq!((fields[0], fields.len()), ("amount", 10), "{name}");
        }
        assert_eq!(recorded("schema-unknown-stream"), None);
    }

    #[test]
    fn a_full_stream_has_views_relations_and_its_order() {
        let body = json!({"data": {"connectors": [{"connectorKey": "https://r.example/acme", "streams": [{
            "object": "stream_metadata", "name": "messages", "primary_key": "id", "cursor_field": "at", "record_count": 4,
            "schema": {"properties": {"id": {"type": "string"}, "at": {"type": "string", "format": "date-time"},
                "hidden": {"type": "string"}}},
            "field_capabilities": {"at": {"range_filter": {"operators": ["gte"]}}, "hidden": {"granted": false}},
            "views": [{"name": "short", "fields": ["id"]}],
            "relationships": [
                {"name": "files", "stream": "files", "foreign_key": "message_id", "cardinality": "has_many"},
                {"name": "author", "stream": "people", "foreign_key": ["author_id"], "cardinality": "belongs_to"},
                {"name": "nowhere"}],
            "query": {"expand": [{"name": "files", "default_limit": 5, "max_limit": 50}]},
            "expand_capabilities": [{"relation": "author", "max_limit": 1}],
            "granted_connections": [{"connection_id": "c1"}, {"connectionId": "c2", "displayName": "Two"}, {"connection_id": ".."}]
        }, 7]}]}});
        let details = read(&body).unwrap().unwrap();
        assert_eq!(details.len(), 2);
        let detail = &details[1];
        assert_eq!((detail.connection_id.as_str(), detail.display_name.as_deref()), ("c2", Some("Two")));
        assert_eq!(
            (detail.primary_key.join(","), detail.cursor_field.as_deref()),
            ("id".to_owned(), Some("at"))
        );
        assert_eq!((detail.connector_key.as_deref(), detail.record_count), (Some("acme"), Some(4)));
        let fields: Vec<String> =
            detail.fields.iter().map(|field| format!("{} {:?}", field.name, field.types)).collect();
        assert_eq!(fields, ["id [\"string\"]", "at [\"date-time\"]"]);
        assert_eq!(detail.views, [View { name: "short".to_owned(), fields: vec!["id".to_owned()] }]);
        let relations: Vec<String> = detail
            .relations
            .iter()
            .map(|r| {
                format!(
                    "{} {} {:?} {} {:?} {:?}",
                    r.name, r.stream, r.kind, r.foreign_key, r.default_limit, r.max_limit
                )
            })
            .collect();
        assert_eq!(
            relations,
            [
                "files files HasMany message_id Some(5) Some(50)",
                "author people BelongsTo author_id None Some(1)"
            ]
        );
    }

    #[test]
    fn a_compact_stream_may_say_its_order_by_a_role() {
        let body = json!({"connectors": [{"streams": [{"name": "messages", "field_capabilities": {"a": "t=string", "b": "role=cursor"}}],
            "granted_connections": [{"connection_id": "c1"}]}]});
        assert_eq!(read(&body).unwrap().unwrap()[0].cursor_field.as_deref(), Some("b"));
        // A stream that exists but is not granted is not an unknown stream.
        let body = json!({"connectors": [{"streams": [{"name": "messages"}]}]});
        assert_eq!(read(&body).unwrap(), Some(vec![]));
        assert!(matches!(read(&json!({"data": []})), Err(SourceError::Protocol(_))));
    }
}
