//! Reads a window of one text field. Offsets count Unicode code points.

use fetchwell_core::record::{Window, kind_name};
use fetchwell_source::{QueryFault, RecordQuery, SourceError, WindowQuery, WindowStart};
use serde_json::Value;

use super::allowance::Allowance;
use super::record::find as find_record;
use super::tables::Tables;

/// Returns a window of a text field of a record.
///
/// # Errors
///
/// The record or the field does not exist, or the tables cannot be read.
pub fn window<T: Tables>(tables: &T, query: &WindowQuery, allowance: &Allowance) -> Result<Window, T::Error> {
    let record = find_record(tables, &RecordQuery::new(query.address.clone()), allowance)?;
    let Some(value) = record.data.get(&query.field) else {
        let known: Vec<&str> = record.data.keys().map(String::as_str).take(30).collect();
        return Err(SourceError::InvalidQuery {
            fault: QueryFault::FieldNotFound,
            problem: format!("the record has no field `{}`", query.field),
            hint: format!("Its fields are: {}.", known.join(", ")),
        }
        .into());
    };
    let Value::String(text) = value else { return Err(not_text(&query.field, value).into()) };
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
        .into()
    })
}

fn not_text(field: &str, value: &Value) -> SourceError {
    SourceError::InvalidQuery {
        fault: QueryFault::FieldNotText,
        problem: format!(
            "field `{field}` is {} of {} bytes, not a string",
            kind_name(value),
            value.to_string().len()
        ),
        hint: format!("Fetch the record with `fields` [\"{field}\"] instead."),
    }
}
