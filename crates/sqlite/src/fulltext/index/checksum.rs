//! Checksums of index files.
//!
//! Tantivy ends each segment file with a footer: JSON with the CRC-32 of what comes before it, the length of the JSON
//! and a magic number. `meta.json` and `.managed.json` have none; `seal` adds a line with theirs.

use crc32fast::Hasher;
use serde::Deserialize;

const MAGIC: u32 = 1337;

/// Part of tantivy's footer that is read here.
#[derive(Deserialize)]
struct Footer {
    crc: u32,
}

/// Checksum in progress, with the expected value.
#[derive(Debug)]
pub(super) struct Checksum {
    hasher: Hasher,
    expected: u32,
}

impl Checksum {
    /// Maximum bytes at the end of a file in which the footer is searched.
    pub(super) const MAX_FOOTER: usize = 4_096;

    /// Reads the footer at the end of `tail`, the last bytes of a file of length `len`. Returns the checksum to
    /// compute and the number of bytes that it covers.
    pub(super) fn from_footer(tail: &[u8], len: usize) -> Result<(Self, usize), String> {
        let parse = || {
            let (rest, magic) = tail.split_last_chunk::<4>()?;
            let (rest, size) = rest.split_last_chunk::<4>()?;
            let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
            let footer = rest.get(rest.len().checked_sub(size)?..)?;
            let footer: Footer = serde_json::from_slice(footer).ok()?;
            (u32::from_le_bytes(*magic) == MAGIC).then_some((footer.crc, len.checked_sub(size + 8)?))
        };
        let (expected, body) = parse().ok_or_else(|| "its end is not that of an index file".to_owned())?;
        Ok((Self { hasher: Hasher::new(), expected }, body))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    pub(super) fn matches(self) -> bool {
        self.hasher.finalize() == self.expected
    }
}

/// Separator between a JSON text and its checksum.
const SEAL: &str = "\n#crc32:";

/// Appends a line with the checksum of a JSON text.
pub(super) fn seal(json: &[u8]) -> Vec<u8> {
    let mut sealed = json.to_vec();
    sealed.extend_from_slice(format!("{SEAL}{:08x}\n", crc32fast::hash(json)).as_bytes());
    sealed
}

/// Removes the line that [`seal`] appended. Returns `None` if it is missing or does not match.
pub(super) fn unseal(sealed: &[u8]) -> Option<&[u8]> {
    let (json, line) = sealed.split_at_checked(sealed.len().checked_sub(SEAL.len() + 9)?)?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix(SEAL)?.strip_suffix('\n')?;
    (line == format!("{:08x}", crc32fast::hash(json))).then_some(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_sealed_text_is_noticed() {
        let sealed = seal(br#"{"segments":[]}"#);
        assert_eq!(unseal(&sealed), Some(&br#"{"segments":[]}"#[..]));
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut flipped = sealed.clone();
                flipped[at] ^= 1 << bit;
                assert_eq!(unseal(&flipped), None, "bit {bit} of byte {at}");
            }
            assert_eq!(unseal(&sealed[..at]), None, "{at} bytes");
        }
    }
}
