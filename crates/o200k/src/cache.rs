//! Token counts of the pieces that were counted last.
//!
//! Lists repeat the names and many values of their fields, and the tables of the vocabulary are larger than the caches of
//! a processor. The counts of short pieces are therefore kept in a small table beside each thread.

use super::vocabulary;

/// Maximum length in bytes of a piece with a cached count.
const MAX_BYTES: usize = 16;

/// Number of entries of the table, a power of two. An entry takes 24 bytes.
const ENTRIES: usize = 4_096;

/// Count of one piece. Length, head and tail together are the piece.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    head: u64,
    tail: u64,
    length: u8,
    tokens: u8,
}

/// Counts of pieces, one for each hash: a piece replaces the one with the same hash.
#[derive(Debug)]
pub(super) struct PieceCache(Vec<Entry>);

impl PieceCache {
    pub(super) fn new() -> Self {
        Self(vec![Entry::default(); ENTRIES])
    }

    /// Counts the tokens of a piece of a text.
    pub(super) fn tokens_of(&mut self, piece: &[u8]) -> usize {
        let Some((head, tail)) = ends(piece) else { return vocabulary::tokens_of(piece) };
        let length = piece.len().to_le_bytes()[0];
        let Some(entry) = self.0.get_mut(slot(head, tail, length)) else {
            return vocabulary::tokens_of(piece);
        };
        if (entry.head, entry.tail, entry.length) != (head, tail, length) {
            // A token has at least one byte, so the count is at most `MAX_BYTES`.
            let tokens = vocabulary::tokens_of(piece).to_le_bytes()[0];
            *entry = Entry { head, tail, length, tokens };
        }
        usize::from(entry.tokens)
    }
}

/// Returns the first and the last bytes of a piece of 2 to 16 bytes. They overlap in a piece that is shorter than both.
fn ends(piece: &[u8]) -> Option<(u64, u64)> {
    match piece.len() {
        8..=MAX_BYTES => {
            let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
            Some((piece.first_chunk().map(word)?, piece.last_chunk().map(word)?))
        }
        4..8 => {
            let word = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
            Some((piece.first_chunk().map(word)?, piece.last_chunk().map(word)?))
        }
        2..4 => {
            let word = |bytes: &[u8; 2]| u64::from(u16::from_le_bytes(*bytes));
            Some((piece.first_chunk().map(word)?, piece.last_chunk().map(word)?))
        }
        _ => None,
    }
}

fn slot(head: u64, tail: u64, length: u8) -> usize {
    let mixed = (head ^ tail.rotate_left(29) ^ u64::from(length)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(mixed >> (64 - ENTRIES.ilog2())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_differ_in_length_only_are_different_pieces() {
        let mut cache = PieceCache::new();
        for _twice in 0..2 {
            for piece in
                ["aa", "aaa", "aaaa", "aaaaa", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaaaaaaaaaa", "\0\0", "\0\0\0"]
            {
                assert_eq!(
                    cache.tokens_of(piece.as_bytes()),
                    vocabulary::tokens_of(piece.as_bytes()),
                    "{piece:?}"
                );
            }
        }
    }
}
