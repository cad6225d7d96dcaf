//! The chunks of a document: parts that tile its text.
//!
//! A part ends at a blank line, else at a line end, else after a sentence, as late as its size allows. The parts do not
//! overlap and leave nothing out, so their concatenation is the text, byte for byte.

use std::ops::Range;

use fetchwell_core::fit::count_tokens;
use fetchwell_embedding::{EstimatedPieces, Headings, chunks};

use super::document::ChunkMetadata;

/// Counter of the pieces of a part. Its limit is above the number of o200k tokens, and far below the 8,192 tokens that the
/// contract allows an embedding model.
const PART_SIZE: EstimatedPieces = EstimatedPieces { limit: 400 };

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// Position in code points, and headings.
    pub metadata: ChunkMetadata,
    /// Number of o200k tokens.
    pub token_count: usize,
}

/// Splits a text into parts. The same text gives the same parts; an empty text has none.
#[must_use]
pub fn tiles(text: &str) -> Vec<Tile> {
    let mut headings = Headings::default();
    let (mut tiles, mut start, mut chars) = (Vec::new(), 0, 0);
    for end in part_ends(text) {
        let part = text.get(start..end).unwrap_or_default();
        headings.read(leading_headings(part));
        let heading_path = headings.shown();
        headings.read(part);
        let end_chars = chars + part.chars().count();
        tiles.push(Tile {
            range: start..end,
            metadata: ChunkMetadata { start: chars, end: end_chars, heading_path },
            token_count: count_tokens(part),
        });
        (start, chars) = (end, end_chars);
    }
    tiles
}

/// Returns the ends of the parts of a text. White space that no chunk has belongs to the part behind it.
fn part_ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut base = 0;
    loop {
        let found = chunks(None, text.get(base..).unwrap_or_default(), &PART_SIZE);
        ends.extend(found.chunks.iter().map(|chunk| base + chunk.range.end));
        let next = text.len() - found.omitted_bytes;
        if found.omitted_bytes == 0 || next <= base {
            break;
        }
        base = next;
    }
    match ends.last_mut() {
        Some(last) => *last = text.len(),
        None if text.is_empty() => {}
        None => ends.push(text.len()),
    }
    ends
}

/// Returns the blank lines and headings at the start of a part.
#[must_use]
pub fn leading_headings(part: &str) -> &str {
    let lines = part.split_inclusive('\n');
    let length = lines.take_while(|line| line.trim().is_empty() || line.starts_with('#')).map(str::len).sum();
    part.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_tiling(text: &str) {
        let tiles = tiles(text);
        let parts: String = tiles.iter().map(|tile| text.get(tile.range.clone()).unwrap()).collect();
        assert_eq!(parts, text);
        let mut chars = 0;
        for tile in &tiles {
            assert!(!tile.range.is_empty());
            assert_eq!(tile.metadata.start, chars);
            chars += text.get(tile.range.clone()).unwrap().chars().count();
            assert_eq!(tile.metadata.end, chars);
        }
    }

    #[test]
    fn parts_of_any_text_tile_it() {
        for text in ["", " ", "\n\n", "a", "\u{FEFF}# Title\r\n\r\nText\r\n", "é\u{301}"] {
            check_tiling(text);
        }
        check_tiling(&"x".repeat(50_000));
        check_tiling(&"会議は来週の火曜日に延期されました。".repeat(400));
        check_tiling(&format!("{}a{}", " ".repeat(5_000), "\n".repeat(5_000)));
    }

    #[test]
    fn long_texts_have_no_limit_of_parts() {
        let text = "word and more words. ".repeat(120_000);
        assert!(tiles(&text).len() > fetchwell_embedding::MAX_CHUNKS);
        check_tiling(&text);
    }

    #[test]
    fn parts_know_the_headings_above_them() {
        let body = "One two three four five six seven eight nine ten.\n\n".repeat(20);
        let text = format!("# Guide\n\n{body}## Install\n\n{body}# Other\n\nlast\n");
        let paths: Vec<String> = tiles(&text).into_iter().map(|tile| tile.metadata.heading_path).collect();
        assert_eq!(paths.first().unwrap(), "Guide");
        assert!(paths.iter().any(|path| path == "Guide > Install"), "{paths:?}");
    }

    #[test]
    fn parts_have_at_most_as_many_tokens_as_pieces() {
        let text = "fn main() { println!(\"{}\", a[0] + b.len()); }\n".repeat(300);
        assert!(tiles(&text).iter().all(|tile| tile.token_count <= PART_SIZE.limit));
    }

    proptest! {
        #[test]
        fn parts_tile_the_text(text in "([a-zäöß。会議😀#.!]{0,60}[ \r\n\t\u{2003}]{0,3}){0,60}") {
            check_tiling(&text);
        }
    }
}
