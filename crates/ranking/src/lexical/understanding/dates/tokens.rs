//! The pieces of a text between white space and apostrophes, without the punctuation around them.

use std::ops::Range;

use crate::lexical::words::fold_as_written;

/// Maximum number of pieces of a text that are looked at.
const MAX_TOKENS: usize = 400;

/// Maximum length in bytes of a piece that is part of a date.
const MAX_TOKEN_BYTES: usize = 40;

/// Words between a weekday or the first day of some, and the next day.
pub(super) const ARTICLES: [&str; 7] = ["the", "den", "dem", "zum", "le", "el", "il"];

/// Characters that begin and end quotations, as in the words of a query.
const OPENING_QUOTES: [char; 4] = ['"', '“', '„', '«'];
const CLOSING_QUOTES: [char; 4] = ['"', '”', '“', '»'];

/// Piece of a text.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    /// Place in the text, in bytes.
    pub(super) place: Range<usize>,
    /// The piece as it is written.
    pub(super) written: &'a str,
    /// The piece in lower case and without accents.
    pub(super) folded: String,
    /// True if a full stop follows, as in `5. 3. 2025`.
    has_full_stop: bool,
}

impl Token<'_> {
    /// Returns true if the piece begins with a capital letter.
    pub(super) fn is_capital(&self) -> bool {
        self.written.starts_with(char::is_uppercase)
    }

    /// Returns the number that the piece is, of so many digits.
    pub(super) fn number(&self, digits: std::ops::RangeInclusive<usize>) -> Option<i16> {
        number(&self.folded, digits)
    }

    /// Returns what separates the piece from the next one in a date with spaces; `None` if nothing but white space does.
    pub(super) fn separator_before(&self, next: &Self) -> Option<&'static str> {
        if self.has_full_stop {
            return Some(".");
        }
        (self.folded.ends_with('/') || next.folded.starts_with('/')).then_some("")
    }
}

/// Returns the number that a text of so many ASCII digits is.
pub(super) fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<i16> {
    let is_number = digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Returns the pieces of a text that are not in quotes.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for unquoted in unquoted(text) {
        let part = text.get(unquoted.clone()).unwrap_or_default();
        let mut start = 0;
        for piece in part.split(|letter: char| letter.is_whitespace() || matches!(letter, '\'' | '’')) {
            let at = unquoted.start + start;
            start += piece.len() + part.get(start + piece.len()..).and_then(first_len).unwrap_or_default();
            tokens.extend(token(piece, at));
            if tokens.len() >= MAX_TOKENS {
                return tokens;
            }
        }
    }
    tokens
}

fn first_len(text: &str) -> Option<usize> {
    text.chars().next().map(char::len_utf8)
}

/// Returns a piece without the punctuation around it; `None` if nothing is left.
fn token(piece: &str, at: usize) -> Option<Token<'_>> {
    let is_around = |letter: char| {
        matches!(letter, ',' | '.' | ';' | ':' | '!' | '?' | '(' | ')' | '[' | ']' | '¿' | '¡')
    };
    let without_start = piece.trim_start_matches(is_around);
    let start = at + piece.len() - without_start.len();
    let written = without_start.trim_end_matches(is_around);
    if written.is_empty() {
        return None;
    }
    let mut folded = String::new();
    // A longer piece is no part of a date.
    if written.len() <= MAX_TOKEN_BYTES {
        fold_as_written(written, &mut folded);
    }
    let has_full_stop = without_start.get(written.len()..).is_some_and(|behind| behind.starts_with('.'));
    Some(Token { place: start..start + written.len(), written, folded, has_full_stop })
}

/// Returns the parts of a text that are not in quotes.
fn unquoted(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some((opening, length)) = text.get(start..).and_then(|rest| found(rest, OPENING_QUOTES)) {
        let inside = start + opening + length;
        let Some((closing, length)) = text.get(inside..).and_then(|rest| found(rest, CLOSING_QUOTES)) else {
            break;
        };
        parts.push(start..start + opening);
        start = inside + closing + length;
    }
    parts.push(start..text.len());
    parts
}

/// Returns the place of the first of some characters, and its length in bytes.
fn found(text: &str, letters: [char; 4]) -> Option<(usize, usize)> {
    text.char_indices()
        .find(|(_, letter)| letters.contains(letter))
        .map(|(at, letter)| (at, letter.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_their_places() {
        let text = "l'été, “in quotes” (5.) March";
        let found: Vec<(&str, &str)> = tokens(text)
            .iter()
            .map(|token| (text.get(token.place.clone()).unwrap(), token.written))
            .collect();
        assert_eq!(found, [("l", "l"), ("été", "été"), ("5", "5"), ("March", "March")]);
        assert_eq!(tokens("a \"b").len(), 2);
        assert!(tokens("").is_empty());
    }
}
