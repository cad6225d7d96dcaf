//! A record in a list, at some width.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::fit::{FieldWidth, narrow};
use crate::handle::Handle;
use crate::record::{Record, RecordData};
use crate::source::Change;

/// A record as a list shows it.
#[derive(Debug, Serialize)]
pub(super) struct ShownRecord {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<RecordData>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    expanded: Map<String, Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<String>,
}

/// A row at some width; `None` when it could not be fetched.
pub(super) fn show(row: &Change, width: FieldWidth) -> Option<ShownRecord> {
    match row {
        Change::Deleted { address, deleted_at } => Some(ShownRecord {
            id: Handle::mint(address)?.to_string(),
            data: None,
            expanded: Map::new(),
            deleted: true,
            deleted_at: deleted_at.clone(),
        }),
        Change::Present(record) => Some(ShownRecord {
            id: Handle::mint(&record.address)?.to_string(),
            data: narrow(&record.data, width),
            expanded: expanded(record, width),
            deleted: false,
            deleted_at: None,
        }),
    }
}

/// Related records by the name of their relation: a list, or the one there is.
pub(super) fn expanded(record: &Record, width: FieldWidth) -> Map<String, Value> {
    let mut relations = Map::new();
    for relation in &record.expanded {
        let shown = relation.records.iter().filter_map(|record| {
            let mut shown = Map::new();
            shown.insert("id".to_owned(), Handle::mint(&record.address)?.to_string().into());
            if let Some(data) = narrow(&record.data, width) {
                shown.insert("data".to_owned(), data.into());
            }
            Some(Value::Object(shown))
        });
        let mut shown: Vec<Value> = shown.collect();
        if relation.has_more {
            shown.push("there are more".into());
        }
        let value = if relation.many { Value::Array(shown) } else { shown.pop().unwrap_or(Value::Null) };
        relations.insert(relation.relation.clone(), value);
    }
    relations
}
