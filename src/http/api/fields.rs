//! Which fields of a record are shown: those that were asked for, always with an id.

use serde_json::Value;

use super::Call;
use super::error::Failure;
use crate::fit::shortened;
use crate::http::v1::ApiError;
use crate::record::{FieldGroup, FieldPath, Record, RecordData, project};
use crate::source::{SourceError, StreamQuery};
use crate::tools::Previews;

/// The most names in `fields`.
pub(super) const MAX_FIELDS: usize = 100;

/// What a record is asked for by, also where its data has no such field.
const ID: &str = "id";

/// The fields of a summary whose stream declares none.
const VALUES_SHOWN: usize = 6;

/// The longest value in it, and the longest name, in bytes.
const VALUE_SHOWN: usize = 60;

/// Which fields were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fields {
    /// None in particular.
    Unsaid,
    /// Every one.
    All,
    /// These, and the id.
    These(Vec<FieldPath>),
}

impl Fields {
    /// Reads `all`, or names and paths with commas between them.
    pub(super) fn read(text: Option<&str>) -> Result<Self, ApiError> {
        let Some(text) = text else { return Ok(Self::Unsaid) };
        if text == "all" {
            return Ok(Self::All);
        }
        let paths: Result<Vec<FieldPath>, _> = split(text).map(str::parse).collect();
        let wrong = |problem: String| ApiError::bad("invalid_argument", problem).about("fields");
        let paths = paths.map_err(|problem| wrong(problem.to_string()))?;
        if paths.len() > MAX_FIELDS {
            return Err(wrong(format!("it names more than {MAX_FIELDS} fields")));
        }
        Ok(Self::These(paths))
    }
}

/// Names between commas that are not inside quotation marks.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |character| {
        quoted ^= character == '"';
        character == ',' && !quoted
    })
    .map(str::trim)
    .filter(|name| !name.is_empty())
}

/// Returns the parts of a record at some paths. The name of a group that its stream declares stands for the fields of
/// the group, unless the record has a field of that name.
pub(super) fn picked(record: &Record, paths: &[FieldPath], previews: &Previews) -> RecordData {
    let groups = previews.groups(&record.address);
    let paths: Vec<FieldPath> = paths
        .iter()
        .flat_map(|path| match group_of(groups, record, path) {
            Some(group) => group.paths.as_slice(),
            None => std::slice::from_ref(path),
        })
        .cloned()
        .collect();
    project(&record.data, &paths)
}

/// Returns the group that a path names.
fn group_of<'a>(groups: &'a [FieldGroup], record: &Record, path: &FieldPath) -> Option<&'a FieldGroup> {
    let is_name = path.is_whole_field() && !record.data.contains_key(path.root());
    groups.iter().find(|group| is_name && group.name == path.root())
}

