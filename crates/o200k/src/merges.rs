//! The token that two adjacent tokens are merged to, as an entry of a table that keeps the merges of the last lookups.

use super::hash::TOKEN_BITS;

/// Number of entries of the table; an entry takes 8 bytes.
pub(crate) const SLOTS: usize = 1 << 16;

/// Number in place of a token where two tokens are not merged. No token has it.
const NONE: u32 = (1 << TOKEN_BITS) - 1;

/// The token that two adjacent tokens are merged to; none if they are not merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Merge {
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) token: Option<u32>,
}

impl Merge {
    /// Returns the merge as a number above 0.
    pub(crate) fn packed(self) -> u64 {
        let token = u64::from(self.token.unwrap_or(NONE));
        u64::from(self.left)
            | u64::from(self.right) << TOKEN_BITS
            | token << (2 * TOKEN_BITS)
            | 1 << (3 * TOKEN_BITS)
    }

    /// Returns the merge of a number; none for 0.
    pub(crate) fn unpacked(packed: u64) -> Option<Self> {
        let part =
            |at: u32| u32::try_from((packed >> (at * TOKEN_BITS)) & ((1 << TOKEN_BITS) - 1)).unwrap_or(NONE);
        let token = Some(part(2)).filter(|token| *token != NONE);
        (packed != 0).then_some(Self { left: part(0), right: part(1), token })
    }
}

/// Returns the entry of two adjacent tokens.
pub(crate) fn slot_of(left: u32, right: u32) -> usize {
    let pair = u64::from(left) << TOKEN_BITS | u64::from(right);
    let mixed = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(mixed >> (64 - SLOTS.ilog2())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_merge_that_it_was_made_of() {
        for token in [None, Some(0), Some(199_997)] {
            for (left, right) in [(0, 0), (1, 199_997), (199_997, 0)] {
                let merge = Merge { left, right, token };
                assert_eq!(Merge::unpacked(merge.packed()), Some(merge));
            }
        }
        assert_eq!(Merge::unpacked(0), None);
    }
}
