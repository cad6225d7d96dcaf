//! Stream declarations of a PDPP manifest, and the fields and capabilities that follow from them.
//!
//! A declaration is binding: if it lists range filters, no other field can be filtered by range. Anything that it
//! does not mention is allowed: without `query.aggregations` a stream can be aggregated by any field, and data
//! imported without a manifest supports every query.

use std::sync::Arc;

use fetchwell_core::record::{Capability, FieldDetail, RecordData, Relation, RelationKind, View};
use serde_json::Value;

use super::error::ManifestError;
use super::kinds::{Kinds, NUMBER_TYPES, TIME_TYPES};

/// Declaration of one stream in a manifest. Parsing is lenient: a part of an unexpected shape counts as missing.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamDeclaration {
    /// Name of the stream.
    pub name: String,
    /// Fields that form the key of a record.
    pub primary_key: Vec<String>,
    /// Field by which records are ordered.
    pub cursor_field: Option<String>,
    /// Declaration as it stands in the manifest.
    given: Arc<RecordData>,
}

impl StreamDeclaration {
    pub(crate) fn read(given: RecordData) -> Result<Self, ManifestError> {
        let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            name: text("name").ok_or(ManifestError::NamelessStream)?,
            primary_key: given.get("primary_key").map(texts).unwrap_or_default(),
            cursor_field: text("cursor_field"),
            given: Arc::new(given),
        })
    }

    /// Returns the declaration as it stands in the manifest.
    #[must_use]
    pub fn given(&self) -> &Arc<RecordData> {
        &self.given
    }

    /// Returns the views that the stream declares.
    pub fn views(&self) -> Vec<View> {
        let view = |view: &Value| {
            let name = view.get("name").or_else(|| view.get("id"))?.as_str()?.to_owned();
            Some(View { name, fields: texts(view.get("fields")?) })
        };
        match self.given.get("views") {
            Some(Value::Array(views)) => views.iter().filter_map(view).collect(),
            Some(Value::Object(views)) => views
                .iter()
                .map(|(name, fields)| View {
                    name: name.clone(),
                    fields: texts(fields.get("fields").unwrap_or(fields)),
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the relations to other streams that the stream declares.
    pub fn relations(&self) -> Vec<Relation> {
        let declared = self.query("expand");
        let relation = |relation: &Value| {
            let text = |name: &str| relation.get(name).and_then(Value::as_str);
            let name = text("name")?;
            let limits = declared.and_then(Value::as_array).and_then(|expand| {
                expand.iter().find(|expand| expand.get("name").and_then(Value::as_str) == Some(name))
            });
            let limit = |name: &str| {
                limits
                    .and_then(|limits| limits.get(name)?.as_u64())
                    .and_then(|limit| usize::try_from(limit).ok())
            };
            Some(Relation {
                name: name.to_owned(),
                stream: text("stream")?.parse().ok()?,
                kind: match text("cardinality").unwrap_or("has_many") {
                    "has_one" | "one_to_one" | "one" => RelationKind::HasOne,
                    "belongs_to" | "many_to_one" => RelationKind::BelongsTo,
                    _ => RelationKind::HasMany,
                },
                foreign_key: text("foreign_key")?.to_owned(),
                default_limit: limit("default_limit"),
                max_limit: limit("max_limit"),
            })
        };
        let relations = self.given.get("relationships").and_then(Value::as_array);
        relations.map(|relations| relations.iter().filter_map(relation).collect()).unwrap_or_default()
    }

    fn query(&self, part: &str) -> Option<&Value> {
        self.given.get("query")?.get(part)
    }

    /// Returns the types of a declared field, or an empty list if the schema has none.
    fn types(&self, field: &str) -> Vec<String> {
        let Some(schema) = self.properties().and_then(|properties| properties.get(field)) else {
            return Vec::new();
        };
        let mut types = schema.get("type").map(texts).unwrap_or_default();
        types.retain(|name| name != "null");
        if let Some(format @ ("date-time" | "date")) = schema.get("format").and_then(Value::as_str) {
            types.iter_mut().filter(|name| *name == "string").for_each(|name| format.clone_into(name));
        }
        types
    }

    fn properties(&self) -> Option<&RecordData> {
        self.given.get("schema")?.get("properties")?.as_object()
    }

    /// Returns the sections of `query` that list the fields of capabilities, as far as there are any.
    fn sections(&self) -> [Option<&Value>; SECTIONS.len()] {
        SECTIONS.map(|(_, path)| path.iter().try_fold(self.given.get("query")?, |part, name| part.get(*name)))
    }
}

/// Sections of `query` with the fields that have a capability.
const SECTIONS: [(Capability, &[&str]); 9] = [
    (Capability::Equal, &["exact_filters"]),
    (Capability::Range, &["range_filters"]),
    (Capability::Lexical, &["search", "lexical_fields"]),
    (Capability::GroupBy, &[AGGREGATIONS, "group_by"]),
    (Capability::GroupByTime, &[AGGREGATIONS, "group_by_time"]),
    (Capability::Sum, &[AGGREGATIONS, "sum"]),
    (Capability::Min, &[AGGREGATIONS, "min"]),
    (Capability::Max, &[AGGREGATIONS, "max"]),
    (Capability::CountDistinct, &[AGGREGATIONS, "count_distinct"]),
];

const AGGREGATIONS: &str = "aggregations";

/// Returns true if a section lists a field.
fn lists(section: &Value, field: &str) -> bool {
    match section {
        Value::Array(fields) => fields.iter().any(|listed| listed.as_str() == Some(field)),
        Value::Object(fields) => fields.get(field).is_some_and(|listed| *listed != Value::Bool(false)),
        Value::Bool(all) => *all,
        _ => false,
    }
}

/// Returns the fields of a stream: first the declared ones, then others that were observed in records.
pub fn fields(declaration: Option<&StreamDeclaration>, observed: &[(String, Kinds)]) -> Vec<FieldDetail> {
    let declared = declaration.and_then(StreamDeclaration::properties);
    let rules = declaration.map(Rules::new).unwrap_or_default();
    let mut fields: Vec<FieldDetail> = Vec::new();
    for name in declared.into_iter().flat_map(RecordData::keys) {
        let seen = observed.iter().find(|(seen, _)| seen == name).map(|(_, kinds)| *kinds);
        let seen = seen.unwrap_or_default();
        let mut types = declaration.map(|declaration| declaration.types(name)).unwrap_or_default();
        let seen_types = seen.types();
        // A field declared only as a string can turn out to hold times.
        let is_time = types == ["string"]
            && seen_types.len() == 1
            && seen_types.iter().all(|kind| kind.starts_with("date"));
        if types.is_empty() || is_time {
            types = seen_types;
        }
        fields.push(rules.field(name, types, seen));
    }
    for (name, kinds) in observed {
        if !declared.is_some_and(|declared| declared.contains_key(name)) {
            fields.push(rules.field(name, kinds.types(), *kinds));
        }
    }
    fields
}

/// Rules of a declaration about the capabilities of fields.
#[derive(Debug, Clone, Copy, Default)]
struct Rules<'a> {
    sections: [Option<&'a Value>; SECTIONS.len()],
    /// True if the declaration lists aggregations, which excludes all others.
    has_aggregations: bool,
}

impl<'a> Rules<'a> {
    fn new(declaration: &'a StreamDeclaration) -> Self {
        Self { sections: declaration.sections(), has_aggregations: declaration.query(AGGREGATIONS).is_some() }
    }

    /// Returns a field with the capabilities that its types have, or that a section gives it.
    fn field(&self, name: &str, types: Vec<String>, seen: Kinds) -> FieldDetail {
        let is =
            |wanted: &[&str]| types.is_empty() || types.iter().any(|kind| wanted.contains(&kind.as_str()));
        let (number, time) = (is(&NUMBER_TYPES), is(&TIME_TYPES));
        let text = is(&["string"]);
        let ordered = number || time || text;
        let scalar = ordered || is(&["boolean"]);
        let is_open = |capability| match capability {
            // A list is compared and grouped by its items.
            Capability::Equal | Capability::GroupBy => scalar || is(&["array"]),
            Capability::Range | Capability::Min | Capability::Max => ordered,
            Capability::Lexical => text,
            Capability::Semantic => false,
            Capability::GroupByTime => time || (text && seen.has_time()),
            Capability::Sum => number || (text && seen.has_number_as_text()),
            Capability::CountDistinct => scalar,
        };
        let has = |((capability, path), section): &((Capability, &[&str]), Option<&Value>)| match section {
            Some(section) => lists(section, name),
            None => is_open(*capability) && !(self.has_aggregations && path.first() == Some(&AGGREGATIONS)),
        };
        let capabilities = SECTIONS.into_iter().zip(self.sections).filter(has);
        let capabilities = capabilities.map(|((capability, _), _)| capability).collect();
        FieldDetail { name: name.to_owned(), types, capabilities }
    }
}

/// Returns the strings in a string or an array of strings.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declaration(given: &Value) -> StreamDeclaration {
        StreamDeclaration::read(given.as_object().unwrap().clone()).unwrap()
    }

    fn capabilities(declaration: Option<&StreamDeclaration>, name: &str, kinds: &[Value]) -> Vec<Capability> {
        let mut seen = Kinds::default();
        kinds.iter().for_each(|value| seen.merge(Kinds::from_value(value)));
        let fields = fields(declaration, &[(name.to_owned(), seen)]);
        fields.iter().find(|field| field.name == name).unwrap().capabilities.iter().copied().collect()
    }

    #[test]
    fn undeclared_capabilities_are_allowed() {
        use Capability::*;
        assert_eq!(
            capabilities(None, "n", &[json!(1)]),
            [Equal, Range, GroupBy, Sum, Min, Max, CountDistinct]
        );
        assert_eq!(capabilities(None, "l", &[json!([1])]), [Equal, GroupBy]);
        assert_eq!(capabilities(None, "b", &[json!(true)]), [Equal, GroupBy, CountDistinct]);
        assert!(capabilities(None, "t", &[json!("2026-04-01T00:00:00Z")]).contains(&GroupByTime));
        let column = capabilities(None, "c", &[json!("n/a"), json!("12.50"), json!("")]);
        assert_eq!(column, [Equal, Range, Lexical, GroupBy, Sum, Min, Max, CountDistinct]);
        for time in ["2026-04-01", "2026-04-01T10:00:00Z"] {
            let some_times = capabilities(None, "c", &[json!(""), json!(time)]);
            assert_eq!(some_times, [Equal, Range, Lexical, GroupBy, GroupByTime, Min, Max, CountDistinct]);
        }
        let declared =
            declaration(&json!({"name": "s", "schema": {"properties": {"c": {"type": "string"}}}}));
        assert!(capabilities(Some(&declared), "c", &[json!("12.50")]).contains(&Sum));
        assert!(!capabilities(Some(&declared), "c", &[json!("twelve")]).contains(&Sum));
    }

    #[test]
    fn declared_capabilities_are_exclusive() {
        use Capability::*;
        let given = declaration(&json!({"name": "s", "schema": {"properties": {
            "amount": {"type": ["number", "null"]}, "day": {"type": "string", "format": "date"}}},
            "query": {"range_filters": {"day": ["gte", "lt"]}, "aggregations": {"sum": ["amount"]}}}));
        let amount = capabilities(Some(&given), "amount", &[]);
        assert!(
            amount.contains(&Sum) && !amount.contains(&Range) && !amount.contains(&GroupBy),
            "{amount:?}"
        );
        let day = capabilities(Some(&given), "day", &[]);
        assert!(day.contains(&Range) && day.contains(&Equal) && !day.contains(&Min), "{day:?}");
        assert_eq!(given.types("day"), ["date"]);
        assert_eq!(given.types("amount"), ["number"]);
    }

    #[test]
    fn views_and_relations_are_read_in_both_spellings() {
        let given = declaration(&json!({"name": "s", "views": [{"id": "preview", "fields": ["a", "b"]}],
            "relationships": [{"name": "lines", "stream": "order_lines", "foreign_key": "order_id", "cardinality": "has_many"},
                {"name": "broken"}],
            "query": {"expand": [{"name": "lines", "default_limit": 3, "max_limit": 9}]}}));
        assert_eq!(
            given.views(),
            [View { name: "preview".to_owned(), fields: vec!["a".to_owned(), "b".to_owned()] }]
        );
        let relations = given.relations();
        assert_eq!(relations.len(), 1);
        assert_eq!((relations[0].default_limit, relations[0].max_limit), (Some(3), Some(9)));
        let mapped = declaration(&json!({"name": "s", "views": {"preview": ["a"]}}));
        assert_eq!(mapped.views()[0].fields, ["a"]);
    }
}
