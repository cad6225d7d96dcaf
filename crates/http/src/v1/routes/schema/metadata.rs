//! Stream metadata: one object for all connections that have the stream.

use std::collections::BTreeMap;

use fetchwell_core::record::{ConnectionSchema, FieldDetail, Relation, RelationKind, StreamDetail, View};
use schemars::JsonSchema;
use serde::Serialize;

use super::capabilities::{FieldCapabilities, FieldSchema};
use super::http_route::{HttpRouteRow, routes_of};

/// Metadata of a stream.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StreamMetadata {
    #[schemars(extend("const" = "stream_metadata"))]
    object: &'static str,
    name: String,
    schema: StreamSchema,
    field_capabilities: BTreeMap<String, FieldCapabilities>,
    expand_capabilities: Vec<ExpandCapability>,
    query: QueryHints,
    relationships: Vec<Relationship>,
    views: Vec<ViewRow>,
    freshness: Freshness,
    primary_key: Vec<String>,
    cursor_field: Option<String>,
    consent_time_field: Option<String>,
    instance_ids: Vec<String>,
    granted_connections: Vec<Connection>,
}

/// The shape of `data`.
#[derive(Debug, Serialize, JsonSchema)]
struct StreamSchema {
    #[serde(rename = "type")]
    #[schemars(extend("const" = "object"))]
    kind: &'static str,
    properties: BTreeMap<String, FieldSchema>,
}

/// Always empty: the capabilities are listed per field.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct QueryHints {}

/// A relation that `expand` takes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExpandCapability {
    name: String,
    stream: String,
    cardinality: Cardinality,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Relationship {
    name: String,
    stream: String,
    cardinality: Cardinality,
    foreign_key: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Cardinality {
    HasMany,
    HasOne,
    BelongsTo,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ViewRow {
    name: String,
    fields: Vec<String>,
}

/// Freshness of a stream, which sources here do not report.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Freshness {
    #[schemars(extend("const" = "unknown"))]
    status: &'static str,
    captured_at: Option<String>,
}

impl Freshness {
    pub(crate) const UNKNOWN: Self = Self { status: "unknown", captured_at: None };
}

/// A connection that has the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Connection {
    pub(crate) connection_id: String,
    pub(crate) display_name: Option<String>,
    /// In a schema: the paths of the connector's own API for these records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) http_routes: Vec<HttpRouteRow>,
}

impl StreamMetadata {
    /// Creates the metadata from the details of each connection with the stream; `details` has at least one. Routes
    /// are taken from the connections in `known`.
    pub(crate) fn new(name: &str, details: &[StreamDetail], known: &[&ConnectionSchema]) -> Self {
        let fields = fields(details);
        Self {
            object: "stream_metadata",
            name: name.to_owned(),
            schema: StreamSchema {
                kind: "object",
                properties: fields
                    .iter()
                    .map(|(name, field)| (name.clone(), FieldSchema::from_types(&field.types)))
                    .collect(),
            },
            field_capabilities: fields
                .into_iter()
                .map(|(name, field)| (name, FieldCapabilities::new(&field)))
                .collect(),
            expand_capabilities: expand_capabilities(details),
            query: QueryHints::default(),
            relationships: relations(details).map(Relationship::new).collect(),
            views: views(details),
            freshness: Freshness::UNKNOWN,
            primary_key: primary_key(details),
            cursor_field: details.iter().find_map(|detail| detail.cursor_field.clone()),
            consent_time_field: None,
            instance_ids: details.iter().map(|detail| detail.connection_id.to_string()).collect(),
            granted_connections: with_routes(connections(details), known, Some(name)),
        }
    }
}

pub(crate) fn connections(details: &[StreamDetail]) -> Vec<Connection> {
    let connection = |detail: &StreamDetail| Connection {
        connection_id: detail.connection_id.to_string(),
        display_name: detail.display_name.clone(),
        http_routes: Vec::new(),
    };
    details.iter().map(connection).collect()
}

/// Adds to connections their routes, or those of one stream.
pub(crate) fn with_routes(
    mut connections: Vec<Connection>,
    known: &[&ConnectionSchema],
    stream: Option<&str>,
) -> Vec<Connection> {
    for connection in &mut connections {
        connection.http_routes = routes_of(known, &connection.connection_id, stream);
    }
    connections
}

/// Merges the fields of all connections; a merged field has every type and capability that one of them has.
pub(crate) fn fields(details: &[StreamDetail]) -> BTreeMap<String, FieldDetail> {
    let mut fields: BTreeMap<String, FieldDetail> = BTreeMap::new();
    for field in details.iter().flat_map(|detail| &detail.fields) {
        let merged = fields
            .entry(field.name.clone())
            .or_insert_with(|| FieldDetail { name: field.name.clone(), ..FieldDetail::default() });
        merged.capabilities.extend(field.capabilities.iter().copied());
        for kind in &field.types {
            if !merged.types.contains(kind) {
                merged.types.push(kind.clone());
            }
        }
    }
    fields
}

pub(crate) fn primary_key(details: &[StreamDetail]) -> Vec<String> {
    let known = details.iter().find(|detail| !detail.primary_key.is_empty());
    known.map(|detail| detail.primary_key.clone()).unwrap_or_default()
}

pub(crate) fn expand_capabilities(details: &[StreamDetail]) -> Vec<ExpandCapability> {
    let capability = |relation: &Relation| ExpandCapability {
        name: relation.name.clone(),
        stream: relation.stream.to_string(),
        cardinality: Cardinality::from_kind(relation.kind),
        default_limit: relation.default_limit,
        max_limit: relation.max_limit,
    };
    relations(details).map(capability).collect()
}

/// Returns the relations of all connections, without duplicate names.
fn relations(details: &[StreamDetail]) -> impl Iterator<Item = &Relation> {
    let all: Vec<&Relation> = details.iter().flat_map(|detail| &detail.relations).collect();
    let first = |at: usize, name: &str| all.iter().take(at).all(|before| before.name != name);
    let kept: Vec<&Relation> = all
        .iter()
        .enumerate()
        .filter(|(at, relation)| first(*at, &relation.name))
        .map(|(_, kept)| *kept)
        .collect();
    kept.into_iter()
}

fn views(details: &[StreamDetail]) -> Vec<ViewRow> {
    let mut rows: Vec<ViewRow> = Vec::new();
    for View { name, fields } in details.iter().flat_map(|detail| &detail.views) {
        if rows.iter().all(|row| row.name != *name) {
            rows.push(ViewRow { name: name.clone(), fields: fields.clone() });
        }
    }
    rows
}

impl Relationship {
    fn new(relation: &Relation) -> Self {
        Self {
            name: relation.name.clone(),
            stream: relation.stream.to_string(),
            cardinality: Cardinality::from_kind(relation.kind),
            foreign_key: relation.foreign_key.clone(),
        }
    }
}

impl Cardinality {
    fn from_kind(kind: RelationKind) -> Self {
        match kind {
            RelationKind::HasMany => Self::HasMany,
            RelationKind::HasOne => Self::HasOne,
            RelationKind::BelongsTo => Self::BelongsTo,
        }
    }
}
