//! What one stream of one connection can be asked.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{FieldPath, RecordData};
use crate::handle::{ConnectionId, StreamName};

/// A stream as its source describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamDetail {
    /// Its name.
    pub name: StreamName,
    /// The connection it is of.
    pub connection_id: ConnectionId,
    /// The label of the connection.
    pub display_name: Option<String>,
    /// The short key of the connector.
    pub connector_key: Option<String>,
    /// How many records it holds, when the source says so.
    pub record_count: Option<u64>,
    /// The fields that make up a record's key.
    pub primary_key: Vec<String>,
    /// The field records are ordered by.
    pub cursor_field: Option<String>,
    /// Its fields.
    pub fields: Vec<FieldDetail>,
    /// Named selections of fields.
    pub views: Vec<View>,
    /// Records of other streams that can be brought along.
    pub relations: Vec<Relation>,
    /// The connector's own description of the stream, as it was given.
    pub declaration: Option<RecordData>,
}

/// A field, and what can be done with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldDetail {
    /// Its name.
    pub name: String,
    /// Its types as JSON Schema names them, `date-time` for a text that is a time; empty when unknown.
    pub types: Vec<String>,
    /// What it can be asked for.
    pub capabilities: BTreeSet<Capability>,
}

/// What can be done with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Filter by its value.
    Equal,
    /// Filter by a range.
    Range,
    /// Find its words.
    Lexical,
    /// Find its meaning.
    Semantic,
    /// Group by its value.
    GroupBy,
    /// Group by the time in it.
    GroupByTime,
    /// Add it up.
    Sum,
    /// Find its least value.
    Min,
    /// Find its greatest value.
    Max,
    /// Count its different values.
    CountDistinct,
}

/// A named selection of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub name: String,
    /// Its fields.
    pub fields: Vec<String>,
}

/// Fields that are asked for under one name, such as `guestDetails`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldGroup {
    /// Its name.
    pub name: String,
    /// Its fields, or places inside them.
    pub paths: Vec<FieldPath>,
}

/// How records of another stream of the same connection belong to one of this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Its name.
    pub name: String,
    /// The other stream.
    pub stream: StreamName,
    /// How many records there are on the other side, and which side names the other.
    pub kind: RelationKind,
    /// The field that names the other side: of the other stream, or of this one for `BelongsTo`.
    pub foreign_key: String,
    /// How many records are brought along when no limit is given.
    pub default_limit: Option<usize>,
    /// How many records are brought along at most.
    pub max_limit: Option<usize>,
}

/// Which side of a relation names the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationKind {
    /// The others name this one, any number of them.
    HasMany,
    /// One other names this one.
    HasOne,
    /// This one names one other.
    BelongsTo,
}

impl StreamDetail {
    /// The field of a name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&FieldDetail> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The relation of a name.
    #[must_use]
    pub fn relation(&self, name: &str) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.name == name)
    }

    /// The view of a name.
    #[must_use]
    pub fn view(&self, name: &str) -> Option<&View> {
        self.views.iter().find(|view| view.name == name)
    }

    /// The groups of fields that the connector declares under `groups`: `{"name": ["field"]}`, or a list as `views` is one.
    /// What is of another shape is left out.
    #[must_use]
    pub fn groups(&self) -> Vec<FieldGroup> {
        let group = |name: &str, fields: &Value| {
            let fields = fields.get("fields").unwrap_or(fields).as_array()?;
            // A name that is no path is one of the record's fields all the same.
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

    /// The fields of records that a view is about. A view may name a part of a field, `guest.city`; the record's
    /// field is then what stands before the first dot, unless one is called just that.
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
    fn a_path_in_a_view_stands_for_its_field() {
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
            let detail = StreamDetail { declaration: Some(declaration), ..detail.clone() };
            assert_eq!(detail.groups(), [group("who", &["id", "guest.city"])]);
        }
    }
}
