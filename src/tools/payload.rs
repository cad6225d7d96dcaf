//! What a tool answers.

use serde::Serialize;
use serde_json::Value;

use super::error::{Overrun, ToolError};
use crate::fit::{ChunkBudget, PageBudget, Shaping, tokens_within};

/// One answer, as the text and as the value that go out side by side. They are the same JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    json: String,
    value: Value,
    shaping: Shaping,
}

impl Payload {
    /// The payload of an answer, refused when it is larger than its budget: a tool fits its answer before, so that
    /// seldom happens, and when it does nothing oversized goes out.
    pub(super) fn within(answer: &impl Serialize, budget: PageBudget) -> Result<Self, ToolError> {
        let json = json_of(answer)?;
        let tokens = fitting(&json, budget)?;
        Self::of_answer(answer, json, tokens)
    }

    /// The payload of an answer, if it is within its budget.
    pub(super) fn if_within(answer: &impl Serialize, budget: PageBudget) -> Result<Option<Self>, ToolError> {
        let json = json_of(answer)?;
        match fitting(&json, budget) {
            Ok(tokens) => Self::of_answer(answer, json, tokens).map(Some),
            Err(_too_large) => Ok(None),
        }
    }

    /// The payload of an answer that is JSON already.
    pub(super) fn of_json(json: String, budget: PageBudget) -> Result<Self, ToolError> {
        let tokens = fitting(&json, budget)?;
        Self::of_fitting(json, tokens)
    }

    /// The payload of an answer that is known to fit, with its tokens if they were counted.
    pub(super) fn of_fitting(json: String, tokens: Option<usize>) -> Result<Self, ToolError> {
        let value =
            serde_json::from_str(&json).map_err(|error| ToolError::Report { problem: error.to_string() })?;
        Ok(Self::new(json, value, tokens))
    }

    fn of_answer(answer: &impl Serialize, json: String, tokens: Option<usize>) -> Result<Self, ToolError> {
        let value =
            serde_json::to_value(answer).map_err(|error| ToolError::Report { problem: error.to_string() })?;
        Ok(Self::new(json, value, tokens))
    }

    fn new(json: String, value: Value, tokens: Option<usize>) -> Self {
        let shaping = Shaping { bytes: json.len(), items: 1, tokens, ..Shaping::default() };
        Self { json, value, shaping }
    }

    /// The same with how it came to its size; its bytes and tokens are known.
    pub(super) fn shaped(self, shaping: Shaping) -> Self {
        let Shaping { bytes, tokens, .. } = self.shaping;
        Self { shaping: Shaping { bytes, tokens, ..shaping }, ..self }
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

/// The tokens of an answer within its budget, if they had to be counted.
fn fitting(json: &str, budget: PageBudget) -> Result<Option<usize>, ToolError> {
    let too_large = |overrun| ToolError::AskForLess { overrun, hint: "Ask for less.".to_owned() };
    within(json, budget).map_err(too_large)
}

/// The same, with what it is over otherwise.
pub(super) fn within(json: &str, budget: PageBudget) -> Result<Option<usize>, Overrun> {
    if json.len() > budget.bytes {
        return Err(Overrun::Bytes { takes: json.len(), most: budget.bytes });
    }
    tokens_within(json, budget.tokens).map_err(|about| Overrun::Tokens { about, most: budget.tokens })
}

/// What a budget leaves for a text, of which the rest is given as JSON.
pub(super) fn room_beside(without_text: &str, budget: PageBudget) -> ChunkBudget {
    let PageBudget { bytes, tokens } = budget.beside_json(without_text);
    ChunkBudget { bytes, tokens }
}

/// An answer as compact JSON, to be measured.
pub(super) fn json_of(answer: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(answer).map_err(|error| ToolError::Report { problem: error.to_string() })
}
