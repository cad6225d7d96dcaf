//! The passage of a record's text that matches a query.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A single-line passage with the range of the match in it.
///
/// White space is folded to single spaces when the passage is created, because line breaks do not help in a list and
/// each costs two bytes of JSON. `fit` shortens the passage around the match. A label at the start says what the passage is
/// from, such as the name of an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "ExcerptParts")]
pub struct Excerpt {
    text: String,
    focus: Range<usize>,
    /// Bytes of the label at the start of the text.
    #[serde(skip_serializing_if = "is_zero")]
    label: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The serialized form of an excerpt, which is folded again when it is read.
#[derive(Deserialize)]
struct ExcerptParts {
    text: String,
    focus: Range<usize>,
    #[serde(default)]
    label: usize,
}

impl From<ExcerptParts> for Excerpt {
    fn from(kept: ExcerptParts) -> Self {
        let excerpt = Self::new(&kept.text, kept.focus);
        let is_label = excerpt.text.is_char_boundary(kept.label) && kept.label <= excerpt.focus.start;
        Self { label: if is_label { kept.label } else { 0 }, ..excerpt }
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
            return Self { text: passage.to_owned(), focus: start..focus.end, label: 0 };
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
        Self { focus: start..folded.end.clamp(start, text.len()), text, label: 0 }
    }

    /// Returns the excerpt with a label and a colon before its text. White space of the label is folded.
    #[must_use]
    pub fn with_label(self, label: &str) -> Self {
        let label = Self::new(label, 0..0).text;
        if label.is_empty() || self.label > 0 {
            return self;
        }
        let label = format!("{label}: ");
        let Range { start, end } = self.focus;
        let focus = start + label.len()..end + label.len();
        Self { text: format!("{label}{}", self.text), focus, label: label.len() }
    }

    /// Returns the folded passage, after its label.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the label with its colon and space, or an empty text.
    #[must_use]
    pub fn label(&self) -> &str {
        self.text.get(..self.label).unwrap_or_default()
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
    fn a_label_stands_before_the_passage() {
        let excerpt = Excerpt::new("pay the invoice", 8..15).with_label("a\n b.txt");
        assert_eq!((excerpt.text(), excerpt.label()), ("a b.txt: pay the invoice", "a b.txt: "));
        assert_eq!(excerpt.text().get(excerpt.focus()), Some("invoice"));
        let json = serde_json::to_string(&excerpt).unwrap();
        assert_eq!(serde_json::from_str::<Excerpt>(&json).unwrap(), excerpt);
        let plain = Excerpt::new("pay", 0..3);
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"text":"pay","focus":{"start":0,"end":3}}"#);
        assert_eq!(plain.clone().with_label(" "), plain);
        let wrong = r#"{"text":"pay","focus":{"start":0,"end":3},"label":9}"#;
        assert_eq!(serde_json::from_str::<Excerpt>(wrong).unwrap(), plain);
    }

    #[test]
    fn a_focus_that_makes_no_sense_is_the_start() {
        check("é", 1..2, ("é", "é"));
        check("abc", 9..12, ("abc", ""));
    }
}
