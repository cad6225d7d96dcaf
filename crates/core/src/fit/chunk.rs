//! Splits a long text into parts without losing any of it.
//!
//! Part `n` starts where part `n - 1` ends, and the end of a part depends only on the text from its start and on the
//! budget. So the parts of a text are the same in every request, can be requested in any order, and are the text when
//! they are concatenated.

use super::cut::{boundary_at_or_before, json_len, prefix};
use super::tokens::count_tokens;

/// Budget of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkBudget {
    /// Bytes of JSON, without the quotes.
    pub bytes: usize,
    /// Tokens of that JSON.
    pub tokens: usize,
}

/// Divisor of a part: up to an eighth may be given up to end it at a line, sentence or word.
const TIDY_SHARE: usize = 8;

/// Returns the byte at which the part of `text` from byte `start` ends; `text.len()` for the last part.
///
/// The part fits `budget` and ends, in this order of preference, after a line break, after white
/// space, or between graphemes. It holds at least one character, so a reader always gets on: a single
/// grapheme larger than the budget (a letter under a thousand accents) is cut between its characters.
#[must_use]
pub fn chunk_end(text: &str, start: usize, budget: ChunkBudget) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let mut piece = prefix(rest, budget.bytes);
    if piece.is_empty() {
        piece = characters(rest, budget.bytes);
    }
    piece = within(piece, budget.tokens);
    if piece.len() == rest.len() {
        return text.len();
    }
    let tidy = tidy_end(piece);
    start + tidy
}

/// Returns a prefix of `piece` with at most `max_tokens` tokens as JSON.
fn within(mut piece: &str, max_tokens: usize) -> &str {
    while json_len(piece) > max_tokens {
        let tokens = count_tokens(&as_json(piece));
        if tokens <= max_tokens {
            break;
        }
        // Tokens are spread unevenly, so a proportional cut may need another round; the last hundredth makes that
        // rare. Each round cuts at least a hundredth, so the loop ends.
        let shorter = piece.len() * max_tokens / tokens * 99 / 100;
        let cut = boundary_at_or_before(piece, shorter);
        let end = if cut == 0 { piece.floor_char_boundary(shorter.max(1)) } else { cut };
        let end = if end == 0 { piece.chars().next().map_or(0, char::len_utf8) } else { end };
        if end >= piece.len() {
            break;
        }
        piece = piece.get(..end).unwrap_or_default();
    }
    piece
}

fn as_json(piece: &str) -> String {
    serde_json::Value::from(piece).to_string()
}

/// Returns as many characters as fit, and at least one.
fn characters(rest: &str, max_bytes: usize) -> &str {
    let mut end = rest.floor_char_boundary(max_bytes);
    while end > 0 && json_len(rest.get(..end).unwrap_or_default()) > max_bytes {
        end = rest.floor_char_boundary(end - 1);
    }
    let first = rest.chars().next().map_or(0, char::len_utf8);
    rest.get(..end.max(first)).unwrap_or_default()
}

fn tidy_end(piece: &str) -> usize {
    let earliest = piece.floor_char_boundary(piece.len() - piece.len() / TIDY_SHARE);
    let tail = piece.get(earliest..).unwrap_or_default();
    let after = |at: Option<usize>| at.map(|at| earliest + at + 1);
    let end = after(tail.rfind('\n')).or_else(|| after(tail.rfind(' '))).unwrap_or(piece.len());
    // A space can be the base of a grapheme; a cut there would split it.
    if boundary_at_or_before(piece, end) == end { end } else { piece.len() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    fn parts(text: &str, budget: ChunkBudget) -> Vec<&str> {
        let mut parts = Vec::new();
        let mut start = 0;
        while start < text.len() || parts.is_empty() {
            let end = chunk_end(text, start, budget);
            parts.push(text.get(start..end).unwrap());
            start = end;
        }
        parts
    }

    const ROOMY: usize = 1_000_000;

    #[test]
    fn parts_end_at_lines_then_words() {
        let budget = ChunkBudget { bytes: 25, tokens: ROOMY };
        assert_eq!(
            parts("one two three four\nfive six seven eight", budget),
            ["one two three four\nfive ", "six seven eight",]
        );
        let budget = ChunkBudget { bytes: 23, tokens: ROOMY };
        assert_eq!(parts("a line of words here\nnext", budget), ["a line of words here\n", "next"]);
    }

    #[test]
    fn a_text_that_fits_is_one_part() {
        assert_eq!(parts("", ChunkBudget { bytes: 10, tokens: 10 }), [""]);
        assert_eq!(parts("abc", ChunkBudget { bytes: 3, tokens: 3 }), ["abc"]);
    }

    #[test]
    fn tokens_bound_a_part_where_bytes_do_not() {
        let dense: String = (0..4_000u32).filter_map(|n| char::from_u32(0x1F300 + n * 7919 % 900)).collect();
        let budget = ChunkBudget { bytes: ROOMY, tokens: 500 };
        let parts = parts(&dense, budget);
        assert!(parts.len() > 4);
        for part in &parts {
            assert!(count_tokens(&as_json(part)) <= 500);
        }
        assert_eq!(parts.concat(), dense);
    }

    #[test]
    fn one_enormous_grapheme_is_cut_between_characters() {
        let zalgo = format!("e{}", "\u{301}".repeat(500));
        let parts = parts(&zalgo, ChunkBudget { bytes: 100, tokens: ROOMY });
        assert!(parts.iter().all(|part| json_len(part) <= 100));
        assert_eq!(parts.concat(), zalgo);
    }

    proptest! {
        #[test]
        fn parts_put_together_are_the_text(text in any::<String>(), bytes in 8usize..60, tokens in 4usize..40) {
            let parts = parts(&text, ChunkBudget { bytes, tokens });
            prop_assert_eq!(parts.concat(), text.clone());
            for part in &parts {
                let single = part.chars().nth(1).is_none();
                prop_assert!(single || json_len(part) <= bytes);
                prop_assert!(single || count_tokens(&as_json(part)) <= tokens + 2, "{:?}", part);
            }
        }

        #[test]
        fn parts_end_between_graphemes(text in "(\\PC|\u{301}|\u{200d}|👩|\n| ){0,80}", bytes in 40usize..90) {
            let budget = ChunkBudget { bytes, tokens: ROOMY };
            let boundaries: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
            let longest = text.graphemes(true).map(json_len).max().unwrap_or(0);
            let mut end = 0;
            for part in parts(&text, budget) {
                end += part.len();
                prop_assert!(end == text.len() || boundaries.contains(&end) || longest > bytes);
            }
        }
    }
}
