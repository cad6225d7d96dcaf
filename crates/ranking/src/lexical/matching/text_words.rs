//! Words of the texts of a record with their places, so that texts that were divided into words before are not divided again.

use fetchwell_core::record::RecordData;
use fetchwell_core::saturate::saturated;

use super::super::field_texts::texts_of;
use super::super::text_cache::TextForm;
use super::super::words::{fold_into, words};

/// Words of the texts of a record.
#[derive(Debug, PartialEq)]
pub struct TextWords {
    /// Words of all texts in their order.
    words: Box<[WordPlace]>,
    /// For each text, the number of words up to its end.
    ends: Box<[u32]>,
}

const _: () = assert!(TextWords::MAX_RECORD_BYTES <= u16::MAX as usize);

/// Place of a word in its text, which has less than 64 KiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WordPlace {
    /// Hash of the folded word.
    pub(super) hash: u16,
    /// Ordinal of the word.
    pub(super) position: u16,
    /// Byte range of the word.
    pub(super) start: u16,
    pub(super) end: u16,
}

impl TextWords {
    /// Maximum length in bytes of the JSON of a record. No text is longer than the JSON that has it, and places have 16 bits.
    pub const MAX_RECORD_BYTES: usize = 32 * 1024;

    /// Returns the words of text number `text` of the record.
    pub(super) fn in_text(&self, text: usize) -> &[WordPlace] {
        let end = |text: usize| self.ends.get(text).map_or(0, |end| *end as usize);
        let start = text.checked_sub(1).map_or(0, end);
        self.words.get(start..end(text)).unwrap_or_default()
    }
}

impl TextForm for TextWords {
    fn from_record(data: &RecordData) -> Self {
        let (mut places, mut ends, mut folded) = (Vec::new(), Vec::new(), String::new());
        for (_, text) in texts_of(data) {
            for word in words(&text) {
                folded.clear();
                fold_into(text.get(word.range.clone()).unwrap_or_default(), &mut folded);
                places.push(WordPlace {
                    hash: hash(&folded),
                    position: saturated(word.position),
                    start: saturated(word.range.start),
                    end: saturated(word.range.end),
                });
            }
            ends.push(saturated(places.len()));
        }
        Self { words: places.into(), ends: ends.into() }
    }

    fn heap_bytes(&self) -> usize {
        size_of_val::<[WordPlace]>(&self.words) + size_of_val::<[u32]>(&self.ends)
    }
}

/// Filter of folded words to find, by their hashes.
#[derive(Debug)]
pub(super) struct PossibleHashes([u64; Self::ELEMENTS]);

impl Default for PossibleHashes {
    /// Creates a filter without words.
    fn default() -> Self {
        Self([0; Self::ELEMENTS])
    }
}

impl PossibleHashes {
    const ELEMENTS: usize = 64;

    /// Adds a folded word.
    pub(super) fn add(&mut self, folded: &str) {
        let (element, bit) = Self::place(hash(folded));
        if let Some(bits) = self.0.get_mut(element) {
            *bits |= bit;
        }
    }

    /// Returns false if no word with this hash was added.
    pub(super) fn may_have(&self, hash: u16) -> bool {
        let (element, bit) = Self::place(hash);
        self.0.get(element).is_some_and(|bits| bits & bit != 0)
    }

    /// Returns the element and the bit of a hash.
    fn place(hash: u16) -> (usize, u64) {
        (usize::from(hash) / 64 % Self::ELEMENTS, 1 << (hash % 64))
    }
}

/// Hashes a folded word (the low half of FNV-1a). A filter of 4,096 bits distinguishes less.
fn hash(folded: &str) -> u16 {
    folded.bytes().fold(0x9DC5, |hash: u16, byte| (hash ^ u16::from(byte)).wrapping_mul(0x0193))
}
