//! Names of the kinds of JSON values, for messages.

use serde_json::Value;

/// Returns the kind of a value with its article, such as `an array`.
#[must_use]
pub fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
