//! Texts of a column in pieces.
//!
//! The texts of a segment are sorted, and an ordinal is the place of a text among them. The block of the column has the first text
//! of each piece, so that one text is found in one piece.

use super::block::{BlockReader, put_length};

/// Bytes of texts after which a piece ends.
const PIECE_BYTES: usize = 16 * 1024;

/// Maximum number of texts of a column.
const MAX_TEXTS: u32 = 2_000_000;

/// First texts of the pieces of a column.
#[derive(Debug, Default)]
pub(super) struct TextIndex<'a> {
    /// Number of texts.
    pub(super) count: u32,
    /// True if a text may be a mail address.
    pub(super) has_addresses: bool,
    /// First ordinal and first text of each piece.
    pieces: Vec<(u32, &'a [u8])>,
}

/// Appends the index of texts to a block. Returns the pieces.
pub(super) fn put_texts(bytes: &mut Vec<u8>, texts: &[&str]) -> Vec<Vec<u8>> {
    let mut pieces: Vec<&[&str]> = Vec::new();
    let mut rest = texts;
    while !rest.is_empty() {
        let mut length = 0;
        let fits = |text: &&&str| {
            let has_room = length < PIECE_BYTES;
            length += text.len();
            has_room
        };
        let (piece, after) = rest.split_at(rest.iter().take_while(fits).count());
        pieces.push(piece);
        rest = after;
    }
    bytes.push(u8::from(texts.iter().any(|text| text.contains('@'))));
    put_length(bytes, texts.len());
    put_length(bytes, pieces.len());
    let mut ordinal = 0;
    for piece in &pieces {
        put_length(bytes, ordinal);
        put_text(bytes, piece.first().copied().unwrap_or_default());
        ordinal += piece.len();
    }
    let block = |piece: &&[&str]| {
        let mut bytes = Vec::new();
        put_length(&mut bytes, piece.len());
        piece.iter().for_each(|text| put_text(&mut bytes, text));
        bytes
    };
    pieces.iter().map(block).collect()
}

/// Appends a text of at most 255 bytes.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(text.as_bytes());
}

fn read_text<'a>(reader: &mut BlockReader<'a>) -> Option<&'a [u8]> {
    let length = reader.u8()?;
    reader.take(length.into())
}

impl<'a> TextIndex<'a> {
    pub(super) fn read(reader: &mut BlockReader<'a>) -> Option<Self> {
        let has_addresses = reader.u8()? != 0;
        let (count, piece_count) = (reader.u32()?, reader.u32()?);
        let mut pieces = Vec::new();
        for _ in 0..piece_count {
            pieces.push((reader.u32()?, read_text(reader)?));
        }
        let is_sorted = pieces.is_sorted_by(|(a, _), (b, _)| a < b);
        let is_complete = pieces.first().map_or(count == 0, |(first, _)| *first == 0);
        (is_sorted && is_complete && count <= MAX_TEXTS).then_some(Self { count, has_addresses, pieces })
    }

    /// Returns the number of the piece that may have a text, from 0.
    pub(super) fn piece_of_text(&self, text: &str) -> Option<usize> {
        self.pieces.partition_point(|(_, first)| *first <= text.as_bytes()).checked_sub(1)
    }

    /// Returns the number of the piece that has an ordinal, from 0.
    pub(super) fn piece_of_ordinal(&self, ordinal: u32) -> Option<usize> {
        let piece = self.pieces.partition_point(|(first, _)| *first <= ordinal).checked_sub(1)?;
        (ordinal < self.count).then_some(piece)
    }

    /// Reads a piece. Returns its first ordinal and its texts; `None` if it is damaged.
    pub(super) fn piece<'p>(&self, piece: usize, bytes: &'p [u8]) -> Option<TextPiece<'p>> {
        let (first, _) = *self.pieces.get(piece)?;
        let end = self.pieces.get(piece + 1).map_or(self.count, |(next, _)| *next);
        let mut reader = BlockReader::new(bytes);
        let mut texts = Vec::new();
        for _ in 0..reader.u32()? {
            texts.push(std::str::from_utf8(read_text(&mut reader)?).ok()?);
        }
        let is_complete = u32::try_from(texts.len()).ok() == end.checked_sub(first);
        (is_complete && reader.is_empty()).then_some(TextPiece { first, texts })
    }
}

/// Texts of a piece.
#[derive(Debug)]
pub(super) struct TextPiece<'a> {
    first: u32,
    texts: Vec<&'a str>,
}

impl TextPiece<'_> {
    /// Returns the text of an ordinal.
    pub(super) fn text(&self, ordinal: u32) -> Option<&str> {
        let at = usize::try_from(ordinal.checked_sub(self.first)?).ok()?;
        self.texts.get(at).copied()
    }

    /// Returns the ordinal of a text.
    pub(super) fn ordinal(&self, text: &str) -> Option<u32> {
        let at = self.texts.binary_search(&text).ok()?;
        self.first.checked_add(u32::try_from(at).ok()?)
    }
}
