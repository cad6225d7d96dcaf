//! Bytes as hexadecimal text.

use std::fmt::Write;

/// Returns two lower-case digits a byte.
pub fn hexadecimal<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> String {
    bytes.into_iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
