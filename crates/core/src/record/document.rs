//! The text of a whole record.

use std::ops::Range;

use serde_json::Value;

use super::RecordData;
use super::attachments::attachment_of_field;

/// Maximum length, in characters, of a string on the line of its field name.
const INLINE_CHARS: usize = 200;

/// Maximum length, in characters, of the name of an attachment above its text. A longer one is left out.
const MAX_NAME_CHARS: usize = 200;

/// The text of a record, with the places of the texts of its attachments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentText {
    /// Text of the record.
    pub text: String,
    /// Texts of attachments that stand below the name of their field, in the order of the text.
    pub attachments: Vec<AttachmentText>,
}

/// The place of the text of an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentText {
    /// Name of the field.
    pub field: String,
    /// Bytes of the text with the line above it.
    pub range: Range<usize>,
}

/// Returns the record's fields as text, as [`document_with_attachments`] does.
#[must_use]
pub fn document_text(data: &RecordData) -> String {
    document_with_attachments(data).text
}

/// Returns the record's fields as text: first the short ones, a line each (`subject: Work invoice 2`), then each long
/// or multi-line string under its name, verbatim. The text of an attachment has the name of its file there, too.
///
/// Nothing is left out and long strings are not escaped, so the text contains every character of them. For a record
/// of one string, the text is that string.
#[must_use]
pub fn document_with_attachments(data: &RecordData) -> DocumentText {
    if let [Value::String(only)] = data.values().collect::<Vec<_>>().as_slice() {
        return DocumentText { text: only.clone(), attachments: Vec::new() };
    }
    let is_long = |value: &Value| matches!(value, Value::String(text) if !is_inline(text));
    let (mut text, mut attachments) = (String::new(), Vec::<AttachmentText>::new());
    for (name, value) in data.iter().filter(|(_, value)| !is_long(value)) {
        push_name(&mut text, name, attachment_of_field(data, name));
        text.push_str(": ");
        match value {
            Value::String(short) => text.push_str(short),
            other => text.push_str(&other.to_string()),
        }
        text.push('\n');
    }
    for (name, value) in data {
        if let Value::String(long) = value
            && !is_inline(long)
        {
            if !text.is_empty() {
                text.push('\n');
                // The empty line belongs to the text before it.
                if let Some(before) =
                    attachments.last_mut().filter(|before| before.range.end + 1 == text.len())
                {
                    before.range.end = text.len();
                }
            }
            let start = text.len();
            let attachment = attachment_of_field(data, name);
            push_name(&mut text, name, attachment);
            text.push_str(":\n");
            text.push_str(long);
            text.push('\n');
            if attachment.is_some() {
                attachments.push(AttachmentText { field: name.clone(), range: start..text.len() });
            }
        }
    }
    text.truncate(text.strip_suffix('\n').map_or(0, str::len));
    if let Some(last) = attachments.last_mut() {
        last.range.end = last.range.end.min(text.len());
    }
    DocumentText { text, attachments }
}

/// Appends the name of a field, with that of the attachment that it has the text of.
fn push_name(text: &mut String, field: &str, attachment: Option<&str>) {
    text.push_str(field);
    let is_name =
        |name: &&str| name.chars().nth(MAX_NAME_CHARS).is_none() && !name.contains(char::is_control);
    if let Some(name) = attachment.filter(is_name) {
        text.push_str(" (");
        text.push_str(name);
        text.push(')');
    }
}

fn is_inline(text: &str) -> bool {
    !text.contains(['\n', '\r']) && text.chars().nth(INLINE_CHARS).is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: Value, expect: &str) {
        assert_eq!(document_text(&serde_json::from_value(value).unwrap()), expect);
    }

    #[test]
    fn short_fields_come_first_and_long_ones_verbatim() {
        check(
            json!({"body": "Dear \"Ann\",\n\npay.", "subject": "Invoice 2", "amount": 21, "labels": ["a", "b"], "seen": null}),
            "subject: Invoice 2\namount: 21\nlabels: [\"a\",\"b\"]\nseen: null\n\nbody:\nDear \"Ann\",\n\npay.",
        );
    }

    #[test]
    fn texts_of_attachments_have_their_names_and_places() {
        let data = json!({"attachments": ["a.txt", "b\n.txt", "c.txt"], "body": "x\ny", "attachment_1": "short",
            "attachment_2": "one\ntwo", "attachment_3": "three\nfour"});
        let DocumentText { text, attachments } =
            document_with_attachments(&serde_json::from_value(data).unwrap());
        assert_eq!(
            text,
            "attachments: [\"a.txt\",\"b\\n.txt\",\"c.txt\"]\nattachment_1 (a.txt): short\n\nbody:\nx\ny\n\n\
             attachment_2:\none\ntwo\n\nattachment_3 (c.txt):\nthree\nfour"
        );
        let found: Vec<_> = attachments
            .iter()
            .map(|found| (found.field.as_str(), text.get(found.range.clone()).unwrap()))
            .collect();
        let expect = [
            ("attachment_2", "attachment_2:\none\ntwo\n\n"),
            ("attachment_3", "attachment_3 (c.txt):\nthree\nfour"),
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn a_record_of_one_string_is_that_string() {
        check(json!({"text": "a\nb"}), "a\nb");
        check(json!({"text": ""}), "");
    }

    #[test]
    fn an_empty_record_has_an_empty_text() {
        check(json!({}), "");
    }

    #[test]
    fn trailing_line_breaks_of_a_long_field_stay() {
        check(json!({"n": 1, "body": "x\n\n"}), "n: 1\n\nbody:\nx\n\n");
    }
}
