//! The rest of a long text: pieces that are scanned for the first match.

use std::ops::Range;

use super::{ExcerptTerms, best_cluster};

/// Length in bytes of the pieces in which the rest of a long text is scanned.
const PIECE_BYTES: usize = 64 * 1024;

/// Maximum distance in bytes of the end of a piece from the white space that it is moved to.
const MAX_WORD_BYTES: usize = 512;

/// Number of bytes that are searched for one folded word in the time in which one byte is divided into words.
const WORDS_COST: usize = 16;

/// Bytes of the rests of long texts that may be scanned for the hits of a page, times the number of words.
#[derive(Debug)]
pub struct ScanAllowance(pub(super) usize);

impl Default for ScanAllowance {
    /// Allows for half a second: 16 MiB of words, or ten records of 10 MB for two words of ASCII.
    fn default() -> Self {
        Self(256 * 1024 * 1024)
    }
}

/// Returns the end of a piece of a text: at most `length` bytes after `start`, and between words if white space is near.
pub(super) fn end_of_piece(text: &str, start: usize, length: usize) -> usize {
    let end = start.saturating_add(length);
    if end >= text.len() {
        return text.len();
    }
    let end = text.floor_char_boundary(end);
    let near = text.floor_char_boundary(end.saturating_sub(MAX_WORD_BYTES)).max(start);
    let space = text.get(near..end).and_then(|tail| tail.rfind(char::is_whitespace));
    // A piece is not empty, so that a scan ends.
    space.map(|space| near + space).filter(|space| *space > start).unwrap_or(end)
}

/// Returns the place of the first piece of a text with a match, from `start` on.
pub(super) fn first_match(
    text: &str,
    start: usize,
    terms: &ExcerptTerms,
    allowance: &mut ScanAllowance,
) -> Option<Range<usize>> {
    // A folded word of ASCII letters is in a text of ASCII letters as it is, apart from their case.
    let looked_for = terms.words.keys().map(String::as_str).chain(terms.sequences.first_words());
    let ascii: Vec<&str> = looked_for.filter(|word| word.is_ascii()).collect();
    let mut at = start;
    while at < text.len() {
        let end = end_of_piece(text, at, PIECE_BYTES).max(text.ceil_char_boundary(at + 1));
        let piece = text.get(at..end)?;
        let mut has_word = !piece.is_ascii();
        if !has_word {
            allowance.0 = allowance.0.checked_sub(piece.len() * ascii.len())?;
            let folded = piece.to_ascii_lowercase();
            has_word = ascii.iter().any(|word| folded.contains(word));
        }
        if has_word {
            allowance.0 = allowance.0.checked_sub(piece.len() * WORDS_COST)?;
            if let Some((_, range)) = best_cluster(&terms.matches(piece), terms.slots) {
                return Some(at + range.start..at + range.end);
            }
        }
        at = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_between_words() {
        assert_eq!(end_of_piece("one two three", 0, 6), 3);
        assert_eq!(end_of_piece("one two three", 4, 5), 7);
        assert_eq!(end_of_piece("one two three", 4, 50), 13);
        assert_eq!(end_of_piece("éééé", 0, 3), 2);
        assert_eq!(end_of_piece("", 0, 0), 0);
    }
}
