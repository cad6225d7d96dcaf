//! Removes hidden streams from a connector's own declaration of a stream. Pure.
//!
//! A declaration is text of a connector, and any part of it may name a stream. It is therefore rebuilt from the parts
//! that the record-server contract defines, and descriptions are left out.

use fetchwell_core::record::{RecordData, Relation};
use serde_json::Value;

/// Parts of a declaration that only name fields of the stream.
const PARTS: [&str; 7] =
    ["object", "name", "primary_key", "primaryKey", "cursor_field", "cursorField", "consent_time_field"];

/// Parts of `query` that only name fields of the stream.
const QUERY_PARTS: [&str; 4] = ["exact_filters", "range_filters", "search", "aggregations"];

/// Keywords of a JSON Schema that describe the form of a value.
const SCHEMA_PARTS: [&str; 5] = ["type", "format", "required", "nullable", "enum"];

/// Parts of a field's capabilities.
const CAPABILITY_PARTS: [&str; 8] = [
    "granted",
    "exact_filter",
    "range_filter",
    "lexical_search",
    "semantic_search",
    "aggregation",
    "type",
    "role",
];

/// Parts of a view.
const VIEW_PARTS: [&str; 3] = ["name", "id", "fields"];

/// Parts of a relation.
const RELATION_PARTS: [&str; 14] = [
    "name",
    "relation",
    "relationship",
    "stream",
    "target_stream",
    "targetStream",
    "cardinality",
    "kind",
    "type",
    "foreign_key",
    "foreignKey",
    "default_limit",
    "max_limit",
    "usable",
];

/// Maximum depth of nested schemas.
const SCHEMA_DEPTH: usize = 8;

/// Returns the visible part of a declaration, or `None` if nothing is left.
pub(super) fn visible_declaration(
    given: RecordData,
    is_visible: &dyn Fn(&str) -> bool,
    relations: &[Relation],
) -> Option<RecordData> {
    let mut visible = RecordData::new();
    for (part, value) in given {
        let value = match part.as_str() {
            name if PARTS.contains(&name) => Some(value),
            "schema" => Some(schema(value, SCHEMA_DEPTH)),
            "field_capabilities" | "fieldCapabilities" => Some(each(value, capabilities)),
            "views" | "groups" => Some(each(value, |view| only(view, &VIEW_PARTS))),
            "relationships" | "expand_capabilities" | "expandCapabilities" => {
                visible_relations(value, is_visible, relations)
            }
            "query" => query(value, is_visible, relations),
            _ => None,
        };
        visible.extend(value.map(|value| (part, value)));
    }
    (!visible.is_empty()).then_some(visible)
}

