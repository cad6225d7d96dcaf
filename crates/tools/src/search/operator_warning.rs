//! Warnings about pieces of a query that look like operators.

use std::fmt;

use fetchwell_core::fit::clip;

use crate::error::MAX_WORD_BYTES;

/// Warning about a piece of a query that looks like an operator and was searched as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorWarning {
    piece: String,
    reason: &'static str,
}

impl OperatorWarning {
    pub(super) fn new(piece: &str, reason: &'static str) -> Self {
        Self { piece: clip(piece, MAX_WORD_BYTES), reason }
    }

    /// Returns the reason why a list by words refuses the piece.
    pub(crate) fn refusal(&self) -> String {
        format!("`{}` cannot be read: {}", self.piece, self.reason)
    }
}

impl fmt::Display for OperatorWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` was searched as text: {}", self.piece, self.reason)
    }
}
