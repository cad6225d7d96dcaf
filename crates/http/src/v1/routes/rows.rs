//! Records in lists: present, deleted, and related ones inside others.

use std::collections::BTreeMap;

use fetchwell_core::record::{ExpandedRelation, Record, RecordData};
use fetchwell_source::Change;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Row {
    Present(Box<RecordRow>),
    Deleted(DeletedRow),
}

/// A record of a stream.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Record")]
pub(crate) struct RecordRow {
    #[schemars(extend("const" = "record"))]
    object: &'static str,
    /// Canonical key of the record.
    id: String,
    pub stream: String,
    /// Fields of the record.
    pub data: RecordData,
    pub emitted_at: Option<String>,
    pub connection_id: Option<String>,
    connector_instance_id: Option<String>,
    pub display_name: Option<String>,
    /// Related records that were asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    expanded: BTreeMap<String, RelatedRecords>,
}

/// A record that was deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeletedRow {
    #[schemars(extend("const" = "record"))]
    object: &'static str,
    id: String,
    stream: String,
    #[schemars(extend("const" = true))]
    deleted: bool,
    deleted_at: Option<String>,
}

/// Records of one relation: a list, or a single record.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum RelatedRecords {
    Many(RelatedList),
    One(Option<Box<RecordRow>>),
}

#[derive(Debug, Serialize, JsonSchema)]
struct RelatedList {
    #[schemars(extend("const" = "list"))]
    object: &'static str,
    data: Vec<RecordRow>,
    has_more: bool,
}

impl Row {
    pub(crate) fn new(change: Change) -> Self {
        match change {
            Change::Present(record) => Self::Present(Box::new(RecordRow::new(*record))),
            Change::Deleted { address, deleted_at } => Self::Deleted(DeletedRow {
                object: "record",
                id: address.record.into(),
                stream: address.stream.into(),
                deleted: true,
                deleted_at,
            }),
        }
    }
}

impl RecordRow {
    pub(crate) fn new(record: Record) -> Self {
        let connection_id: Option<String> = record.address.connection.map(String::from);
        Self {
            object: "record",
            id: record.address.record.into(),
            stream: record.address.stream.into(),
            data: record.data,
            emitted_at: record.emitted_at,
            connector_instance_id: connection_id.clone(),
            connection_id,
            display_name: record.display_name,
            expanded: record
                .expanded
                .into_iter()
                .map(|related| (related.relation.clone(), RelatedRecords::new(related)))
                .collect(),
        }
    }
}

impl RelatedRecords {
    fn new(related: ExpandedRelation) -> Self {
        let ExpandedRelation { many, records, has_more, .. } = related;
        let mut rows = records.into_iter().map(RecordRow::new);
        if many {
            Self::Many(RelatedList { object: "list", data: rows.collect(), has_more })
        } else {
            Self::One(rows.next().map(Box::new))
        }
    }
}
