//! Pieces of one text field. Offsets are code points.

use serde_json::Value;

use super::allowance::Allowance;
use super::database::Database;
use super::read::find as find_record;
use crate::fit::{characters, chars_before};
use crate::record::Window;
use crate::source::{QueryFault, RecordQuery, SourceError, WindowQuery, WindowStart};

pub(super) fn window(
    database: &Database,
    query: &WindowQuery,
    allowance: &Allowance,
) -> Result<Window, SourceError> {
    let record = find_record(database, &RecordQuery::of(query.address.clone()), allowance)?;
    let Some(value) = record.data.get(&query.field) else {
        let known: Vec<&str> = record.data.keys().map(String::as_str).take(30).collect();
        return Err(SourceError::CorrectQuery {
            fault: QueryFault::FieldNotFound,
            problem: format!("the record has no field `{}`", query.field),
            hint: format!("Its fields are: {}.", known.join(", ")),
        });
    };
    let Value::String(text) = value else { return Err(not_text(&query.field, value)) };
    let total_chars = text.chars().count();
    let (start, count, found_chars) = match &query.start {
        WindowStart::Offset(offset) => ((*offset).min(total_chars), query.limit_chars, None),
        WindowStart::Around { text: wanted, before, after } => {
            let Some(found) = find(text, wanted) else {
                return Err(SourceError::CorrectQuery {
                    fault: QueryFault::QueryNotFound,
                    problem: format!("`{wanted}` is not in field `{}`", query.field),
                    hint: "Read the field from `offset_chars` 0, or look for another word.".to_owned(),
                });
            };
            // What was looked for is inside the window, whatever else gives way.
            let room = query.limit_chars.saturating_sub(found.len());
            let start = found.start.saturating_sub((*before).min(room));
            let count = (found.end - start).saturating_add(*after).min(query.limit_chars.max(found.len()));
            (start, count, Some(found))
        }
    };
    Ok(Window {
        text: characters(text, start, count).to_owned(),
        address: record.address,
        start_chars: start,
        total_chars,
        found_chars,
    })
}

fn not_text(field: &str, value: &Value) -> SourceError {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
        Value::String(_) => "a text",
    };
    SourceError::CorrectQuery {
        fault: QueryFault::FieldNotText,
        problem: format!("field `{field}` is {kind} of {} bytes and no text", value.to_string().len()),
        hint: format!("Fetch the record with `fields` [\"{field}\"] instead."),
    }
}

/// The first place of a text in another, in code points: as it is written, else in any case.
fn find(text: &str, wanted: &str) -> Option<std::ops::Range<usize>> {
    if let Some(at) = text.find(wanted) {
        let start = chars_before(text, at);
        return Some(start..start + wanted.chars().count());
    }
    // One character each, so that positions stay what they are.
    let lower =
        |text: &str| text.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect::<Vec<char>>();
    let (text, wanted) = (lower(text), lower(wanted));
    let start = text.windows(wanted.len().max(1)).position(|piece| piece == wanted)?;
    Some(start..start + wanted.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_code_points_in_any_case() {
        assert_eq!(find("a😀b invoice", "invoice"), Some(4..11));
        assert_eq!(find("ÄRGER über", "ärger"), Some(0..5));
        assert_eq!(find("Äb äb", "äb"), Some(3..5));
        assert_eq!(find("abc", "x"), None);
        assert_eq!(find("", "x"), None);
    }
}
