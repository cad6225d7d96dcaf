//! Turns normalized arguments into the typed ones of a tool.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ToolError;
use super::tool::ToolSpec;
use crate::fit::clip;
use crate::record::RecordData;

/// The longest piece of an argument that an error quotes, in bytes.
const QUOTE: usize = 200;

/// Reads normalized arguments as `Args`, naming the argument that is wrong. Their names and JSON types are right by
/// now, so what is refused here is a value that has a grammar of its own: a name, a filter.
pub(super) fn parse<Args: DeserializeOwned>(
    spec: &ToolSpec,
    arguments: RecordData,
) -> Result<Args, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        spec.invalid_argument(&path, clip(&error.into_inner().to_string(), QUOTE))
    })
}

/// An argument that has to hold text.
pub(super) fn text(
    spec: &ToolSpec,
    param: &'static str,
    text: &str,
    most_chars: usize,
) -> Result<String, ToolError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(spec.invalid_argument(param, "it is empty"));
    }
    if trimmed.chars().nth(most_chars).is_some() {
        return Err(spec.invalid_argument(param, format!("it is longer than {most_chars} characters")));
    }
    Ok(trimmed.to_owned())
}
