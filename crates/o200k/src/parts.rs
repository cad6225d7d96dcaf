//! The tokens that a token consists of, as one number.

use super::hash::TOKEN_BITS;

/// The tokens that a token consists of. A token of one byte has itself three times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenParts {
    /// The first of the two tokens that it is merged from.
    pub(crate) left: u32,
    /// The second of the two tokens that it is merged from.
    pub(crate) right: u32,
    /// The longest token that it starts with beside itself.
    pub(crate) prefix: u32,
}

impl TokenParts {
    /// Returns the parts as a number above 0.
    pub(crate) fn packed(self) -> u64 {
        let tokens = u64::from(self.left) | u64::from(self.right) << TOKEN_BITS;
        tokens | u64::from(self.prefix) << (2 * TOKEN_BITS) | 1 << (3 * TOKEN_BITS)
    }

    /// Returns the parts of a number.
    pub(crate) fn unpacked(packed: u64) -> Self {
        let token =
            |at: u32| u32::try_from((packed >> (at * TOKEN_BITS)) & ((1 << TOKEN_BITS) - 1)).unwrap_or(0);
        Self { left: token(0), right: token(1), prefix: token(2) }
    }
}
