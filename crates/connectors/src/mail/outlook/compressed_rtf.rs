//! Bodies in compressed RTF (MS-OXRTFCP): an LZ77 code with a window of 4 KiB, which begins with common RTF.

/// The start of the window.
const DICTIONARY: &[u8] = b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";

/// Size of the window in bytes.
const WINDOW_BYTES: usize = 4_096;

/// Maximum bytes of the text.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Decompresses a body. Returns `None` for one that is too large or of an unknown form; one that ends early is kept up
/// to its end.
pub(super) fn decompress(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, content) = bytes.split_at_checked(16)?;
    let form = header.get(8..12)?;
    if form == b"MELA" {
        return Some(content.to_vec());
    }
    if form != b"LZFu" {
        return None;
    }
    let mut window = [b' '; WINDOW_BYTES];
    window.iter_mut().zip(DICTIONARY).for_each(|(slot, byte)| *slot = *byte);
    let (mut written, mut at) = (Vec::new(), DICTIONARY.len());
    let mut rest = content.iter().copied();
    let mut put = |byte: u8, written: &mut Vec<u8>, window: &mut [u8; WINDOW_BYTES]| {
        if let Some(slot) = window.get_mut(at) {
            *slot = byte;
        }
        at = (at + 1) % WINDOW_BYTES;
        written.push(byte);
        at
    };
    let mut next = DICTIONARY.len();
    while let Some(control) = rest.next() {
        for bit in 0..8 {
            if written.len() > MAX_BYTES {
                return None;
            }
            let Some(first) = rest.next() else { return Some(written) };
            if control & (1 << bit) == 0 {
                next = put(first, &mut written, &mut window);
                continue;
            }
            let Some(second) = rest.next() else { return Some(written) };
            let offset = (usize::from(first) << 4) | usize::from(second >> 4);
            // A reference to the place of writing ends the text.
            if offset == next {
                return Some(written);
            }
            for step in 0..usize::from(second & 0x0F) + 2 {
                let byte = window.get((offset + step) % WINDOW_BYTES).copied().unwrap_or_default();
                next = put(byte, &mut written, &mut window);
            }
        }
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of MS-OXRTFCP, section 4.
    #[test]
    fn texts_are_decompressed() {
        let first: &[u8] = b"\x2d\x00\x00\x00\x2b\x00\x00\x00LZFu\xf1\xc5\xc7\xa7\x03\x00\x0a\x00rcpg125B\x32\x0a\xf3 hel\x09\x00 bw\x05\xb0ld}\x0a\x80\x0f\xa0";
        assert_eq!(decompress(first).unwrap(), b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n");
        let second: &[u8] = b"\x1a\x00\x00\x00\x1c\x00\x00\x00LZFu\xe2\xd4KQA\x00\x04 WXYZ\x0dn}\x01\x0e\xb0";
        assert_eq!(decompress(second).unwrap(), b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}");
        assert_eq!(decompress(b"\0\0\0\0\0\0\0\0MELA\0\0\0\0{\\rtf1}").unwrap(), b"{\\rtf1}");
        assert!(decompress(b"short").is_none() && decompress(b"\0\0\0\0\0\0\0\0XXXX\0\0\0\0").is_none());
        // A code that never ends has at most nine times its size.
        let endless = [b"\0\0\0\0\0\0\0\0LZFu\0\0\0\0".as_slice(), &b"\xFF\x00\x0F".repeat(1_000)].concat();
        assert!(decompress(&endless).unwrap().len() < 9 * endless.len());
    }
}
