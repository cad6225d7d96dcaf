//! The text of a Word document of Word 97 to 2003.
//!
//! The stream `WordDocument` begins with the positions of all parts (FIB). A table in another stream lists the pieces of
//! the text, each of one or two bytes a character. Document, footnotes, headers, comments, endnotes and text boxes follow
//! each other in that text. Hidden text, and text that is marked as deleted, is not told apart.

use std::collections::HashSet;

use encoding_rs::WINDOWS_1252;

use super::super::super::documents::Document;
use super::super::super::item::{FileKind, FileRecord, Item};
use super::super::super::skips::Problem;
use super::super::word::is_page_number;
use super::bytes::{slice_at, u16_at, u32_at, usize_at};
use super::compound::{Compound, encrypted};
use super::properties::read_properties;
use super::{MAX_TEXT_BYTES, older_format, too_long};

/// Version of the format of Word 97.
const WORD_97: u16 = 0xC1;

/// Positions in the FIB: version, flags, the number of characters of each part, and the place of the list of pieces.
const VERSION_AT: usize = 0x02;
const FLAGS_AT: usize = 0x0A;
const CLX_AT: usize = 0x1A2;

/// Flags: the text is encrypted, and the list of pieces is in the stream `1Table`.
const IS_ENCRYPTED: u16 = 0x100;
const IS_TABLE_1: u16 = 0x200;

/// Positions in the FIB of the number of characters of document, footnotes, headers, comments, endnotes, text boxes, and
/// text boxes of headers, in the order of the text.
const LENGTHS_AT: [usize; 7] = [0x4C, 0x50, 0x54, 0x5C, 0x60, 0x64, 0x68];

/// Bit of the position of a piece with one byte a character.
const IS_COMPRESSED: u32 = 1 << 30;

/// Bytes of the description of a piece.
const PIECE_BYTES: usize = 8;

/// Character at the end of a cell and of a row of a table.
const CELL_END: char = '\u{7}';

/// Reads a document.
pub(in super::super) fn read_doc(item: &Item<'_>, bytes: Vec<u8>) -> Result<FileRecord, Problem> {
    let mut file = Compound::open(bytes)?;
    let mut document = Document::default();
    let main =
        file.read("WordDocument")?.ok_or("it has no stream WordDocument, so it is no Word document")?;
    let flags = u16_at(&main, FLAGS_AT).unwrap_or(0);
    if u16_at(&main, VERSION_AT).unwrap_or(0) < WORD_97 {
        return Err(older_format("Word", "docx"));
    }
    if flags & IS_ENCRYPTED != 0 {
        return Err(encrypted());
    }
    read_properties(&mut file, &mut document);
    let name = if flags & IS_TABLE_1 != 0 { "1Table" } else { "0Table" };
    let table = file.read(name)?.ok_or_else(|| format!("it has no stream {name}"))?;
    let units = text_units(&main, &table)?;
    let mut rest = units.as_slice();
    let mut known = HashSet::new();
    for (part, at) in LENGTHS_AT.into_iter().enumerate() {
        let length = usize_at(&main, at).unwrap_or(0).min(rest.len());
        let (units, after) = rest.split_at(length);
        rest = after;
        let text = plain_text(units);
        // Each section can have the same header again.
        let lines = text
            .lines()
            .filter(|line| part == 0 || !line.trim().is_empty() && known.insert((*line).to_owned()));
        for line in lines {
            document.text.push_str(line);
            document.text.push('\n');
        }
    }
    document.text = document.text.trim().to_owned();
    let mut record = document.into_record(FileKind::Docx, item);
    record.put_text("format", "doc");
    Ok(record)
}

