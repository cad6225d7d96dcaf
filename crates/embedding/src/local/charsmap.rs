//! The map of characters of a `SentencePiece` model: texts with their replacements, compiled to a double array.
//!
//! The map begins with the size of the array in bytes. Each unit of the array has 32 bits in little-endian order; the
//! replacements follow, each ended by a zero byte. Every index is checked, so a damaged map replaces nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A map of characters.
pub(super) struct CharsMap {
    units: Vec<u32>,
    replacements: Vec<u8>,
}

impl CharsMap {
    /// Parses a map in Base64. Returns `None` if it is damaged.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let (size, rest) = bytes.split_first_chunk::<4>()?;
        let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
        let (array, replacements) = rest.split_at_checked(size)?;
        let (units, odd) = array.as_chunks::<4>();
        if units.is_empty() || !odd.is_empty() {
            return None;
        }
        let units = units.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        Some(Self { units, replacements: replacements.to_vec() })
    }

    /// Returns the text with the longest parts that the map has replaced.
    pub(super) fn normalize(&self, text: &str) -> String {
        let mut normalized = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let found = self.longest(rest.as_bytes());
            let (replacement, length) = found.unwrap_or((None, character.len_utf8()));
            match rest.split_at_checked(length) {
                Some((same, later)) => {
                    normalized.push_str(replacement.unwrap_or(same));
                    rest = later;
                }
                // The map cuts a character, so it is damaged.
                None => {
                    normalized.push_str(rest);
                    break;
                }
            }
        }
        normalized
    }

    /// Returns the replacement of the longest part at the beginning, and the length of that part in bytes.
    fn longest(&self, bytes: &[u8]) -> Option<(Option<&str>, usize)> {
        let mut at = offset(self.unit(0)?)?;
        let mut found = None;
        for (number, byte) in bytes.iter().enumerate() {
            at ^= usize::from(*byte);
            let Some(unit) = self.unit(at).filter(|unit| unit & (1 << 31 | 0xFF) == u32::from(*byte)) else {
                break;
            };
            let Some(children) = offset(unit) else { break };
            at ^= children;
            if unit >> 8 & 1 == 1 {
                let value = self.unit(at).and_then(|leaf| usize::try_from(leaf & 0x7FFF_FFFF).ok());
                found = value.map(|value| (self.replacement(value), number + 1)).or(found);
            }
        }
        found
    }

    fn unit(&self, at: usize) -> Option<u32> {
        self.units.get(at).copied()
    }

    /// Returns the replacement at a byte.
    fn replacement(&self, at: usize) -> Option<&str> {
        let rest = self.replacements.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(rest.get(..end)?).ok()
    }
}

/// Returns the distance of the children of a unit.
fn offset(unit: u32) -> Option<usize> {
    usize::try_from(unit >> 10 << ((unit & (1 << 9)) >> 6)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a map of one-byte texts to replacements.
    fn map(entries: &[(u8, &str)]) -> CharsMap {
        // The children of the root are at 256, their leaves at 512 and above.
        let mut units = vec![0_u32; 1024];
        units[0] = 256 << 10;
        let mut replacements = Vec::new();
        for (number, (byte, replacement)) in entries.iter().enumerate() {
            let (at, leaf) = (256 ^ usize::from(*byte), 512 + number);
            units[at] = u32::try_from(at ^ leaf).unwrap() << 10 | 1 << 8 | u32::from(*byte);
            units[leaf] = u32::try_from(replacements.len()).unwrap() | 1 << 31;
            replacements.extend(replacement.bytes().chain([0]));
        }
        let size = u32::try_from(units.len() * 4).unwrap();
        let bytes: Vec<u8> =
            [size].into_iter().chain(units).flat_map(u32::to_le_bytes).chain(replacements).collect();
        CharsMap::parse(&STANDARD.encode(bytes)).unwrap()
    }

    #[test]
    fn characters_are_replaced() {
        let map = map(&[(b'A', "a"), (b'\t', " "), (b'0', ""), (b'9', "ni\u{0308}ne")]);
        for (text, expect) in [
            ("", ""),
            ("xAy", "xay"),
            ("A\tA", "a a"),
            ("100", "1"),
            ("é9會", "éni\u{0308}ne會"),
            ("\u{0}", "\u{0}"),
        ] {
            assert_eq!(map.normalize(text), expect, "{text:?}");
        }
    }

    #[test]
    fn damaged_maps_are_refused_or_replace_nothing() {
        for damaged in ["", "AA==", "/////w==", "AAAAAA==", "not base64"] {
            assert!(CharsMap::parse(damaged).is_none(), "{damaged}");
        }
        for unit in [0, 1, 0xFFFF_FFFF, 0x8000_0141, 0x0000_0141, 0x7FFF_FF41] {
            let map = CharsMap { units: vec![unit; 70], replacements: vec![0xFF; 3] };
            assert_eq!(map.normalize("Aé會"), "Aé會", "{unit:x}");
        }
    }
}
