//! Splits a text into chunks within the limit of a model.
//!
//! Chunks tile the text: they do not overlap, and together they are the whole text. A chunk ends at a blank line, else at
//! a line end, else after a sentence, else between words, as late as the limit allows. What a model gets is the chunk
//! below the title of its record and the path of its headings.

use std::ops::Range;

use super::headings::Headings;
use super::pieces::PieceCount;

/// Maximum number of chunks of one text: about 1 MB of English for a limit of 256 pieces. Text behind them is not
/// embedded, and is found by words.
pub const MAX_CHUNKS: usize = 1_000;

/// Pieces that tokenizers add to a text, and a reserve for estimates at the borders of words.
const RESERVED_PIECES: usize = 6;

/// Minimum number of pieces for the text of a chunk, whatever the limit says.
const MIN_PIECES: usize = 8;

/// Maximum length of a word in bytes. A longer one, such as a text without spaces, is split.
const MAX_WORD_BYTES: usize = 48;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// Text for the model: title, heading path and the part itself.
    pub embedded: String,
    /// Number of pieces of the text for the model, as far as the counter knows.
    pub pieces: usize,
}

/// The chunks of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunks {
    /// Chunks in the order of the text. None of white space alone.
    pub chunks: Vec<Chunk>,
    /// Number of bytes at the end of the text that are in no chunk.
    pub omitted_bytes: usize,
}

/// Splits a text. The same text, title and counter give the same chunks.
#[must_use]
pub fn chunks(title: Option<&str>, text: &str, counter: &dyn PieceCount) -> Chunks {
    let limit = counter.limit().saturating_sub(RESERVED_PIECES).max(MIN_PIECES * 2);
    let title = title.map(str::trim).unwrap_or_default();
    // A quarter of the limit is for the title, and a quarter for the headings.
    let title = truncated(title, limit / 4, counter);
    let title_pieces = counter.count(title);
    let mut headings = Headings::default();
    let mut found = Chunks::default();
    let mut start = 0;
    while start < text.len() {
        if found.chunks.len() == MAX_CHUNKS {
            found.omitted_bytes = text.len() - start;
            break;
        }
        let path = headings.shown();
        let path = truncated(&path, limit / 4, counter);
        let room = limit.saturating_sub(title_pieces + counter.count(path)).max(MIN_PIECES);
        let rest = text.get(start..).unwrap_or_default();
        let length = first_part(rest, room, counter);
        let part = rest.get(..length).unwrap_or(rest);
        if !part.trim().is_empty() {
            let embedded = embedded_text(title, path, part);
            let pieces = counter.count(&embedded);
            found.chunks.push(Chunk { range: start..start + part.len(), embedded, pieces });
        }
        headings.read(part);
        start += part.len();
    }
    found
}

/// Returns the text for the model. A title that the part begins with is not repeated.
fn embedded_text(title: &str, path: &str, part: &str) -> String {
    let part = part.trim();
    let mut lines = Vec::with_capacity(3);
    lines.extend([title].into_iter().filter(|title| !title.is_empty() && !part.starts_with(title)));
    lines.extend([path].into_iter().filter(|path| !path.is_empty() && *path != title));
    lines.push(part);
    lines.join("\n")
}

/// Returns the length of the longest useful beginning with at most `room` pieces. At least one word.
fn first_part(text: &str, room: usize, counter: &dyn PieceCount) -> usize {
    let (mut end, mut pieces) = (0, 0);
    let mut best = Border::default();
    while let Some(word) = next_word(text.get(end..).unwrap_or_default()) {
        pieces += counter.count(word);
        if pieces > room && end > 0 {
            return best.end_in(end);
        }
        end += word.len();
        best.see(text, end);
    }
    text.len()
}

/// The last places at which a part can end, by preference.
#[derive(Debug, Default)]
struct Border {
    blank_line: usize,
    line: usize,
    sentence: usize,
}

impl Border {
    /// Notes that a word ends at `end`.
    fn see(&mut self, text: &str, end: usize) {
        let before = text.get(..end).unwrap_or_default();
        let letters = before.trim_end_matches([' ', '\n', '\r', '\t']);
        let space = before.get(letters.len()..).unwrap_or_default();
        if space.matches('\n').count() > 1 {
            self.blank_line = end;
        }
        if space.contains('\n') {
            self.line = end;
        }
        if letters.ends_with(['.', '!', '?', '。', '！', '？']) {
            self.sentence = end;
        }
    }

