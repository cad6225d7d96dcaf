//! The texts of cells: those that cells share (SST), which continue in further records, and those in a record.

use super::super::rows::MAX_CELLS;
use super::bytes::{latin_text, u16_at, usize_at, utf16_text};

/// Flags of a text: two bytes a character, phonetic data, and runs of formats.
const IS_WIDE: u8 = 1;
const HAS_PHONETICS: u8 = 4;
const HAS_RUNS: u8 = 8;

/// Bytes of a run of a format.
const RUN_BYTES: usize = 4;

/// Returns the texts in a record and those that continue it. A list that ends early has the texts before that place.
pub(super) fn shared_strings(records: Vec<&[u8]>) -> Result<Vec<String>, String> {
    let mut reader = Reader { records: records.into_iter(), rest: &[] };
    reader.next_record();
    // Number of cells with a text, and of texts.
    let count =
        reader.skip(4).and_then(|()| reader.take(4)).and_then(|bytes| usize_at(&bytes, 0)).unwrap_or(0);
    if count > MAX_CELLS {
        return Err(format!("its cells share more than {MAX_CELLS} texts"));
    }
    let mut texts = Vec::new();
    while texts.len() < count
        && let Some(text) = reader.text()
    {
        texts.push(text);
    }
    Ok(texts)
}

/// Returns the text at the start of a record: the number of characters in one or two bytes, flags, and the characters.
pub(super) fn text_in(record: &[u8], length_bytes: usize) -> Option<String> {
    let length = match length_bytes {
        1 => record.first().copied()?.into(),
        _ => u16_at(record, 0)?,
    };
    let mut reader = Reader { records: Vec::new().into_iter(), rest: record.get(length_bytes..)? };
    reader.characters(length.into())
}

/// A reader of records that continue each other.
struct Reader<'r> {
    records: std::vec::IntoIter<&'r [u8]>,
    rest: &'r [u8],
}

impl<'r> Reader<'r> {
    /// Continues in the next record. Returns false at the end.
    fn next_record(&mut self) -> bool {
        let next = self.records.next();
        self.rest = next.unwrap_or_default();
        next.is_some()
    }

    /// Takes at most this many bytes of the record.
    fn take_some(&mut self, count: usize) -> &'r [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Takes bytes that may continue in the next record.
    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut taken = Vec::new();
        while taken.len() < count {
            if self.rest.is_empty() && !self.next_record() {
                return None;
            }
            taken.extend_from_slice(self.take_some(count - taken.len()));
        }
        Some(taken)
    }

    /// Skips bytes that may continue in the next record.
    fn skip(&mut self, mut count: usize) -> Option<()> {
        while count > 0 {
            if self.rest.is_empty() && !self.next_record() {
                return None;
            }
            count -= self.take_some(count).len();
        }
        Some(())
    }

    /// Reads a text with its formats and phonetic data, which are skipped.
    fn text(&mut self) -> Option<String> {
        let length = u16_at(&self.take(2)?, 0)?;
        let flags = self.take(1)?.first().copied()?;
        let runs = if flags & HAS_RUNS != 0 { u16_at(&self.take(2)?, 0)? } else { 0 };
        let phonetics = if flags & HAS_PHONETICS != 0 { usize_at(&self.take(4)?, 0)? } else { 0 };
        let text = self.characters_in(length.into(), flags)?;
        self.skip((usize::from(runs) * RUN_BYTES).saturating_add(phonetics))?;
        Some(text)
    }

    /// Reads flags and characters without formats.
    fn characters(&mut self, length: usize) -> Option<String> {
        let flags = self.take(1)?.first().copied()?;
        self.characters_in(length, flags)
    }

    /// Reads characters. Those that continue in the next record are after flags of their own.
    fn characters_in(&mut self, mut left: usize, mut flags: u8) -> Option<String> {
        let mut text = String::new();
        while left > 0 {
            if self.rest.is_empty() {
                if !self.next_record() {
                    return None;
                }
                flags = self.take_some(1).first().copied()?;
            }
            let width = if flags & IS_WIDE != 0 { 2 } else { 1 };
            let bytes = self.take_some(left * width);
            text.push_str(&if width == 2 { utf16_text(bytes) } else { latin_text(bytes) });
            // Half a character at the end of a damaged record counts as one.
            left = left.saturating_sub(bytes.len().div_ceil(width));
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_continue_in_the_next_record() {
        let first =
            [&[9, 0, 0, 0, 4, 0, 0, 0][..], &[3, 0, 0, b'a', b'b', b'c'], &[4, 0, 0, b'd', b'e']].concat();
        // The rest in UTF-16, then a text with a run and phonetic data that end in the third record.
        let second = [&[1, b'f', 0, 0x2C, 0x67][..], &[1, 0, 0x0C, 1, 0, 3, 0, 0, 0, b'x', 1, 2]].concat();
        let third = [&[3, 4, 9, 9, 9][..], &[2, 0, 1, b'y', 0, b'z', 0], &[7, 0, 0]].concat();
        let texts = shared_strings(vec![&first[..], &second[..], &third[..]]).unwrap();
        assert_eq!(texts, ["abc", "def本", "x", "yz"]);
        // A list that ends early, and one with more texts than cells.
        assert_eq!(shared_strings(vec![&first[..]]).unwrap(), ["abc"]);
        assert!(shared_strings(vec![&[0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF][..]]).is_err());
        assert!(shared_strings(Vec::new()).unwrap().is_empty());
        assert_eq!(text_in(&[2, 0, b'o', b'k', 9], 1).as_deref(), Some("ok"));
        assert_eq!((text_in(&[2, 0, 1, b'o', 0], 2), text_in(&[], 1)), (None, None));
    }
}
