//! Filters of the words of a segment (Bloom filters): they tell without a read that a segment does not have a word.
//!
//! A word that no record has is compared with some hundred words that differ from it by one letter, of which few are in
//! the index. Looking up each of them would decode a block of the dictionary of each segment. Segments do not change, so
//! a filter is made once: in the background after the first search of a segment, or else by the first misspelt word.

use std::io;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use fetchwell_core::lru::{LruCache, LruLimits};
use tantivy::index::SegmentId;
use tantivy::schema::Field;
use tantivy::termdict::TermDictionary;
use tantivy::{Searcher, TantivyError};

use super::fault::guard;

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

/// Time between a search and the making of filters. A command that searches once has ended by then.
const WARM_UP_DELAY: Duration = Duration::from_millis(200);

/// Number of segments of which it is remembered that their filters were made in the background.
const WARMED_SEGMENTS: u64 = 4_096;

/// Words of a field of a segment.
#[derive(Debug)]
pub(crate) struct TermFilter {
    bits: Vec<u64>,
}

static FILTERS: LazyLock<LruCache<(SegmentId, Field), Arc<TermFilter>>> = LazyLock::new(|| {
    LruCache::with_weights(LruLimits::new(MAX_BYTES), |_, filter: &Arc<TermFilter>| filter.bits.len() * 8)
});

/// Segments of which filters were made in the background, or are being made. A filter that was evicted since is made again by
/// a misspelt word alone, so that many stores do not make filters at each search.
static WARMED: LazyLock<LruCache<(SegmentId, Field), ()>> =
    LazyLock::new(|| LruCache::new(LruLimits::new(WARMED_SEGMENTS)));

/// Makes the filters of an index in the background. Each segment is read once.
pub(crate) fn warm_up(searcher: &Searcher, field: Field) {
    let is_new = |segment: SegmentId| {
        let is_new = WARMED.get(&(segment, field)).is_none();
        if is_new {
            WARMED.insert((segment, field), ());
        }
        is_new
    };
    let segments = searcher.segment_readers().iter().enumerate();
    let new: Vec<usize> =
        segments.filter(|(_, segment)| is_new(segment.segment_id())).map(|(at, _)| at).collect();
    if new.is_empty() {
        return;
    }
    let searcher = searcher.clone();
    let make = move || {
        thread::park_timeout(WARM_UP_DELAY);
        for segment in new.into_iter().filter_map(|at| searcher.segment_readers().get(at)) {
            let made = guard(|| -> Result<(), TantivyError> {
                let index = segment.inverted_index(field)?;
                TermFilter::get_or_make(segment.segment_id(), field, index.terms())?;
                Ok(())
            });
            // A search that needs the words reports the same failure.
            if let Err(error) = made {
                tracing::debug!(%error, "no filter of the words of a segment was made");
            }
        }
    };
    // Without a thread, the first misspelt word makes the filters.
    if let Err(error) = thread::Builder::new().name("term-filters".to_owned()).spawn(make) {
        tracing::debug!(%error, "no thread makes filters of words");
    }
}

impl TermFilter {
    /// Returns the filter of a segment if it was made.
    pub(crate) fn known(segment: SegmentId, field: Field) -> Option<Arc<Self>> {
        FILTERS.get(&(segment, field))
    }

    /// Returns the filter of a segment, made by reading its dictionary; `None` for a segment with few or too many words.
    pub(crate) fn get_or_make(
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
    pub(crate) fn may_contain(&self, term: &[u8]) -> bool {
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
