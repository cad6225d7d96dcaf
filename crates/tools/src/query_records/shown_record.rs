//! A record as an item of a list.
//!
//! [`render`] narrows the fields of a record, and those of its related records, to a [`FieldWidth`].

use fetchwell_core::fit::{FieldWidth, NarrowedFields, narrow};
use fetchwell_core::handle::Handle;
use fetchwell_core::record::Record;
use fetchwell_source::Change;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cache::Previews;

/// An item of a list: a record, or the mark of one that was deleted.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ShownRecord<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<NarrowedFields<'a>>,
    /// Number of omitted fields.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) more_fields: usize,
    #[serde(skip_serializing_if = "Map::is_empty")]
    expanded: Map<String, Value>,
    /// Relations with more records than shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expanded_more: Vec<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Renders a row at a width, with its handle as `id`.
pub(super) fn render<'a>(
    row: &'a Change,
    id: &'a str,
    width: FieldWidth,
    previews: &Previews,
) -> ShownRecord<'a> {
    let bare = ShownRecord {
        id,
        data: None,
        more_fields: 0,
        expanded: Map::new(),
        expanded_more: Vec::new(),
        deleted: false,
        deleted_at: None,
    };
    match row {
        Change::Deleted { deleted_at, .. } => {
            ShownRecord { deleted: true, deleted_at: deleted_at.as_deref(), ..bare }
        }
        Change::Present(record) => {
            let (data, more_fields) = narrow(&record.data, width, previews.fields(&record.address));
            let has_more = record.expanded.iter().filter(|relation| relation.has_more && relation.many);
            ShownRecord {
                data,
                more_fields,
                expanded: render_expanded(record, width, previews),
                expanded_more: has_more.map(|relation| relation.relation.as_str()).collect(),
                ..bare
            }
        }
    }
}

/// Renders related records by the name of their relation: an array, or one record for a relation to one.
fn render_expanded(record: &Record, width: FieldWidth, previews: &Previews) -> Map<String, Value> {
    let mut relations = Map::new();
    for relation in &record.expanded {
        let mut shown = relation.records.iter().filter_map(|record| {
            let (data, more_fields) = narrow(&record.data, width, previews.fields(&record.address));
            let mut shown = Map::new();
            shown.insert("id".to_owned(), Handle::mint(&record.address)?.to_string().into());
            if let Some(data) = data {
                shown.insert("data".to_owned(), data.into_map().into());
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