/// Returns the relations that lead to visible streams. A relation without a stream is kept if a visible relation has
/// its name. Returns `None` if no relation is left, because an empty list would reveal that there were some.
fn visible_relations(
    value: Value,
    is_visible: &dyn Fn(&str) -> bool,
    relations: &[Relation],
) -> Option<Value> {
    let stays = |key: Option<&str>, relation: &Value| {
        let text = |names: [&str; 3]| names.iter().find_map(|name| relation.get(*name)?.as_str());
        match text(["stream", "target_stream", "targetStream"]) {
            Some(stream) => is_visible(stream),
            None => {
                let name = key.or_else(|| text(["name", "relation", "relationship"]));
                name.is_some_and(|name| relations.iter().any(|relation| relation.name == name))
            }
        }
    };
    match value {
        Value::Array(items) => {
            let items = items.into_iter().filter(|item| stays(None, item));
            let items: Vec<Value> = items.map(|item| only(item, &RELATION_PARTS)).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(items) => {
            let items = items.into_iter().filter(|(key, item)| stays(Some(key), item));
            let items: RecordData = items.map(|(key, item)| (key, only(item, &RELATION_PARTS))).collect();
            (!items.is_empty()).then_some(Value::Object(items))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn query(value: Value, is_visible: &dyn Fn(&str) -> bool, relations: &[Relation]) -> Option<Value> {
    let Value::Object(parts) = value else { return None };
    let part = |(part, value): (String, Value)| match part.as_str() {
        "expand" => Some((part, visible_relations(value, is_visible, relations)?)),
        name if QUERY_PARTS.contains(&name) => Some((part, value)),
        _ => None,
    };
    let parts: RecordData = parts.into_iter().filter_map(part).collect();
    (!parts.is_empty()).then_some(Value::Object(parts))
}

/// Returns the capabilities of a field. The compact form is one string of flags.
fn capabilities(value: Value) -> Value {
    let nested = value.get("schema").cloned().map(|nested| schema(nested, SCHEMA_DEPTH));
    let mut value = only(value, &CAPABILITY_PARTS);
    if let (Value::Object(parts), Some(nested)) = (&mut value, nested) {
        parts.insert("schema".to_owned(), nested);
    }
    value
}

/// Returns a JSON Schema without descriptions, titles, comments and references.
fn schema(value: Value, depth: usize) -> Value {
    let Value::Object(parts) = value else { return Value::Null };
    let part = |(part, value): (String, Value)| match part.as_str() {
        name if SCHEMA_PARTS.contains(&name) => Some((part, value)),
        "properties" if depth > 0 => Some((part, each(value, |nested| schema(nested, depth - 1)))),
        "items" if depth > 0 => Some((part, schema(value, depth - 1))),
        _ => None,
    };
    parts.into_iter().filter_map(part).collect()
}

/// Keeps the listed members of an object. Other values are returned unchanged.
fn only(value: Value, parts: &[&str]) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().filter(|(name, _)| parts.contains(&name.as_str())).collect()
        }
        other => other,
    }
}

/// Applies a function to each item of an array or each member of an object.
fn each(value: Value, change: impl Fn(Value) -> Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(change).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, change(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use fetchwell_core::record::RelationKind;

    #[test]
    fn a_declaration_does_not_name_hidden_streams() {
        let given = json!({
            "object": "stream_metadata", "name": "messages", "description": "See secrets",
            "primary_key": ["id"], "cursor_field": "at", "granted_connections": [{"connection_id": "secrets"}],
            "schema": {"type": "object", "$comment": "secrets", "properties": {
                "vault": {"type": "string", "format": "date", "description": "of secrets", "x-of": "secrets",
                    "items": {"type": "string", "title": "secrets"}}}},
            "field_capabilities": {"at": {"granted": true, "of": "secrets", "schema": {"type": "string", "title": "secrets"}},
                "vault": "t=string,eq"},
            "views": [{"name": "short", "fields": ["at"], "description": "secrets"}],
            "groups": {"when": ["at"], "all": {"fields": ["at"], "of": "secrets"}},
            "relationships": [
                {"name": "files", "stream": "files", "foreign_key": "m", "note": "secrets"},
                {"name": "keys", "stream": "secrets"}, {"name": "files"}, {"name": "vaults"}, "secrets"],
            "query": {"exact_filters": ["at"], "hidden": "secrets",
                "expand": [{"name": "files", "max_limit": 5}, {"name": "keys"}, {"name": "x", "target_stream": "secrets"}]},
            "expand_capabilities": {"files": {"max_limit": 5}, "secrets": {}},
        });
        let files = Relation {
            name: "files".to_owned(),
            stream: "files".parse().unwrap(),
            kind: RelationKind::HasMany,
            foreign_key: "m".to_owned(),
            default_limit: None,
            max_limit: None,
        };
        let given = given.as_object().unwrap().clone();
        let visible = visible_declaration(given, &|stream| stream == "files", &[files]);
        let expect = json!({
            "object": "stream_metadata", "name": "messages", "primary_key": ["id"], "cursor_field": "at",
            "schema": {"type": "object", "properties": {
                "vault": {"type": "string", "format": "date", "items": {"type": "string"}}}},
            "field_capabilities": {"at": {"granted": true, "schema": {"type": "string"}}, "vault": "t=string,eq"},
            "views": [{"name": "short", "fields": ["at"]}],
            "groups": {"when": ["at"], "all": {"fields": ["at"]}},
            "relationships": [{"name": "files", "stream": "files", "foreign_key": "m"}, {"name": "files"}],
            "query": {"exact_filters": ["at"], "expand": [{"name": "files", "max_limit": 5}]},
            "expand_capabilities": {"files": {"max_limit": 5}},
        });
        assert_eq!(Value::from(visible.unwrap()), expect);
        let nothing = json!({"relationships": "secrets"}).as_object().unwrap().clone();
        assert_eq!(visible_declaration(nothing, &|_| false, &[]), None);
        let hidden = json!({"relationships": [{"name": "keys", "stream": "secrets"}], "query": {"expand": [{"name": "keys"}]}});
        assert_eq!(visible_declaration(hidden.as_object().unwrap().clone(), &|_| false, &[]), None);
    }
}
