//! Texts and JSON without the character U+0000, which the server does not store.

use serde_json::Value;

/// Returns a text as the server can store it. Imports refuse documents with the character U+0000.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

/// Returns a value without the character U+0000, which the type `jsonb` does not have.
pub(super) fn without_nul(value: Value) -> Value {
    match value {
        Value::String(text) => storable(&text).into(),
        Value::Array(values) => values.into_iter().map(without_nul).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (storable(&name), without_nul(value)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}
