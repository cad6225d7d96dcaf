//! The hash table from bytes to their token. `build.rs` writes it, and `vocabulary.rs` reads it.

use super::token::{TOKEN_BITS, TOKEN_MASK};

/// Number of slots of the table; the tokens use three fifths of them.
pub(crate) const SLOTS: u32 = 5 << 16;

/// The hash of no bytes (FNV-1a).
pub(crate) const EMPTY: u64 = 0xCBF2_9CE4_8422_2325;

/// Returns the hash of some bytes and one more, from the hash of those bytes.
pub(crate) fn with_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
}

/// Returns the hash of some bytes and more bytes, from the hash of the former.
pub(crate) fn with_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| with_byte(hash, *byte))
}

/// A slot without an entry.
pub(crate) const FREE: u32 = 0xFF_FFFF;

/// Returns the content of a slot: a token, and above its 18 bits six of the hash that it is found by, so that other tokens are
/// seldom compared.
pub(crate) fn tagged(hash: u64, token: u32) -> u32 {
    let tag = u32::try_from(hash & 0x3F).unwrap_or_default();
    tag << TOKEN_BITS | token
}

/// Returns the token of a tagged one.
pub(crate) fn untagged(tagged: u32) -> u32 {
    tagged & TOKEN_MASK
}

/// Returns the content of a slot from its bytes, little-endian.
pub(crate) fn content_of_bytes([first, second, third]: [u8; 3]) -> u32 {
    u32::from_le_bytes([first, second, third, 0])
}

/// Returns the slot where the search for a hash starts.
pub(crate) fn slot_of(hash: u64) -> usize {
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(((mixed >> 32) * u64::from(SLOTS)) >> 32).unwrap_or_default()
}

/// Returns the slot behind a slot.
pub(crate) fn next_slot(slot: usize) -> usize {
    let next = slot + 1;
    if next == SLOTS as usize { 0 } else { next }
}
