//! What a tool answers.

use serde::Serialize;
use serde_json::Value;

use super::ToolError;

/// One answer, as the text and as the value that go out side by side. They are the same JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    json: String,
    value: Value,
}

impl Payload {
    /// The payload of an answer, refused when it is larger than `budget` bytes: a tool fits its answer
    /// before, so that never happens, and if it does nothing oversized goes out.
    pub(super) fn within(answer: &impl Serialize, budget: usize) -> Result<Self, ToolError> {
        let json = json_of(answer)?;
        if json.len() > budget {
            return Err(ToolError::AskForLess {
                bytes: json.len(),
                budget,
                hint: "Ask for less.".to_owned(),
            });
        }
        let value =
            serde_json::to_value(answer).map_err(|error| ToolError::Report { problem: error.to_string() })?;
        Ok(Self { json, value })
    }

    /// The payload of an answer that is JSON already.
    pub(super) fn of_json(json: String, budget: usize) -> Result<Self, ToolError> {
        if json.len() > budget {
            let hint = "Ask for less.".to_owned();
            return Err(ToolError::AskForLess { bytes: json.len(), budget, hint });
        }
        let value =
            serde_json::from_str(&json).map_err(|error| ToolError::Report { problem: error.to_string() })?;
        Ok(Self { json, value })
    }

    /// The text that goes out.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The text, and the same as a value.
    #[must_use]
    pub fn into_parts(self) -> (String, Value) {
        (self.json, self.value)
    }
}

/// An answer as compact JSON, to be measured.
pub(super) fn json_of(answer: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(answer).map_err(|error| ToolError::Report { problem: error.to_string() })
}
