//! A record in a list, at some width.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::previews::Previews;
use crate::fit::{FieldWidth, narrow};
use crate::handle::Handle;
use crate::record::{Record, RecordData};
use crate::source::Change;

/// A record as a list shows it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ShownRecord<'a> {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, RecordData>>,
    /// Fields that are not shown.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) more_fields: usize,
    #[serde(skip_serializing_if = "Map::is_empty")]
    expanded: Map<String, Value>,
    /// Relations that have more records than are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expanded_more: Vec<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A row at some width; `None` when it could not be fetched.
pub(super) fn show<'a>(row: &'a Change, width: FieldWidth, previews: &Previews) -> Option<ShownRecord<'a>> {
    match row {
        Change::Deleted { address, deleted_at } => Some(ShownRecord {
            id: Handle::mint(address)?.to_string(),
            data: None,
            more_fields: 0,
            expanded: Map::new(),
            expanded_more: Vec::new(),
            deleted: true,
            deleted_at: deleted_at.as_deref(),
        }),
        Change::Present(record) => {
            let (data, more_fields) = narrow(&record.data, width, previews.of(&record.address));
            let has_more = record.expanded.iter().filter(|relation| relation.has_more && relation.many);
            Some(ShownRecord {
                id: Handle::mint(&record.address)?.to_string(),
                data,
                more_fields,
                expanded: expanded(record, width, previews),
                expanded_more: has_more.map(|relation| relation.relation.as_str()).collect(),
                deleted: false,
                deleted_at: None,
            })
        }
    }
}

/// Related records by the name of their relation: a list, or the one there is.
fn expanded(record: &Record, width: FieldWidth, previews: &Previews) -> Map<String, Value> {
    let mut relations = Map::new();
    for relation in &record.expanded {
        let mut shown = relation.records.iter().filter_map(|record| {
            let (data, more_fields) = narrow(&record.data, width, previews.of(&record.address));
            let mut shown = Map::new();
            shown.insert("id".to_owned(), Handle::mint(&record.address)?.to_string().into());
            if let Some(data) = data {
                shown.insert("data".to_owned(), data.into_owned().into());
            }
            if more_fields > 0 {
                shown.insert("more_fields".to_owned(), more_fields.into());
            }
            Some(Value::Object(shown))
        });
        let value = if relation.many { shown.collect() } else { shown.next().unwrap_or(Value::Null) };
        relations.insert(relation.relation.clone(), value);
    }
    relations
}
