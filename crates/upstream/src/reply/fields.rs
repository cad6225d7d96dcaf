//! Names that servers give to the parts of a result, in order of preference.

use fetchwell_core::record::{parse_timestamp, start_of_day};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::mapping::Pointer;

pub(super) const ID: &[&str] = &[
    "id",
    "uri",
    "identifier",
    "permalink",
    "key",
    "page_id",
    "document_id",
    "doc_id",
    "path",
    "file_path",
    "url",
];
pub(super) const TITLE: &[&str] =
    &["title", "name", "subject", "headline", "heading", "summary", "display_name", "filename"];
pub(super) const TEXT: &[&str] = &[
    "text",
    "content",
    "snippet",
    "excerpt",
    "passage",
    "matched_chunk",
    "body",
    "markdown",
    "description",
    "highlight",
    "summary",
    "preview",
];
pub(super) const URL: &[&str] =
    &["url", "html_url", "web_url", "webUrl", "link", "permalink", "source_url", "href"];
pub(super) const DATE: &[&str] = &[
    "date",
    "updated_at",
    "updatedAt",
    "last_modified",
    "lastModified",
    "modified",
    "modified_at",
    "last_edited_time",
    "published_at",
    "published",
    "created_at",
    "createdAt",
    "created",
    "timestamp",
    "time",
];

/// Objects that servers put around the fields of a result, or beside them.
const WRAPPERS: &[&str] = &["document", "item", "page", "fields", "metadata", "_source", "record", "note"];

/// Returns the text at a pointer, or else of the first of some names: of the object itself, then of the objects in it.
pub(super) fn text_at(object: &Value, pointer: Option<&Pointer>, names: &[&str]) -> Option<String> {
    match pointer {
        Some(pointer) => text_of(pointer.value_in(object)?),
        None => named(object, names).and_then(|(_, value)| text_of(value)),
    }
}

/// Returns the first value with one of some names that has a text, with the name.
pub(super) fn named<'a>(object: &'a Value, names: &[&'a str]) -> Option<(&'a str, &'a Value)> {
    named_as(object, names, |value| text_of(value).map(|_| value))
}

/// Returns the first value with one of some names that can be read, with the name.
pub(super) fn named_as<'a, T>(
    object: &'a Value,
    names: &[&'a str],
    read: impl Fn(&'a Value) -> Option<T>,
) -> Option<(&'a str, T)> {
    let fields = object.as_object()?;
    let inner = || WRAPPERS.iter().filter_map(|name| fields.get(*name)?.as_object());
    let find = |fields: &'a Map<String, Value>| {
        names.iter().find_map(|name| Some((*name, read(fields.get(*name)?)?)))
    };
    find(fields).or_else(|| inner().find_map(find))
}

/// Returns a value as text: strings and numbers, lists of strings as lines, and the text of content items.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.trim().is_empty()).then(|| text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(items) => {
            let line = |item: &Value| match item {
                Value::String(text) => Some(text.clone()),
                Value::Object(fields) => fields.get("text").and_then(Value::as_str).map(str::to_owned),
                _ => None,
            };
            let lines: Vec<String> = items.iter().filter_map(line).collect();
            (!lines.is_empty()).then(|| lines.join("\n"))
        }
        // Notion and others: `{"rendered": ...}`, `{"plain_text": ...}`, `{"value": ...}`.
        Value::Object(fields) => {
            let inner = ["text", "rendered", "plain_text", "value"]
                .iter()
                .find_map(|name| fields.get(*name)?.as_str());
            inner.filter(|text| !text.trim().is_empty()).map(str::to_owned)
        }
        Value::Null | Value::Bool(_) => None,
    }
}

/// Returns a time as RFC 3339 or a day, from these, RFC 2822, or seconds or milliseconds since 1970; `None` for another text.
pub(super) fn time_of(text: &str) -> Option<String> {
    let text = text.trim();
    if parse_timestamp(text).is_some() || start_of_day(text).is_some() {
        return Some(text.to_owned());
    }
    let time = match text.parse::<i64>() {
        Ok(number) if number.abs() < MAX_SECONDS => Timestamp::from_second(number).ok(),
        Ok(number) => Timestamp::from_millisecond(number).ok(),
        Err(_) => jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp()),
    };
    time.map(|time| time.to_string())
}

/// Number from which on a number of a time is in milliseconds: the seconds of the year 5138.
const MAX_SECONDS: i64 = 100_000_000_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_found_by_their_usual_names() {
        for (object, names, expect) in [
            (json!({"uri": "x", "id": 7}), ID, Some("7")),
            (json!({"id": "", "url": "https://a"}), ID, Some("https://a")),
            (json!({"document": {"id": "in"}, "score": 1}), ID, Some("in")),
            (json!({"content": [{"type": "text", "text": "a"}, "b"]}), TEXT, Some("a\nb")),
            (json!({"title": {"plain_text": "T"}}), TITLE, Some("T")),
            (json!({"metadata": {"updated_at": "2026-01-02"}}), DATE, Some("2026-01-02")),
            (json!({"text": true}), TEXT, None),
            (json!([1]), TEXT, None),
        ] {
            assert_eq!(text_at(&object, None, names).as_deref(), expect, "{object}");
        }
        let pointer = "/a/b".parse().unwrap();
        assert_eq!(text_at(&json!({"a": {"b": 2}, "id": 1}), Some(&pointer), ID).as_deref(), Some("2"));
        assert_eq!(text_at(&json!({"id": 1}), Some(&pointer), ID), None);
    }

    #[test]
    fn times_of_several_forms_become_one() {
        for (text, expect) in [
            ("2026-05-14T11:30:00+02:00", Some("2026-05-14T11:30:00+02:00")),
            (" 2026-05-14", Some("2026-05-14")),
            ("1778751000", Some("2026-05-14T09:30:00Z")),
            ("1778751000000", Some("2026-05-14T09:30:00Z")),
            ("Thu, 14 May 2026 09:30:00 GMT", Some("2026-05-14T09:30:00Z")),
            ("99999999999999999", None),
            ("05/14/2026", None),
            ("2026-13-45", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(time_of(text).as_deref(), expect, "{text}");
        }
    }
}
