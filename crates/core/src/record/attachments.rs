//! The attachments of a record, found by the names of fields.
//!
//! `attachments` and fields with similar names have the names of the attachments: strings, or objects with a name. The text of
//! an attachment is a field of its own: `attachment_1` has that of the first name. Texts beyond the last such field, and those
//! of attachments without a name, are in `attached_text`, each below a line with its name.

use serde_json::Value;

use super::RecordData;
use super::facts::field_named;

/// Names of the fields that have the names of attachments, or say whether there are any.
pub const ATTACHMENT_FIELDS: [&str; 8] = [
    "attachments",
    "Attachments",
    "attachment_names",
    "attachmentNames",
    "attached_files",
    "has_attachments",
    "hasAttachments",
    "has_attachment",
];

/// Name of the field with the texts of attachments that have no field of their own.
pub const OTHER_ATTACHED_TEXT: &str = "attached_text";

/// Start of the name of a field with the text of one attachment.
const OWN_TEXT: &str = "attachment_";

/// Start and end of the line with a name in [`OTHER_ATTACHED_TEXT`].
const HEADING: [&str; 2] = ["--- ", " ---"];

/// Texts that say that there are no attachments.
const NONE: [&str; 4] = ["", "0", "false", "no"];

/// Returns the name of the field with the text of an attachment, by the number of the attachment from 1.
#[must_use]
pub fn attachment_field(number: usize) -> String {
    format!("{OWN_TEXT}{number}")
}

/// Returns the line above the text of an attachment that has no field of its own.
#[must_use]
pub fn attachment_heading(name: &str) -> String {
    let [start, end] = HEADING;
    format!("{start}{name}{end}")
}

/// Returns true if the value of an attachment field says that there are attachments.
#[must_use]
pub fn has_attachments(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(has) => *has,
        Value::Number(count) => count.as_f64().is_some_and(|count| count > 0.0),
        Value::String(text) => !NONE.iter().any(|none| text.trim().eq_ignore_ascii_case(none)),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// Returns the names of attachments in the value of an attachment field.
#[must_use]
pub fn attachment_names(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(name_of).collect(),
        single => name_of(single).into_iter().collect(),
    }
}

/// Returns the name of one attachment: a string, or the name in an object.
fn name_of(item: &Value) -> Option<&str> {
    match item {
        Value::String(name) => Some(name),
        Value::Object(fields) => {
            let names = ["filename", "name", "title"].iter();
            names.filter_map(|field| field_named(fields, field)?.as_str()).next()
        }
        _ => None,
    }
}

/// Returns the name of the attachment that a field has the text of.
#[must_use]
pub fn attachment_of_field<'a>(data: &'a RecordData, field: &str) -> Option<&'a str> {
    let number: usize = field.strip_prefix(OWN_TEXT)?.parse().ok()?;
    let names = data.get("attachments")?.as_array()?;
    names.get(number.checked_sub(1)?)?.as_str()
}

/// Returns the name of the attachment that byte `at` of the text of a field belongs to.
#[must_use]
pub fn attachment_at<'a>(data: &'a RecordData, field: &str, text: &'a str, at: usize) -> Option<&'a str> {
    if field != OTHER_ATTACHED_TEXT {
        return attachment_of_field(data, field);
    }
    let before = text.get(..at)?;
    // The line of the match itself needs no heading.
    let lines = before.get(..before.rfind('\n')?)?.lines().rev();
    let [start, end] = HEADING;
    lines.filter_map(|line| line.strip_prefix(start)?.strip_suffix(end)).next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_say_whether_there_are_attachments() {
        for (value, has, names) in [
            (json!(["a.pdf", "b.pdf"]), true, vec!["a.pdf", "b.pdf"]),
            (
                json!([{"name": "a.pdf", "size": 1}, {"fileName": "b.pdf"}, {"id": 3}]),
                true,
                vec!["a.pdf", "b.pdf"],
            ),
            (json!({"title": "a.pdf"}), true, vec!["a.pdf"]),
            (json!("a.pdf"), true, vec!["a.pdf"]),
            (json!(true), true, vec![]),
            (json!(2), true, vec![]),
            (json!([]), false, vec![]),
            (json!({}), false, vec![]),
            (json!(0), false, vec![]),
            (json!(false), false, vec![]),
            (json!("False"), false, vec!["False"]),
            (Value::Null, false, vec![]),
        ] {
            assert_eq!((has_attachments(&value), attachment_names(&value)), (has, names), "{value}");
        }
    }

    #[test]
    fn texts_belong_to_attachments() {
        let data = json!({"attachments": ["a.txt", "b.txt"], "attachment_2": "two", "attached_text":
            "loose\n\n--- c.txt ---\nthree\n--- no heading\n\n--- d.txt ---\nfour"});
        let data = data.as_object().unwrap();
        assert_eq!(attachment_field(2), "attachment_2");
        for (field, expect) in [
            ("attachment_1", Some("a.txt")),
            ("attachment_2", Some("b.txt")),
            ("attachment_3", None),
            ("attachment_0", None),
            ("attachment_x", None),
            ("attachments", None),
            ("body", None),
        ] {
            assert_eq!(attachment_of_field(data, field), expect, "{field}");
        }
        let text = data["attached_text"].as_str().unwrap();
        for (word, expect) in [
            ("loose", None),
            ("three", Some("c.txt")),
            ("heading", Some("c.txt")),
            ("d.txt", Some("c.txt")),
            ("four", Some("d.txt")),
        ] {
            let at = text.find(word).unwrap();
            assert_eq!(attachment_at(data, "attached_text", text, at), expect, "{word}");
        }
        assert_eq!(attachment_heading("c.txt"), "--- c.txt ---");
    }
}