/// Returns the text of all parts in UTF-16, from its pieces.
fn text_units(main: &[u8], table: &[u8]) -> Result<Vec<u16>, Problem> {
    let place = usize_at(main, CLX_AT).zip(usize_at(main, CLX_AT + 4));
    let pieces = place.and_then(|(at, length)| slice_at(table, at, length)).and_then(piece_list);
    let pieces = pieces.ok_or("its list of pieces of text is broken")?;
    // Positions of all pieces and the end, and then a description for each.
    let count = pieces.len().saturating_sub(4) / (4 + PIECE_BYTES);
    let mut units = Vec::new();
    for piece in 0..count {
        let position = |at: usize| u32_at(pieces, at * 4);
        let length = position(piece).zip(position(piece + 1)).and_then(|(start, end)| end.checked_sub(start));
        let length = length.and_then(|length| usize::try_from(length).ok());
        let place = u32_at(pieces, (count + 1) * 4 + piece * PIECE_BYTES + 2);
        let (length, place) = length.zip(place).ok_or("its list of pieces of text is broken")?;
        if units.len().saturating_add(length) > MAX_TEXT_BYTES / 2 {
            return Err(too_long());
        }
        let at = usize::try_from(place & (IS_COMPRESSED - 1)).unwrap_or(usize::MAX);
        if place & IS_COMPRESSED != 0 {
            let bytes = slice_at(main, at / 2, length).ok_or("a piece of its text is missing")?;
            units.extend(WINDOWS_1252.decode_without_bom_handling(bytes).0.encode_utf16());
        } else {
            let bytes = slice_at(main, at, length * 2).ok_or("a piece of its text is missing")?;
            units.extend(bytes.chunks_exact(2).filter_map(|unit| u16_at(unit, 0)));
        }
    }
    Ok(units)
}

/// Returns the list of pieces among the changes of format before it.
fn piece_list(mut clx: &[u8]) -> Option<&[u8]> {
    const CHANGES: u8 = 1;
    const PIECES: u8 = 2;
    loop {
        match *clx.first()? {
            CHANGES => clx = clx.get(3 + usize::from(u16_at(clx, 1)?)..)?,
            PIECES => return slice_at(clx, 5, usize_at(clx, 1)?),
            _ => return None,
        }
    }
}

/// Returns a text without the characters of Word, instructions of fields and numbers of pages.
fn plain_text(units: &[u16]) -> String {
    let mut text = String::new();
    let mut fields: Vec<Field> = Vec::new();
    let mut hidden = 0_usize;
    // True behind the mark that ends a cell. Two of them end the last cell of a row and the row.
    let mut is_behind_cell = false;
    for character in char::decode_utf16(units.iter().copied()) {
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        let ends_row = is_behind_cell && character == CELL_END;
        is_behind_cell = character == CELL_END && !ends_row;
        match character {
            '\u{13}' => {
                fields.push(Field::default());
                hidden += 1;
            }
            '\u{14}' => {
                if let Some(field) = fields.last_mut().filter(|field| !field.has_result) {
                    field.has_result = true;
                    field.is_hidden = is_page_number(&field.instruction);
                    hidden -= usize::from(!field.is_hidden);
                }
            }
            '\u{15}' => {
                let is_hidden = fields.pop().is_some_and(|field| field.is_hidden || !field.has_result);
                hidden -= usize::from(is_hidden);
            }
            character if hidden > 0 => {
                if let Some(field) = fields.last_mut().filter(|field| !field.has_result) {
                    field.instruction.push(character);
                }
            }
            '\r' | '\u{B}' | '\u{C}' => text.push('\n'),
            CELL_END if ends_row => {
                text.pop();
                text.push('\n');
            }
            CELL_END => text.push('\t'),
            '\u{1E}' => text.push('-'),
            '\t' => text.push('\t'),
            character if character.is_control() => {}
            character => text.push(character),
        }
    }
    text
}

/// A field: an instruction, and then its result.
#[derive(Debug, Default)]
struct Field {
    instruction: String,
    has_result: bool,
    /// True if the result is left out.
    is_hidden: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_with_two_marks_and_tabs_are_kept() {
        for (written, expect) in [
            ("a\u{7}b\u{7}\u{7}c\u{7}d\u{7}\u{7}end", "a\tb\nc\td\nend"),
            ("Name:\t\tAnn\rAge:\t\t\t7", "Name:\t\tAnn\nAge:\t\t\t7"),
            ("a\t\u{7}\u{7}", "a\t\n"),
            ("\u{13}PAGE\u{14}1\u{15}x", "x"),
        ] {
            assert_eq!(plain_text(&written.encode_utf16().collect::<Vec<_>>()), expect);
        }
    }
}
