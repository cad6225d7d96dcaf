//! Reads a window of one text field. Offsets count Unicode code points.

use serde_json::Value;

use super::allowance::Allowance;
use super::record::find as find_record;
use crate::record::Window;
use crate::source::store::database::Database;
use crate::source::{QueryFault, RecordQuery, SourceError, WindowQuery, WindowStart};

pub(in crate::source::store) fn window(
    database: &Database,
    query: &WindowQuery,
    allowance: &Allowance,
) -> Result<Window, SourceError> {
    let record = find_record(database, &RecordQuery::new(query.address.clone()), allowance)?;
    let Some(value) = record.data.get(&query.field) else {
        let known: Vec<&str> = record.data.keys().map(String::as_str).take(30).collect();
        return Err(SourceError::InvalidQuery {
            fault: QueryFault::FieldNotFound,
            problem: format!("the record has no field `{}`", query.field),
            hint: format!("Its fields are: {}.", known.join(", ")),
        });
    };
    let Value::String(text) = value else { return Err(not_text(&query.field, value)) };
    query.window_of(record.address, text).ok_or_else(|| {
        let wanted = match &query.start {
            WindowStart::Around { text, .. } => text.as_str(),
            WindowStart::Offset(_) => "",
        };
        SourceError::InvalidQuery {
            fault: QueryFault::QueryNotFound,
            problem: format!("`{wanted}` is not in field `{}`", query.field),
            hint: "Read the field from `offset_chars` 0, or look for another word.".to_owned(),
        }
    })
}

fn not_text(field: &str, value: &Value) -> SourceError {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
        Value::String(_) => "a string",
    };
    SourceError::InvalidQuery {
        fault: QueryFault::FieldNotText,
        problem: format!("field `{field}` is {kind} of {} bytes, not a string", value.to_string().len()),
        hint: format!("Fetch the record with `fields` [\"{field}\"] instead."),
    }
}
