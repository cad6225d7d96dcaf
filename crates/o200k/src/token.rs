//! Tokens as numbers. `build.rs` and the tables of `vocabulary.rs` use the same.

/// Number of tokens of the vocabulary.
pub(crate) const TOKENS: usize = 199_998;

/// Number of bits of a token.
pub(crate) const TOKEN_BITS: u32 = 18;

/// The bits of a token. No token has this number.
pub(crate) const TOKEN_MASK: u32 = (1 << TOKEN_BITS) - 1;

/// Packs three tokens into one number above 0.
pub(crate) fn pack([first, second, third]: [u32; 3]) -> u64 {
    let tokens = u64::from(first) | u64::from(second) << TOKEN_BITS | u64::from(third) << (2 * TOKEN_BITS);
    tokens | 1 << (3 * TOKEN_BITS)
}

/// Unpacks three tokens; none of 0.
pub(crate) fn unpack(packed: u64) -> Option<[u32; 3]> {
    let token = |at: u32| u32::try_from(packed >> (at * TOKEN_BITS) & u64::from(TOKEN_MASK)).unwrap_or(0);
    (packed != 0).then(|| [token(0), token(1), token(2)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_tokens_are_unpacked() {
        for tokens in [[0, 0, 0], [1, 2, 3], [199_997, 0, TOKEN_MASK], [0, TOKEN_MASK, 199_997]] {
            assert_eq!(unpack(pack(tokens)), Some(tokens));
        }
        assert_eq!(unpack(0), None);
    }
}