    /// Returns the best end, given that the limit is reached at `end`. A border in the first half is too early.
    fn end_in(&self, end: usize) -> usize {
        let borders = [self.blank_line, self.line, self.sentence];
        borders.into_iter().find(|border| *border > end / 2).unwrap_or(end)
    }
}

/// Returns the next word with the white space behind it.
fn next_word(text: &str) -> Option<&str> {
    if text.is_empty() {
        return None;
    }
    let letters = text.find(char::is_whitespace).unwrap_or(text.len());
    if letters > MAX_WORD_BYTES {
        let end = (1..=MAX_WORD_BYTES).rev().find(|end| text.is_char_boundary(*end));
        return text.get(..end.unwrap_or(letters));
    }
    let rest = text.get(letters..).unwrap_or_default();
    let space = rest.len() - rest.trim_start().len();
    // Long white space is split too, so that a word is short.
    let end = (letters + space).min(letters + MAX_WORD_BYTES);
    let end = (end..=letters + space).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    text.get(..end)
}

/// Returns the beginning of a text with at most so many pieces.
fn truncated<'a>(text: &'a str, limit: usize, counter: &dyn PieceCount) -> &'a str {
    let (mut end, mut pieces) = (0, 0);
    while let Some(word) = next_word(text.get(end..).unwrap_or_default()) {
        pieces += counter.count(word);
        if pieces > limit {
            break;
        }
        end += word.len();
    }
    text.get(..end).unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::EstimatedPieces;

    const SMALL: EstimatedPieces = EstimatedPieces { limit: 32 };

    fn parts<'a>(text: &'a str, found: &Chunks) -> Vec<&'a str> {
        found.chunks.iter().map(|chunk| text.get(chunk.range.clone()).unwrap()).collect()
    }

    #[test]
    fn a_short_text_is_one_chunk_below_its_title() {
        let found = chunks(Some("Invoice 2"), "Please pay by Friday.", &SMALL);
        assert_eq!(found.chunks.len(), 1);
        assert_eq!(found.chunks.first().unwrap().embedded, "Invoice 2\nPlease pay by Friday.");
        assert_eq!(chunks(Some("a"), "", &SMALL), Chunks::default());
        assert_eq!(chunks(None, " \n\t ", &SMALL), Chunks::default());
    }

    #[test]
    fn parts_end_at_paragraphs_and_carry_their_headings() {
        let text = "# Guide\n\nOne two three four five six seven eight nine ten.\n\n## Install\n\nRun the program \
                    once, and then run it again until it is done. Then stop it and look at what it wrote there.\n";
        let found = chunks(None, text, &SMALL);
        let parts = parts(text, &found);
        assert!(parts.len() > 1, "{parts:?}");
        assert_eq!(parts.concat(), text);
        assert!(parts.first().unwrap().ends_with("\n\n"), "{parts:?}");
        assert!(found.chunks.last().unwrap().embedded.starts_with("Guide > Install\n"), "{found:?}");
    }

    #[test]
    fn a_text_without_spaces_is_split() {
        let text = "x".repeat(5_000);
        let found = chunks(None, &text, &SMALL);
        assert_eq!(parts(&text, &found).concat(), text);
        assert!(found.chunks.iter().all(|chunk| chunk.pieces <= SMALL.limit));
    }

    #[test]
    fn a_long_text_has_a_bounded_number_of_chunks() {
        let text = "word and more words. ".repeat(20_000);
        let found = chunks(None, &text, &SMALL);
        assert_eq!(found.chunks.len(), MAX_CHUNKS);
        let end = found.chunks.last().unwrap().range.end;
        assert_eq!(found.omitted_bytes, text.len() - end);
    }

    proptest! {
        #[test]
        fn chunks_cover_the_text(
            text in "([a-zäöß。会議😀#.!]{0,60}[ \n\t\u{2003}]{0,3}){0,60}",
            title in proptest::option::of(".{0,80}"),
            limit in 0..64_usize,
        ) {
            let counter = EstimatedPieces { limit };
            let found = chunks(title.as_deref(), &text, &counter);
            prop_assert_eq!(&found, &chunks(title.as_deref(), &text, &counter));
            let mut end = 0;
            for chunk in &found.chunks {
                // Only white space is left out.
                prop_assert!(text.get(end..chunk.range.start).unwrap().trim().is_empty());
                prop_assert!(!text.get(chunk.range.clone()).unwrap().trim().is_empty());
                end = chunk.range.end;
            }
            prop_assert!(text.get(end..).unwrap().trim().is_empty());
            if limit >= 48 {
                prop_assert!(found.chunks.iter().all(|chunk| chunk.pieces <= limit));
            }
        }
    }
}
