//! The heading of a page: its text in the largest font.

use std::collections::HashMap;

/// Minimum ratio of the size of a heading to that of most text.
const MIN_RATIO: f64 = 1.2;

/// Ratio of sizes that count as equal.
const SAME_RATIO: f64 = 1.02;

/// Maximum length of a heading in bytes.
const MAX_BYTES: usize = 250;

/// Minimum number of letters of a heading. A page can begin with one large letter.
const MIN_LETTERS: usize = 4;

/// Maximum number of sizes that are counted.
const MAX_SIZES: usize = 1_000;

/// The first text in the largest font of a page, with the number of characters of each size.
#[derive(Debug, Default)]
pub(super) struct Heading {
    size: f64,
    text: String,
    /// True while the text goes on.
    is_open: bool,
    /// Characters by size, in tenths.
    counts: HashMap<String, (f64, usize)>,
}

impl Heading {
    /// Adds a piece of the page, and the space or line end before it.
    pub(super) fn add(&mut self, text: &str, size: f64, separator: &str) {
        if !size.is_finite() || text.trim().is_empty() {
            return;
        }
        let key = format!("{size:.1}");
        if self.counts.len() < MAX_SIZES || self.counts.contains_key(&key) {
            self.counts.entry(key).or_insert((size, 0)).1 += text.chars().count();
        }
        if size > self.size * SAME_RATIO {
            text.clone_into(&mut self.text);
            self.size = size;
            self.is_open = true;
        } else if self.is_open && size * SAME_RATIO > self.size && self.text.len() <= MAX_BYTES {
            self.text.push_str(if separator.is_empty() { "" } else { " " });
            self.text.push_str(text);
        } else {
            self.is_open = false;
        }
    }

    /// Returns the heading, or an empty text if no text is clearly larger than most.
    pub(super) fn into_text(self) -> String {
        let usual = self.counts.values().max_by_key(|(_, characters)| *characters);
        let letters = self.text.chars().filter(|character| character.is_alphabetic()).count();
        let is_heading = usual.is_some_and(|(size, _)| self.size >= size * MIN_RATIO)
            && letters >= MIN_LETTERS
            && self.text.len() <= MAX_BYTES;
        if is_heading { self.text.split_whitespace().collect::<Vec<_>>().join(" ") } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_larger_than_most_text() {
        let check = |pieces: &[(&str, f64)], expect: &str| {
            let mut heading = Heading::default();
            pieces.iter().for_each(|(text, size)| heading.add(text, *size, "\n"));
            assert_eq!(heading.into_text(), expect);
        };
        let body = ("The text of the page is long enough.", 10.0);
        check(&[("Annual", 18.0), ("report", 18.0), body, ("Later", 18.0)], "Annual report");
        check(&[("Page 1", 8.0), ("Annual report", 14.0), body], "Annual report");
        check(&[("Annual report", 11.0), body], "");
        check(&[("O", 40.0), ("Once upon a time", 10.0), body], "");
        check(&[body], "");
        check(&[(&"long ".repeat(100), 20.0), (&"text ".repeat(900), 10.0)], "");
        check(&[("x", f64::NAN)], "");
    }
}
