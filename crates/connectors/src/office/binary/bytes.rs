//! Little-endian numbers and texts at positions of a stream.

use encoding_rs::{Encoding, MACINTOSH, UTF_8, UTF_16LE, WINDOWS_1252};

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
    let label = format!("windows-{code_page}");
    let encoding = match code_page {
        932 => Encoding::for_label(b"shift_jis"),
        936 => Encoding::for_label(b"gbk"),
        949 => Encoding::for_label(b"euc-kr"),
        950 => Encoding::for_label(b"big5"),
        1200 => Some(UTF_16LE),
        10_000 => Some(MACINTOSH),
        65_001 => Some(UTF_8),
        _ => Encoding::for_label(label.as_bytes()),
    };
    encoding.unwrap_or(WINDOWS_1252).decode_without_bom_handling(bytes).0.into_owned()
}
