//! The tokens and bytes that a token consists of. `build.rs` writes them as a number, and `vocabulary.rs` reads it.

/// Number of bits of a token: there are fewer than 2^18 tokens.
const BITS: u32 = 18;

/// The tokens and bytes that a token consists of. A token of one byte has itself three times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenParts {
    /// The first of the two tokens that it is merged from.
    pub(crate) left: u32,
    /// The second of the two tokens that it is merged from.
    pub(crate) right: u32,
    /// The longest token that it starts with beside itself.
    pub(crate) prefix: u32,
    /// The number of its bytes.
    pub(crate) len: u8,
}

impl TokenParts {
    /// Returns the parts as one number.
    pub(crate) fn packed(self) -> u64 {
        let tokens =
            u64::from(self.left) | u64::from(self.right) << BITS | u64::from(self.prefix) << (2 * BITS);
        tokens | u64::from(self.len) << (3 * BITS)
    }

    /// Returns the parts of a number.
    pub(crate) fn unpacked(packed: u64) -> Self {
        let token = |at: u32| u32::try_from((packed >> (at * BITS)) & ((1 << BITS) - 1)).unwrap_or(0);
        let len = u8::try_from(packed >> (3 * BITS) & 0xFF).unwrap_or(0);
        Self { left: token(0), right: token(1), prefix: token(2), len }
    }
}
