//! A direct-mapped cache of merges: for two adjacent tokens, the token that they are merged to, or none.

use std::sync::atomic::{AtomicU64, Ordering};

use super::token::{TOKEN_BITS, TOKEN_MASK, pack, unpack};

/// Number of entries of a cache, a power of two. An entry takes 8 bytes.
const ENTRIES: usize = 1 << 16;

/// Cached merges: the two tokens, and the token that they are merged to or `TOKEN_MASK`. 0 is an empty entry. A merge
/// replaces the one with the same index. An entry is one number with its key, so threads need no order.
#[derive(Debug)]
pub(crate) struct MergeCache([AtomicU64; ENTRIES]);

impl MergeCache {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; ENTRIES])
    }

    /// Returns the cached token that two adjacent tokens are merged to, or that of `find`, which is cached.
    pub(crate) fn merge_of(&self, left: u32, right: u32, find: impl FnOnce() -> Option<u32>) -> Option<u32> {
        let Some(entry) = self.0.get(index_of(left, right)) else { return find() };
        if let Some([first, second, token]) = unpack(entry.load(Ordering::Relaxed))
            && (first, second) == (left, right)
        {
            return (token != TOKEN_MASK).then_some(token);
        }
        let token = find();
        entry.store(pack([left, right, token.unwrap_or(TOKEN_MASK)]), Ordering::Relaxed);
        token
    }
}

/// Returns the index of the entry of two adjacent tokens.
fn index_of(left: u32, right: u32) -> usize {
    let pair = u64::from(left) << TOKEN_BITS | u64::from(right);
    let mixed = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(mixed >> (64 - ENTRIES.ilog2())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_is_looked_up_once_while_it_is_cached() {
        static CACHE: MergeCache = MergeCache::new();
        for (left, right, token) in [(0, 0, None), (0, 1, Some(0)), (199_997, 199_997, Some(199_997))] {
            assert_eq!(CACHE.merge_of(left, right, || token), token);
            assert_eq!(CACHE.merge_of(left, right, || Some(7)), token);
        }
    }
}
