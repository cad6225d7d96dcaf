//! Field selection of `/api/v1`: the requested fields of a record, always with its id.

use fetchwell_core::fit::shortened;
use fetchwell_core::record::{FieldGroup, FieldPath, Record, RecordData, project};
use fetchwell_source::{SourceError, StreamQuery};
use fetchwell_tools::Previews;
use serde_json::Value;

use super::call::Call;
use super::error::ApiError;
use crate::error::RequestError;

/// Maximum number of names in `fields`.
pub(super) const MAX_FIELDS: usize = 100;

/// Name of the field that identifies a record, even if the record has no such field.
pub(super) const ID: &str = "id";

/// Number of fields in a summary if the stream declares none.
const SUMMARY_FIELDS: usize = 6;

/// Maximum bytes of a value, and of a name, in such a summary.
const MAX_SUMMARY_VALUE_BYTES: usize = 60;

/// Fields that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fields {
    /// No selection in the request.
    Unspecified,
    /// Every field (`all`).
    All,
    /// Fields at these paths, and the id.
    Paths(Vec<FieldPath>),
}

impl Fields {
    /// Parses `all`, or names and paths separated by commas.
    pub(super) fn read(text: Option<&str>) -> Result<Self, RequestError> {
        let Some(text) = text else { return Ok(Self::Unspecified) };
        if text == "all" {
            return Ok(Self::All);
        }
        let paths: Result<Vec<FieldPath>, _> = split(text).map(str::parse).collect();
        let wrong = |problem: String| RequestError::bad("invalid_argument", problem).about("fields");
        let paths = paths.map_err(|problem| wrong(problem.to_string()))?;
        if paths.len() > MAX_FIELDS {
            return Err(wrong(format!("it names more than {MAX_FIELDS} fields")));
        }
        Ok(Self::Paths(paths))
    }
}

/// Splits at commas outside quotation marks.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |character| {
        quoted ^= character == '"';
        character == ',' && !quoted
    })
    .map(str::trim)
    .filter(|name| !name.is_empty())
}

/// Returns the parts of a record at some paths. The name of a group that the stream declares selects the fields of
/// the group, unless the record has a field of that name.
pub(super) fn select_paths(record: &Record, paths: &[FieldPath], previews: &Previews) -> RecordData {
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

/// Returns the group that a path names, if it names one.
fn group_of<'a>(groups: &'a [FieldGroup], record: &Record, path: &FieldPath) -> Option<&'a FieldGroup> {
    let is_name = path.is_whole_field() && !record.data.contains_key(path.root());
    groups.iter().find(|group| is_name && group.name == path.root())
}

/// Refuses fields, and names inside fields, that neither the records nor their stream have.
pub(super) async fn known(
    call: &Call<'_>,
    stream: &StreamQuery,
    records: &[Record],
    paths: &[FieldPath],
) -> Result<(), ApiError> {
    let has = |path: &&FieldPath| {
        let path = std::slice::from_ref(*path);
        !records.iter().any(|record| !project(&record.data, path).is_empty())
    };
    let missing: Vec<&FieldPath> = paths.iter().filter(has).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let details = call.toolbox.source().stream(stream).await?.details;
    let unknown = |field: String, known: Vec<String>| -> ApiError {
        SourceError::UnknownField { stream: stream.stream.to_string(), field, known }.into()
    };
    let mut known: Vec<String> = Vec::new();
    let declared = details.iter().flat_map(|detail| detail.fields.iter().map(|field| field.name.clone()));
    let groups: Vec<FieldGroup> = details.iter().flat_map(|detail| detail.groups()).collect();
    for name in declared.chain(groups.iter().map(|group| group.name.clone())) {
        // Several connections can have the stream, with mostly the same fields.
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let is_field = |path: &FieldPath| {
        let declared = details.iter().flat_map(|detail| &detail.fields);
        declared.into_iter().any(|field| field.name == path.root())
            || records.iter().any(|record| record.data.contains_key(path.root()))
    };
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
        // A group has fields, and nothing inside it has a name of its own.
        if let Some(group) = groups.iter().find(|group| group.name == path.root())
            && !path.is_whole_field()
            && !is_field(path)
        {
            return Err(unknown(path.to_string(), group.paths.iter().map(ToString::to_string).collect()));
        }
        let inside = inner_names(records, path);
        // Without a value of that field in the records, there is no evidence that the name is wrong.
        if !path.is_whole_field() && !inside.is_empty() && !is_declared(path) {
            return Err(unknown(path.to_string(), inside));
        }
    }
    Ok(())
}

/// Returns the paths inside the root field of a path, from the first record with a value there.
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

/// Returns a record with the requested fields, and an id to request the rest with.
pub(super) fn selected(mut record: Record, fields: &Fields, is_summary: bool, previews: &Previews) -> Record {
    let picked = if is_summary {
        match project(&record.data, previews.summary(&record.address)) {
            picked if picked.is_empty() => Some(default_summary(&record.data)),
            picked => Some(picked),
        }
    } else if let Fields::Paths(paths) = fields {
        Some(select_paths(&record, paths, previews))
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

/// Returns the summary of a record if its stream declares no summary fields: the first short values, including nulls.
fn default_summary(data: &RecordData) -> RecordData {
    let tells = |(name, value): &(&String, &Value)| {
        name.len() <= MAX_SUMMARY_VALUE_BYTES && !matches!(value, Value::Array(_) | Value::Object(_))
    };
    let short = |(name, value): (&String, &Value)| {
        (name.clone(), shortened(value, MAX_SUMMARY_VALUE_BYTES).into_owned())
    };
    data.iter().filter(tells).take(SUMMARY_FIELDS).map(short).collect()
}

/// Returns the fields with the id in front.
pub(super) fn with_id(record: &Record, picked: RecordData) -> RecordData {
    if picked.contains_key(ID) {
        return picked;
    }
    let mut data = only_id(record);
    data.extend(picked);
    data
}

/// Returns the id of a record: its own, or its key if it has none by which it can be requested.
pub(super) fn only_id(record: &Record) -> RecordData {
    RecordData::from_iter([(ID.to_owned(), id_of(record))])
}

/// Returns the id of a record as [`only_id`] does, without its name.
pub(super) fn id_of(record: &Record) -> Value {
    let own = record.data.get(ID).filter(|id| !id.is_array() && !id.is_object() && !id.is_null());
    own.cloned().unwrap_or_else(|| record.address.record.as_str().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_between_commas() {
        let names = |text: &str| match Fields::read(Some(text)) {
            Ok(Fields::Paths(paths)) => paths.iter().map(ToString::to_string).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            names("guestDetails, priceBreakdown.nightlyRate"),
            ["guestDetails", "priceBreakdown.nightlyRate"]
        );
        assert_eq!(names("\"a,b\",c"), ["\"a,b\"", "c"]);
        assert_eq!(Fields::read(Some("all")).unwrap(), Fields::All);
        assert_eq!(Fields::read(None).unwrap(), Fields::Unspecified);
        assert_eq!(Fields::read(Some("a..b")).unwrap_err().code, "invalid_argument");
    }
}
