//! Hashes of the tables of the vocabulary. `build.rs` writes the tables with them, and `vocabulary.rs` reads them.

/// Number of slots of a table; 199,998 tokens use three fifths of them. Twice as many would be hardly faster.
pub(crate) const SLOTS: u32 = 5 << 16;

/// The hash of no bytes (FNV-1a).
pub(crate) const EMPTY: u64 = 0xCBF2_9CE4_8422_2325;

/// Returns the hash of some bytes and one more, from the hash of those bytes.
pub(crate) fn with_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
}

/// The bits of a token in a slot. The others are a tag, so that other tokens are seldom looked at.
const TOKEN_BITS: u32 = 18;

/// Returns a token with the tag of the hash that it is found by.
pub(crate) fn tagged(hash: u64, token: u32) -> u32 {
    let tag = u32::try_from(hash & 0x3FFF).unwrap_or_default();
    tag << TOKEN_BITS | token
}

/// Returns the token of a tagged one.
pub(crate) fn untagged(tagged: u32) -> u32 {
    tagged & ((1 << TOKEN_BITS) - 1)
}

/// Returns the slot where the search for a hash starts.
pub(crate) fn slot_of(hash: u64) -> usize {
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(((mixed >> 32) * u64::from(SLOTS)) >> 32).unwrap_or_default()
}

/// Returns the hash of two adjacent tokens.
pub(crate) fn of_pair(left: u32, right: u32) -> u64 {
    let pair = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    pair ^ (pair >> 32)
}

/// Returns the slot behind a slot.
pub(crate) fn next_slot(slot: usize) -> usize {
    let next = slot + 1;
    if next == SLOTS as usize { 0 } else { next }
}