/// Refuses fields, and names inside fields, that neither these records have nor their stream.
pub(super) async fn known(
    call: &Call<'_>,
    stream: &StreamQuery,
    records: &[Record],
    paths: &[FieldPath],
) -> Result<(), Failure> {
    let has = |path: &&FieldPath| {
        let path = std::slice::from_ref(*path);
        !records.iter().any(|record| !project(&record.data, path).is_empty())
    };
    let missing: Vec<&FieldPath> = paths.iter().filter(has).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let details = call.toolbox.asked_source().stream(stream).await?.details;
    let unknown = |field: String, known: Vec<String>| -> Failure {
        SourceError::UseKnownField { stream: stream.stream.to_string(), field, known }.into()
    };
    let mut known: Vec<String> = Vec::new();
    let declared = details.iter().flat_map(|detail| detail.fields.iter().map(|field| field.name.clone()));
    let groups = details.iter().flat_map(|detail| detail.groups().into_iter().map(|group| group.name));
    for name in declared.chain(groups) {
        // Each connection has the stream, and most of its fields are the same.
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let has_root = |path: &FieldPath| {
        known.iter().any(|field| field == path.root())
            || records.iter().any(|record| record.data.contains_key(path.root()))
    };
    let is_declared = |path: &FieldPath| {
        let properties = details
            .iter()
            .filter_map(|detail| detail.declaration.as_ref()?.get("schema")?.get("properties")?.as_object());
        properties.into_iter().any(|properties| path.is_declared_in(properties))
    };
    for path in missing {
        if !has_root(path) {
            return Err(unknown(path.root().to_owned(), known));
        }
        let inside = inner_names(records, path);
        // Without such a value in these records, nothing shows that the name is wrong.
        if !path.is_whole_field() && !inside.is_empty() && !is_declared(path) {
            return Err(unknown(path.to_string(), inside));
        }
    }
    Ok(())
}

/// Returns the paths inside the field that a path begins with, as the first record has them where it is not empty.
fn inner_names(records: &[Record], path: &FieldPath) -> Vec<String> {
    let root = FieldPath::field(path.root());
    let inside = |value: &Value| -> Vec<String> {
        match value {
            Value::Object(fields) => fields.keys().map(|name| root.then(name).to_string()).collect(),
            Value::Array(items) => match items.first() {
                Some(Value::Object(fields)) => {
                    let inner = |name: &String| FieldPath::field(name).to_string();
                    fields.keys().map(|name| format!("{root}[].{}", inner(name))).collect()
                }
                Some(_) => vec![root.to_string()],
                None => Vec::new(),
            },
            Value::Null => Vec::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![root.to_string()],
        }
    };
    let values = records.iter().filter_map(|record| record.data.get(path.root()));
    values.map(inside).find(|names| !names.is_empty()).unwrap_or_default()
}

/// A record with only what was asked of it, and an id to ask for the rest by.
pub(super) fn selected(mut record: Record, fields: &Fields, is_summary: bool, previews: &Previews) -> Record {
    let picked = if is_summary {
        match project(&record.data, previews.of(&record.address)) {
            picked if picked.is_empty() => Some(telling(&record.data)),
            picked => Some(picked),
        }
    } else if let Fields::These(paths) = fields {
        Some(picked(&record, paths, previews))
    } else {
        None
    };
    let picked = match picked {
        None if record.data.contains_key(ID) => return record,
        None => record.data.clone(),
        Some(picked) => picked,
    };
    record.data = with_id(&record, picked);
    record
}

/// The summary of a record whose stream does not say what tells most: its first short values, nulls among them.
fn telling(data: &RecordData) -> RecordData {
    let tells = |(name, value): &(&String, &Value)| {
        name.len() <= VALUE_SHOWN && !matches!(value, Value::Array(_) | Value::Object(_))
    };
    let short = |(name, value): (&String, &Value)| (name.clone(), shortened(value, VALUE_SHOWN));
    data.iter().filter(tells).take(VALUES_SHOWN).map(short).collect()
}

/// Fields that were picked, with the id before them.
pub(super) fn with_id(record: &Record, picked: RecordData) -> RecordData {
    if picked.contains_key(ID) {
        return picked;
    }
    let mut data = only_id(record);
    data.extend(picked);
    data
}

/// The id of a record: its own, or its key where it has none that a caller could ask by.
pub(super) fn only_id(record: &Record) -> RecordData {
    let own = record.data.get(ID).filter(|id| !id.is_array() && !id.is_object() && !id.is_null());
    let id = own.cloned().unwrap_or_else(|| record.address.record.as_str().into());
    RecordData::from_iter([(ID.to_owned(), id)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_between_commas() {
        let names = |text: &str| match Fields::read(Some(text)) {
            Ok(Fields::These(paths)) => paths.iter().map(ToString::to_string).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            names("guestDetails, priceBreakdown.nightlyRate"),
            ["guestDetails", "priceBreakdown.nightlyRate"]
        );
        assert_eq!(names("\"a,b\",c"), ["\"a,b\"", "c"]);
        assert_eq!(Fields::read(Some("all")).unwrap(), Fields::All);
        assert_eq!(Fields::read(None).unwrap(), Fields::Unsaid);
        assert_eq!(Fields::read(Some("a..b")).unwrap_err().code, "invalid_argument");
    }
}
