//! The passage of a record's text that matches a query.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A single-line passage with the range of the match in it.
///
/// White space is folded to single spaces when the passage is created, because line breaks do not help in a list and
/// each costs two bytes of JSON. `fit` shortens the passage around the match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "ExcerptParts")]
pub struct Excerpt {
    text: String,
    focus: Range<usize>,
}

/// The serialized form of an excerpt, which is folded again when it is read.
#[derive(Deserialize)]
struct ExcerptParts {
    text: String,
    focus: Range<usize>,
}

impl From<ExcerptParts> for Excerpt {
    fn from(kept: ExcerptParts) -> Self {
        Self::new(&kept.text, kept.focus)
    }
}

impl Excerpt {
    /// Creates an excerpt of `passage`, in which the bytes `focus` are the match, and folds its white space. A `focus`
    /// outside the passage, or inside a character, becomes an empty range at the start.
    #[must_use]
    pub fn new(passage: &str, focus: Range<usize>) -> Self {
        if is_folded(passage) && passage.is_char_boundary(focus.start) && passage.is_char_boundary(focus.end)
        {
            let start = focus.start.min(focus.end);
            return Self { text: passage.to_owned(), focus: start..focus.end };
        }
        let mut text = String::with_capacity(passage.len());
        let mut folded = 0..0;
        for (offset, character) in passage.char_indices() {
            if offset == focus.start {
                folded.start = text.len();
            }
            if offset == focus.end {
                folded.end = text.len();
            }
            if !character.is_whitespace() && !character.is_control() {
                text.push(character);
            } else if !text.is_empty() && !text.ends_with(' ') {
                text.push(' ');
            }
        }
        if focus.end == passage.len() {
            folded.end = text.len();
        }
        text.truncate(text.trim_end().len());
        let start = folded.start.min(text.len());
        Self { focus: start..folded.end.clamp(start, text.len()), text }
    }

    /// Returns the folded passage.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the byte range of the match in [`Excerpt::text`], or an empty range at the start if the match is
    /// unknown.
    #[must_use]
    pub fn focus(&self) -> Range<usize> {
        self.focus.clone()
    }
}

/// Returns true if the passage needs no folding. Most passages are one line of ASCII.
fn is_folded(passage: &str) -> bool {
    passage.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && !passage.contains("  ")
        && !passage.starts_with(' ')
        && !passage.ends_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(passage: &str, focus: Range<usize>, expect: (&str, &str)) {
        let excerpt = Excerpt::new(passage, focus);
        assert_eq!((excerpt.text(), excerpt.text().get(excerpt.focus()).unwrap()), expect);
    }

    #[test]
    fn folding_white_space_keeps_the_match() {
        check("a  b\n\n c", 7..8, ("a b c", "c"));
        check("\n\t pay the\r\ninvoice now ", 12..19, ("pay the invoice now", "invoice"));
        check("tail   ", 4..7, ("tail", ""));
        check("", 0..0, ("", ""));
        check("bell\u{7}rings", 5..10, ("bell rings", "rings"));
    }

    #[test]
    fn a_focus_that_makes_no_sense_is_the_start() {
        check("é", 1..2, ("é", "é"));
        check("abc", 9..12, ("abc", ""));
    }
}
