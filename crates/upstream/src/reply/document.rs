//! The record of a fetch.

use fetchwell_core::record::{RecordData, WebLink};
use serde_json::Value;

use super::content::{Content, ToolError, error_inside};
use super::fields::{DATE, TEXT, TITLE, URL, named, named_as, text_of, time_of};
use crate::mapping::{FetchMapping, Pointer};

/// Fields that records have in the order in which they are shown.
const FIELDS: [&str; 4] = ["title", "url", "date", "text"];

/// Fields of an answer that say nothing about the record.
const DROPPED: &[&str] = &["id", "error"];

/// Reads a record: `title`, `url`, `date` and `text`, found by the mapping or by their usual names, and the other fields of the
/// answer as they are.
///
/// # Errors
///
/// The answer is an error, or empty.
pub(crate) fn document(content: Content, mapping: &FetchMapping) -> Result<RecordData, ToolError> {
    let Some(json) = content.json else {
        if content.text.trim().is_empty() {
            return Err(ToolError("the answer is empty".to_owned()));
        }
        return Ok(of_text(content.text));
    };
    let json = only(json);
    if let Some(words) = error_inside(&json)
        && (named(&json, TEXT).is_none() || json.get("error").is_none())
    {
        return Err(ToolError(words));
    }
    let Value::Object(mut rest) = json else {
        // A list has no names for its parts.
        return Ok(RecordData::from_iter([("text".to_owned(), Value::from(json.to_string()))]));
    };
    let whole = Value::Object(rest.clone());
    let mut data = RecordData::new();
    let FetchMapping { title, text, url, date, .. } = mapping;
    let places: [(&Option<Pointer>, &[&str]); 4] = [(title, TITLE), (url, URL), (date, DATE), (text, TEXT)];
    for (field, (pointer, names)) in FIELDS.iter().zip(places) {
        let read = |value| match *field {
            "date" => time_of(&text_of(value)?),
            "url" => text_of(value).filter(|url| url.parse::<WebLink>().is_ok()),
            _ => text_of(value),
        };
        let found = match pointer {
            Some(pointer) => pointer.value_in(&whole).and_then(read).map(|value| (pointer.field(), value)),
            None => named_as(&whole, names, read).map(|(name, value)| (Some(name), value)),
        };
        if let Some((name, value)) = found {
            // A field of the object itself is not shown twice; one of an object in it stays in its place.
            name.map(|name| rest.shift_remove(name));
            data.insert((*field).to_owned(), Value::from(value));
        }
    }
    // Some servers repeat the id as the link.
    rest.retain(|name, value| !URL.contains(&name.as_str()) || Some(&*value) != whole.get("id"));
    for (name, value) in rest {
        let is_empty = match &value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        if !is_empty && !DROPPED.contains(&name.as_str()) && !data.contains_key(&name) {
            data.insert(name, value);
        }
    }
    if data.is_empty() {
        return Err(ToolError("the answer has no fields".to_owned()));
    }
    Ok(data)
}

/// Returns the record in a list of one, or in an object around it.
fn only(json: Value) -> Value {
    match json {
        Value::Array(mut list) if list.len() == 1 => list.pop().map_or(Value::Null, only),
        Value::Object(mut fields) if fields.len() == 1 => {
            let wrapper = ["document", "item", "page", "record", "note", "data", "results"];
            match wrapper.iter().find_map(|name| fields.shift_remove(*name)) {
                Some(inner @ Value::Object(_)) => inner,
                Some(Value::Array(list)) if list.len() == 1 => list.into_iter().next().unwrap_or_default(),
                Some(other) => other,
                None => Value::Object(fields),
            }
        }
        other => other,
    }
}

/// Returns a record of a plain text. The heading that a Markdown text begins with is its title.
fn of_text(text: String) -> RecordData {
    let heading = text.trim_start().lines().next().and_then(|line| line.strip_prefix("# "));
    let title = heading.map(|title| ("title".to_owned(), Value::from(title.trim())));
    title.into_iter().chain([("text".to_owned(), Value::from(text))]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(json: Value, mapping: &FetchMapping, expect: &Value) {
        let content = Content { json: Some(json), text: String::new(), resources: Vec::new() };
        assert_eq!(Value::Object(document(content, mapping).unwrap()), *expect);
    }

    #[test]
    fn records_have_the_same_names_whatever_the_server_calls_them() {
        let auto = FetchMapping::default();
        check(
            json!({"id": "1", "title": "T", "text": "x", "url": "https://a", "metadata": {"author": "Ann"}}),
            &auto,
            &json!({"title": "T", "url": "https://a", "text": "x", "metadata": {"author": "Ann"}}),
        );
        check(
            json!([{"name": "T", "content": "x", "updated_at": "2026-01-02", "labels": ["a"], "url": null}]),
            &auto,
            &json!({"title": "T", "date": "2026-01-02", "text": "x", "labels": ["a"]}),
        );
        check(json!({"document": {"heading": "T", "body": "x"}}), &auto, &json!({"title": "T", "text": "x"}));
        let mapping = FetchMapping { text: "/a/b".parse().ok(), ..FetchMapping::default() };
        check(json!({"a": {"b": "x"}, "text": "no"}), &mapping, &json!({"text": "x", "a": {"b": "x"}}));
        // A value that is no time and no link stays as it is.
        check(
            json!({"title": "T", "text": "x", "date": "in May", "updated_at": "2026-01-02", "url": "notes://7"}),
            &auto,
            &json!({"title": "T", "date": "2026-01-02", "text": "x", "url": "notes://7"}),
        );
        check(json!({"id": "a/7", "text": "x", "url": "a/7"}), &auto, &json!({"text": "x"}));
        check(json!([1, 2]), &auto, &json!({"text": "[1,2]"}));
    }

    #[test]
    fn a_text_is_a_record_and_an_error_is_none() {
        let content =
            |json: Option<Value>, text: &str| Content { json, text: text.to_owned(), resources: Vec::new() };
        let auto = FetchMapping::default();
        let read = document(content(None, "# Plan\n\nBuy"), &auto).unwrap();
        assert_eq!(Value::Object(read), json!({"title": "Plan", "text": "# Plan\n\nBuy"}));
        for (json, text) in [(None, " "), (Some(json!({})), ""), (Some(json!({"error": "gone"})), "")] {
            assert!(document(content(json, text), &auto).is_err(), "{text}");
        }
        let both = json!({"error": "stale", "text": "x"});
        assert!(document(content(Some(both), ""), &auto).is_ok());
    }
}
