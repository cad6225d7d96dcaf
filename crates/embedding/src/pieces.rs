//! Counts of the pieces that a model splits a text into.

use std::fmt::Debug;

/// A counter of pieces, with the limit of its model.
pub trait PieceCount: Debug + Send + Sync {
    /// Returns the number of pieces of a text, without those that a model adds to every text.
    fn count(&self, text: &str) -> usize;

    /// Returns the maximum number of pieces of a text.
    fn limit(&self) -> usize;
}

/// Pieces by an estimate, for models with an unknown tokenizer.
///
/// Tokenizers of common models make 2.5 to 5 bytes of English a piece, and up to two pieces of a character of other
/// scripts. The estimate is higher than most of them, so that a chunk stays within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EstimatedPieces {
    /// Maximum number of pieces of a text.
    pub limit: usize,
}

impl PieceCount for EstimatedPieces {
    fn count(&self, text: &str) -> usize {
        let (mut pieces, mut letters) = (0, 0);
        for character in text.chars() {
            if character.is_ascii_alphanumeric() {
                letters += 1;
                continue;
            }
            pieces += word_pieces(letters);
            letters = 0;
            pieces += match character {
                ' ' | '\n' | '\r' | '\t' => 0,
                character if character.is_ascii() => 1,
                // Latin letters with diacritics, Greek and Cyrillic are one piece or less.
                character if character < '\u{590}' => 1,
                _ => 2,
            };
        }
        pieces + word_pieces(letters)
    }

    fn limit(&self) -> usize {
        self.limit
    }
}

/// Returns the pieces of a run of ASCII letters and digits.
fn word_pieces(letters: usize) -> usize {
    letters.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_higher_than_o200k() {
        let counter = EstimatedPieces { limit: 512 };
        for text in [
            "Authentication is handled via JWT tokens that expire after an hour.",
            "Die Rechnung für März liegt bei; bitte überweisen Sie 1.204,50 EUR.",
            "会議は来週の火曜日に延期されました。",
            "fn main() { println!(\"{}\", a[0] + b.len()); }",
        ] {
            let (found, real) = (counter.count(text), fetchwell_o200k::count(text));
            assert!(found >= real && found <= real * 4, "{found} {real} {text}");
        }
        assert_eq!(counter.count(""), 0);
    }
}
