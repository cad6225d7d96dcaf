//! The piece of a record's text that shows why it was found.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A passage of one line, and where in it the match is.
///
/// White space is folded to single spaces when the passage is made, because a reader of a list gains
/// nothing from line breaks and each costs two bytes of JSON. `fit` shortens the passage around the
/// match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Kept")]
pub struct Excerpt {
    text: String,
    focus: Range<usize>,
}

/// An excerpt as it was kept with a position, which is read as any other text is.
#[derive(Deserialize)]
struct Kept {
    text: String,
    focus: Range<usize>,
}

impl From<Kept> for Excerpt {
    fn from(kept: Kept) -> Self {
        Self::new(&kept.text, kept.focus)
    }
}

impl Excerpt {
    /// Folds `passage`, whose bytes `focus` are the match. A `focus` outside the passage, or inside a
    /// character, means the start.
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

    /// The passage.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of [`Excerpt::text`] that are the match; empty at the start when nothing is known.
    #[must_use]
    pub fn focus(&self) -> Range<usize> {
        self.focus.clone()
    }
}

/// Whether there is nothing to fold: most passages are one line of ASCII already.
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
