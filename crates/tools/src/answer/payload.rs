//! Payloads: answers as compact JSON within their budget.
//!
//! A [`Payload`] has one answer as text and as a value, which go out in both channels of an MCP result.
//! **Invariant:** text and value are the same JSON, and neither exceeds the budget in bytes or tokens.

use fetchwell_core::fit::{
    ChunkBudget, PageBudget, Shaping, Strategy, answer_tokens, json_len, tokens_within,
};
use serde::Serialize;
use serde_json::Value;

use crate::error::{Overrun, ToolError};

/// An answer as compact JSON, as text and as a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    json: String,
    value: Value,
    shaping: Shaping,
}

impl Payload {
    /// Creates the payload of an answer.
    ///
    /// # Errors
    ///
    /// The answer exceeds its budget. This is rare, because tools fit their answers first.
    pub(crate) fn within(answer: &impl Serialize, budget: PageBudget) -> Result<Self, ToolError> {
        let json = json_of(answer)?;
        let tokens = check_budget(&json, budget)?;
        Self::from_parts(answer, json, tokens)
    }

    /// Creates the payload of an answer, or returns `None` if it exceeds its budget.
    pub(crate) fn if_within(answer: &impl Serialize, budget: PageBudget) -> Result<Option<Self>, ToolError> {
        let json = json_of(answer)?;
        match check_budget(&json, budget) {
            Ok(tokens) => Self::from_parts(answer, json, tokens).map(Some),
            Err(_too_large) => Ok(None),
        }
    }

    /// Creates the payload of an answer that is already written as JSON.
    pub(crate) fn from_json(json: String, budget: PageBudget) -> Result<Self, ToolError> {
        let tokens = check_budget(&json, budget)?;
        Self::from_fitted_json(json, tokens)
    }

    /// Creates the payload of JSON that is known to fit, with its tokens if they were counted.
    pub(crate) fn from_fitted_json(json: String, tokens: Option<usize>) -> Result<Self, ToolError> {
        let value = serde_json::from_str(&json)
            .map_err(|error| ToolError::Internal { problem: error.to_string() })?;
        Ok(Self::new(json, value, tokens))
    }

    fn from_parts(answer: &impl Serialize, json: String, tokens: Option<usize>) -> Result<Self, ToolError> {
        let value = serde_json::to_value(answer)
            .map_err(|error| ToolError::Internal { problem: error.to_string() })?;
        Ok(Self::new(json, value, tokens))
    }

    fn new(json: String, value: Value, tokens: Option<usize>) -> Self {
        let tokens = tokens.unwrap_or_else(|| answer_tokens(&json));
        let shaping = Shaping { bytes: json.len(), items: 1, tokens: Some(tokens), ..Shaping::default() };
        Self { json, value, shaping }
    }

    /// Sets the description of how the answer was fitted, apart from its bytes and tokens.
    pub(crate) fn with_shaping(self, shaping: Shaping) -> Self {
        let Shaping { bytes, tokens, .. } = self.shaping;
        Self { shaping: Shaping { bytes, tokens, ..shaping }, ..self }
    }

    /// Sets the size that the answer would have without shortening. What was left out is assumed to be as dense as the
    /// answer, since counting it would take longer than the call.
    pub(crate) fn shortened_from(self, bytes: usize) -> Self {
        let Shaping { bytes: shown, tokens, .. } = self.shaping;
        let candidate_tokens =
            tokens.map(|tokens| tokens.saturating_mul(bytes.max(shown)).div_ceil(shown.max(1)));
        Self { shaping: Shaping { candidate_tokens, ..self.shaping }, ..self }
    }

    /// Describes the answer as one that has `part` of a text that exceeds the budget.
    pub(crate) fn cut_from(self, text: &str, part: &str) -> Self {
        let shaping =
            Shaping { items: 1, strategy: Strategy::Chunked, oversized: true, ..Shaping::default() };
        // The rest of the text is assumed to have as many escapes as the part.
        let rest =
            (text.len() - part.len().min(text.len())).saturating_mul(json_len(part)) / part.len().max(1);
        let bytes = self.json.len().saturating_add(rest);
        self.with_shaping(shaping).shortened_from(bytes)
    }

    /// Returns the description of how the answer was fitted.
    #[must_use]
    pub fn shaping(&self) -> &Shaping {
        &self.shaping
    }

    /// Returns the JSON as text.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns the JSON as text and as a value.
    #[must_use]
    pub fn into_parts(self) -> (String, Value) {
        (self.json, self.value)
    }
}

/// Checks the budget of an answer. Returns its tokens if they had to be counted.
fn check_budget(json: &str, budget: PageBudget) -> Result<Option<usize>, ToolError> {
    within(json, budget)
        .map_err(|overrun| ToolError::ResponseTooLarge { overrun, hint: "Ask for less.".to_owned() })
}

/// Checks a budget. Returns the tokens of the answer if they had to be counted, or by how much it exceeds the budget.
pub(crate) fn within(json: &str, budget: PageBudget) -> Result<Option<usize>, Overrun> {
    if json.len() > budget.bytes {
        return Err(Overrun::Bytes { bytes: json.len(), budget: budget.bytes });
    }
    tokens_within(json, budget.tokens).map_err(|tokens| Overrun::Tokens { tokens, budget: budget.tokens })
}

/// Returns the part of a budget that is left for a text. `without_text` is the rest of the answer as JSON.
pub(crate) fn room_beside(without_text: &str, budget: PageBudget) -> ChunkBudget {
    let PageBudget { bytes, tokens } = budget.beside_json(without_text);
    ChunkBudget { bytes, tokens }
}

/// Writes an answer as compact JSON.
pub(crate) fn json_of(answer: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(answer).map_err(|error| ToolError::Internal { problem: error.to_string() })
}
