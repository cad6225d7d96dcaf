//! Little-endian numbers and texts at positions of a stream.

use encoding_rs::{UTF_16LE, WINDOWS_1252};

use super::super::super::text_input::encoding_of_code_page;

/// Returns the number of two bytes at a position.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_le_bytes(*chunk))
}

/// Returns the number of four bytes at a position.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

/// Returns the number of four bytes at a position as a position or length.
pub(super) fn usize_at(bytes: &[u8], at: usize) -> Option<usize> {
    u32_at(bytes, at).and_then(|number| usize::try_from(number).ok())
}

/// Returns the number of eight bytes at a position.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Returns this many bytes at a position.
pub(super) fn slice_at(bytes: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(length)?)
}

/// Returns a text in UTF-16.
pub(super) fn utf16_text(bytes: &[u8]) -> String {
    UTF_16LE.decode_without_bom_handling(bytes).0.into_owned()
}

/// Returns a text with a byte for each of the first 256 characters of Unicode.
pub(super) fn latin_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Returns a text in a code page of Windows. An unknown one counts as 1252.
pub(super) fn code_page_text(bytes: &[u8], code_page: u16) -> String {
    let encoding = match code_page {
        1200 => Some(UTF_16LE),
        _ => encoding_of_code_page(code_page.into()),
    };
    encoding.unwrap_or(WINDOWS_1252).decode_without_bom_handling(bytes).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_in_their_code_page() {
        for (bytes, page, expect) in [
            (&b"\x8F\xE0"[..], 866, "Пр"),
            (b"\xD0\xD2", 20_866, "пр"),
            (b"\xB1", 28_592, "ą"),
            (b"\xB4\xC1", 51_932, "漢"),
            (b"a\0", 1200, "a"),
            (b"\xE9", 437, "é"),
        ] {
            assert_eq!(code_page_text(bytes, page), expect, "{page}");
        }
    }
}
