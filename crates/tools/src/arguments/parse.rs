//! Typed arguments of tools.
//!
//! `parse` deserializes normalized arguments. Their names and JSON types have been checked by then, so what is refused
//! here is a value with a grammar of its own: the name of a stream, a filter.

use fetchwell_core::fit::clip;
use fetchwell_core::record::RecordData;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{MAX_QUOTE_BYTES, ToolError};
use crate::tool::ToolSpec;

/// Deserializes normalized arguments. An error names the invalid argument.
pub(crate) fn parse<Args: DeserializeOwned>(
    spec: &ToolSpec,
    arguments: RecordData,
) -> Result<Args, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        spec.invalid_argument(&path, clip(&error.into_inner().to_string(), MAX_QUOTE_BYTES))
    })
}

/// Trims a string argument, which must not be empty or longer than `max_chars`.
pub(crate) fn trimmed(
    spec: &ToolSpec,
    param: &'static str,
    text: &str,
    max_chars: usize,
) -> Result<String, ToolError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(spec.invalid_argument(param, "it is empty"));
    }
    if trimmed.chars().nth(max_chars).is_some() {
        return Err(spec.invalid_argument(param, format!("it is longer than {max_chars} characters")));
    }
    Ok(trimmed.to_owned())
}
