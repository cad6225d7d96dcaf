//! The fields of one stream of one connection, with the operations that each supports.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{FieldPath, RecordData};
use crate::handle::{ConnectionId, StreamName};

/// The description of a stream by its source.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamDetail {
    /// Name of the stream.
    pub name: StreamName,
    /// Connection of the stream.
    pub connection_id: ConnectionId,
    /// Label of the connection.
    pub display_name: Option<String>,
    /// Short key of the connector.
    pub connector_key: Option<String>,
    /// Number of records, if the source reports it.
    pub record_count: Option<u64>,
    /// Fields that form the key of a record.
    pub primary_key: Vec<String>,
    /// Field that records are sorted by.
    pub cursor_field: Option<String>,
    /// Fields of its records.
    pub fields: Vec<FieldDetail>,
    /// Named selections of fields.
    pub views: Vec<View>,
    /// Relations to records of other streams, which can be expanded.
    pub relations: Vec<Relation>,
    /// The connector's own description of the stream, unchanged.
    pub declaration: Option<Arc<RecordData>>,
}

/// A field with its types and the operations that it supports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldDetail {
    /// Name of the field.
    pub name: String,
    /// Types as in JSON Schema, and `date-time` for a string that is a time; empty if unknown.
    pub types: Vec<String>,
    /// Operations that the field supports.
    pub capabilities: BTreeSet<Capability>,
}

/// An operation that a field supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Filter by its exact value.
    Equal,
    /// Filter by a range.
    Range,
    /// Search for words in it.
    Lexical,
    /// Search by its meaning.
    Semantic,
    /// Group by its value.
    GroupBy,
    /// Group by the period of its time.
    GroupByTime,
    /// Sum of its values.
    Sum,
    /// Minimum of its values.
    Min,
    /// Maximum of its values.
    Max,
    /// Number of its distinct values.
    CountDistinct,
}

/// A named selection of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Name of the view.
    pub name: String,
    /// Fields of the view.
    pub fields: Vec<String>,
}

/// Fields that are requested under one name, such as `guestDetails`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldGroup {
    /// Name of the group.
    pub name: String,
    /// Fields of the group, or paths inside fields.
    pub paths: Vec<FieldPath>,
}

/// A relation between the records of a stream and those of another stream of the same connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Name of the relation.
    pub name: String,
    /// The related stream.
    pub stream: StreamName,
    /// Cardinality of the relation, and the side that has the foreign key.
    pub kind: RelationKind,
    /// Field with the key of the other side. It is a field of the related stream, or of this one for `BelongsTo`.
    pub foreign_key: String,
    /// Number of records to expand if the request has no limit.
    pub default_limit: Option<usize>,
    /// Maximum number of records to expand.
    pub max_limit: Option<usize>,
}

/// The cardinality of a relation and the side of its foreign key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationKind {
    /// Any number of related records refer to this one.
    HasMany,
    /// One related record refers to this one.
    HasOne,
    /// This record refers to one related record.
    BelongsTo,
}

impl StreamDetail {
    /// Returns the field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&FieldDetail> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the relation with this name.
    #[must_use]
    pub fn relation(&self, name: &str) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.name == name)
    }

    /// Returns the view with this name.
    #[must_use]
    pub fn view(&self, name: &str) -> Option<&View> {
        self.views.iter().find(|view| view.name == name)
    }

    /// Returns the groups of fields that the connector declares under `groups`, as `{"name": ["field"]}` or as a list
    /// shaped like `views`. Skips entries of another shape.
    #[must_use]
    pub fn groups(&self) -> Vec<FieldGroup> {
        let group = |name: &str, fields: &Value| {
            let fields = fields.get("fields").unwrap_or(fields).as_array()?;
            // A name that does not parse as a path is still the name of a field.
            let path = |name: &str| name.parse().unwrap_or_else(|_no_path| FieldPath::field(name));
            let paths: Vec<FieldPath> = fields.iter().filter_map(Value::as_str).map(path).collect();
            (!paths.is_empty()).then(|| FieldGroup { name: name.to_owned(), paths })
        };
        match self.declaration.as_ref().and_then(|declaration| declaration.get("groups")) {
            Some(Value::Object(groups)) => {
                groups.iter().filter_map(|(name, fields)| group(name, fields)).collect()
            }
            Some(Value::Array(groups)) => {
                groups.iter().filter_map(|fields| group(fields.get("name")?.as_str()?, fields)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the record fields of a view. A view may name a part of a field, `guest.city`; the text before the
    /// first dot is then the field, unless a field has the whole name.
    #[must_use]
    pub fn view_fields(&self, name: &str) -> Option<Vec<String>> {
        let mut fields: Vec<String> = Vec::new();
        for named in &self.view(name)?.fields {
            let whole = named.split('.').next().filter(|_| self.field(named).is_none());
            let field = whole.unwrap_or(named);
            if !fields.iter().any(|known| known == field) {
                fields.push(field.to_owned());
            }
        }
        Some(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_view_selects_its_field() {
        let field = |name: &str| FieldDetail { name: name.to_owned(), ..FieldDetail::default() };
        let fields = ["id", "guest.city", "guest.street", "dotted.name"].map(str::to_owned).to_vec();
        let detail = StreamDetail {
            name: "reservations".parse().unwrap(),
            connection_id: "c".parse().unwrap(),
            display_name: None,
            connector_key: None,
            record_count: None,
            primary_key: Vec::new(),
            cursor_field: None,
            fields: vec![field("id"), field("guest"), field("dotted.name")],
            views: vec![View { name: "preview".to_owned(), fields }],
            relations: Vec::new(),
            declaration: None,
        };
        assert_eq!(detail.view_fields("preview").unwrap(), ["id", "guest", "dotted.name"]);
        assert_eq!(detail.view_fields("other"), None);
        assert_eq!(detail.groups(), []);
        let group = |name: &str, paths: &[&str]| FieldGroup {
            name: name.to_owned(),
            paths: paths.iter().map(|path| path.parse().unwrap()).collect(),
        };
        for groups in [
            serde_json::json!({"who": ["id", "guest.city"], "none": [], "broken": 5}),
            serde_json::json!([{"name": "who", "fields": ["id", "guest.city"]}, {"fields": ["id"]}, "broken"]),
        ] {
            let declaration = RecordData::from_iter([("groups".to_owned(), groups)]);
            let detail = StreamDetail { declaration: Some(Arc::new(declaration)), ..detail.clone() };
            assert_eq!(detail.groups(), [group("who", &["id", "guest.city"])]);
        }
    }
}
