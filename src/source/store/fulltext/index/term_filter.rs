//! Filters of the words of a segment (Bloom filters): they tell without a read that a segment does not have a word.
//!
//! A word that no record has is compared with some hundred words that differ from it by one letter, of which few are in
//! the index. Looking up each of them would decode a block of the dictionary of each segment. Segments do not change, so
//! a filter is made once.

use std::io;
use std::sync::{Arc, LazyLock};

use tantivy::index::SegmentId;
use tantivy::schema::Field;
use tantivy::termdict::TermDictionary;

use crate::lru::{LruCache, LruLimits};

/// Maximum bytes of all filters of the process.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Maximum number of words of a segment that gets a filter. Reading more would take longer than the lookups.
const MAX_TERMS: usize = 2_000_000;

/// Minimum number of words of a segment that gets a filter.
const MIN_TERMS: usize = 1_000;

/// Number of bits of a filter for each word. About one word in forty that a segment does not have passes.
const BITS_PER_TERM: usize = 12;

/// Number of bits that a word sets, all in one element.
const BITS_SET: u32 = 4;

/// Words of a field of a segment.
#[derive(Debug)]
pub(in crate::source::store) struct TermFilter {
    bits: Vec<u64>,
}

static FILTERS: LazyLock<LruCache<(SegmentId, Field), Arc<TermFilter>>> = LazyLock::new(|| {
    LruCache::with_weights(LruLimits::new(MAX_BYTES), |_, filter: &Arc<TermFilter>| filter.bits.len() * 8)
});

impl TermFilter {
    /// Returns the filter of a segment if it was made.
    pub(in crate::source::store) fn known(segment: SegmentId, field: Field) -> Option<Arc<Self>> {
        FILTERS.get(&(segment, field))
    }

    /// Returns the filter of a segment, made by reading its dictionary; `None` for a segment with few or too many words.
    pub(in crate::source::store) fn get_or_make(
        segment: SegmentId,
        field: Field,
        terms: &TermDictionary,
    ) -> io::Result<Option<Arc<Self>>> {
        if let Some(known) = Self::known(segment, field) {
            return Ok(Some(known));
        }
        if !(MIN_TERMS..=MAX_TERMS).contains(&terms.num_terms()) {
            return Ok(None);
        }
        let mut filter = Self { bits: vec![0; terms.num_terms() * BITS_PER_TERM / 64 + 1] };
        let mut entries = terms.stream()?;
        while entries.advance() {
            filter.add(entries.key());
        }
        let filter = Arc::new(filter);
        FILTERS.insert((segment, field), Arc::clone(&filter));
        Ok(Some(filter))
    }

    /// Returns false for a word that the segment does not have.
    pub(in crate::source::store) fn may_contain(&self, term: &[u8]) -> bool {
        let (at, mask) = self.place(term);
        self.bits.get(at).is_none_or(|bits| bits & mask == mask)
    }

    fn add(&mut self, term: &[u8]) {
        let (at, mask) = self.place(term);
        if let Some(bits) = self.bits.get_mut(at) {
            *bits |= mask;
        }
    }

    /// Returns the element of a word and its bits there.
    fn place(&self, term: &[u8]) -> (usize, u64) {
        let hash = hash(term);
        let mask = (0..BITS_SET).fold(0, |mask, bit| mask | 1 << ((hash >> (6 * bit)) & 63));
        let at = usize::try_from(hash >> 32).unwrap_or_default() % self.bits.len().max(1);
        (at, mask)
    }
}

/// Hashes a word (FNV-1a and the finalizer of `SplitMix64`).
fn hash(term: &[u8]) -> u64 {
    let hash = term.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_words_pass_and_few_others_do() {
        let words: Vec<String> = (0..10_000).map(|number| format!("word{number}")).collect();
        let mut filter = TermFilter { bits: vec![0; words.len() * BITS_PER_TERM / 64 + 1] };
        words.iter().for_each(|word| filter.add(word.as_bytes()));
        assert!(words.iter().all(|word| filter.may_contain(word.as_bytes())));
        let others = (0..10_000).filter(|number| filter.may_contain(format!("other{number}").as_bytes()));
        assert!(others.count() < 600);
    }
}
