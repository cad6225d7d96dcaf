//! The text of a whole record.

use serde_json::Value;

use super::RecordData;

/// Maximum length, in characters, of a string on the line of its field name.
const INLINE_CHARS: usize = 200;

/// Returns the record's fields as text: first the short ones, a line each (`subject: Work invoice 2`), then each long
/// or multi-line string under its name, verbatim.
///
/// Nothing is left out and long strings are not escaped, so the text contains every character of them. For a record
/// of one string, the text is that string.
#[must_use]
pub fn document_text(data: &RecordData) -> String {
    if let [Value::String(only)] = data.values().collect::<Vec<_>>().as_slice() {
        return only.clone();
    }
    let is_long = |value: &Value| matches!(value, Value::String(text) if !is_inline(text));
    let mut text = String::new();
    for (name, value) in data.iter().filter(|(_, value)| !is_long(value)) {
        text.push_str(name);
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
            }
            text.push_str(name);
            text.push_str(":\n");
            text.push_str(long);
            text.push('\n');
        }
    }
    text.truncate(text.strip_suffix('\n').map_or(0, str::len));
    text
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
