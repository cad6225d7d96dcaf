//! The lines and spaces between pieces of text, by their positions on the page.

use super::heading::Heading;

/// Gap between two pieces on a line that is a space, in multiples of the font size.
const SPACE_GAP: f64 = 0.17;

/// Distance of two baselines that begins another line, in multiples of the font size.
const LINE_GAP: f64 = 0.5;

/// Distance of two baselines that leaves an empty line, in multiples of the font size.
const PARAGRAPH_GAP: f64 = 1.9;

/// A place on the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The text of a page, with the end of its last piece.
#[derive(Debug, Default)]
pub(super) struct Layout {
    written: String,
    end: Option<Point>,
    heading: Heading,
}

/// The text of a page with its heading, which may be empty.
#[derive(Debug)]
pub(super) struct PageText {
    pub(super) text: String,
    pub(super) heading: String,
}

impl Layout {
    /// Adds a piece of text that starts and ends at these places. `size` is the size of its font on the page.
    pub(super) fn add(&mut self, text: &str, start: Point, end: Point, size: f64) {
        if text.is_empty() {
            return;
        }
        let separator = self.end.map_or("", |last| {
            let (down, right) = ((last.y - start.y).abs(), start.x - last.x);
            if down > size * PARAGRAPH_GAP {
                "\n\n"
            } else if down > size * LINE_GAP || right < -size * 2.0 {
                "\n"
            } else if right > size * SPACE_GAP && !text.starts_with(' ') {
                " "
            } else {
                ""
            }
        });
        if !separator.is_empty() {
            self.separate(separator);
        }
        self.heading.add(text, size, separator);
        self.written.push_str(text);
        self.end = Some(end);
    }

    /// Appends a separator in place of spaces at the end.
    fn separate(&mut self, separator: &str) {
        if self.written.ends_with('\n') || separator == " " && self.written.ends_with(' ') {
            return;
        }
        if separator != " " {
            self.written.truncate(self.written.trim_end_matches(' ').len());
        }
        self.written.push_str(separator);
    }

    /// Returns the length of the text so far in bytes.
    pub(super) fn len(&self) -> usize {
        self.written.len()
    }

    /// Returns the text and its heading, without characters that are not shown.
    pub(super) fn into_text(self) -> PageText {
        let is_shown = |character: &char| !character.is_control() || matches!(character, '\n' | '\t');
        let text: String = self.written.chars().filter(is_shown).collect();
        let heading = self.heading.into_text().chars().filter(is_shown).collect();
        PageText { text: text.trim().to_owned(), heading }
    }
}
