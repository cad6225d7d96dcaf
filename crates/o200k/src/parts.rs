//! A cache of the tokens that tokens consist of.

use std::sync::atomic::{AtomicU64, Ordering};

use super::token::{TOKENS, pack, unpack};

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

/// Cached parts by token: left, right and prefix, or 0 until the first use. Threads that find the same parts store the same
/// number.
static PARTS: [AtomicU64; TOKENS] = [const { AtomicU64::new(0) }; TOKENS];

/// Returns the cached parts of a token, or those of `find`, which are cached.
pub(crate) fn cached(token: u32, find: impl FnOnce() -> TokenParts) -> TokenParts {
    let Some(entry) = usize::try_from(token).ok().and_then(|token| PARTS.get(token)) else { return find() };
    match unpack(entry.load(Ordering::Relaxed)) {
        Some([left, right, prefix]) => TokenParts { left, right, prefix },
        None => {
            let parts = find();
            entry.store(pack([parts.left, parts.right, parts.prefix]), Ordering::Relaxed);
            parts
        }
    }
}
