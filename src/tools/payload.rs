//! What a tool answers.

use serde::Serialize;
use serde_json::Value;

use super::ToolError;
use crate::fit::{ChunkBudget, Shaping, budget, count_tokens, within_tokens};

/// One answer, as the text and as the value that go out side by side. They are the same JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    json: String,
    value: Value,
    shaping: Shaping,
}

impl Payload {
    /// The payload of an answer, refused when it is larger than `budget` bytes: a tool fits its answer
    /// before, so that never happens, and if it does nothing oversized goes out.
    pub(super) fn within(answer: &impl Serialize, budget: usize) -> Result<Self, ToolError> {
        let json = json_of(answer)?;
        check(&json, budget)?;
        let value =
            serde_json::to_value(answer).map_err(|error| ToolError::Report { problem: error.to_string() })?;
        Ok(Self::new(json, value))
    }

    /// The payload of an answer that is JSON already.
    pub(super) fn of_json(json: String, budget: usize) -> Result<Self, ToolError> {
        check(&json, budget)?;
        let value =
            serde_json::from_str(&json).map_err(|error| ToolError::Report { problem: error.to_string() })?;
        Ok(Self::new(json, value))
    }

    fn new(json: String, value: Value) -> Self {
        let shaping = Shaping { bytes: json.len(), items: 1, ..Shaping::default() };
        Self { json, value, shaping }
    }

    /// The same with how it came to its size; its bytes are known.
    pub(super) fn shaped(self, shaping: Shaping) -> Self {
        Self { shaping: Shaping { bytes: self.json.len(), ..shaping }, ..self }
    }

    /// How it came to its size.
    #[must_use]
    pub fn shaping(&self) -> &Shaping {
        &self.shaping
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

fn check(json: &str, budget: usize) -> Result<(), ToolError> {
    if json.len() > budget {
        let hint = "Ask for less.".to_owned();
        return Err(ToolError::AskForLess { bytes: json.len(), budget, hint });
    }
    Ok(())
}

/// Tokens by which a whole can exceed the sum of its text and the rest, at their two seams.
const SEAM_TOKENS: usize = 16;

/// Whether an answer is within the budget of a document.
pub(super) fn is_document(json: &str) -> bool {
    json.len() <= budget::DOCUMENT && within_tokens(json, budget::DOCUMENT_TOKENS)
}

/// What a document leaves for its text, of which the rest is given as JSON.
pub(super) fn room_beside(without_text: &str) -> ChunkBudget {
    ChunkBudget {
        bytes: budget::DOCUMENT.saturating_sub(without_text.len()),
        tokens: budget::DOCUMENT_TOKENS.saturating_sub(count_tokens(without_text) + SEAM_TOKENS),
    }
}

/// An answer as compact JSON, to be measured.
pub(super) fn json_of(answer: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(answer).map_err(|error| ToolError::Report { problem: error.to_string() })
}
