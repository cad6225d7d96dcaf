//! The parts of long documents.
//!
//! A document over the budget is divided into parts, each found by its number. Finding part `n` means dividing the text
//! from its start, so [`Parts`] caches the ends of the parts of recent documents.
//! **Invariant:** where parts end depends only on the text, its sections and the budget; the cache only saves time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fetchwell_core::fit::{ChunkBudget, chunk_end};
use fetchwell_core::handle::RecordAddress;
use fetchwell_core::lru::{Lookups, LruCache, LruLimits};
use fetchwell_core::saturate::saturated;

/// Maximum number of cached documents.
const MAX_DOCUMENTS: u64 = 64;

/// Time after which an unused entry is evicted.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// Cache of the ends of parts, so that reading a document to its end does not divide it again for every part.
#[derive(Debug, Clone)]
pub(crate) struct Parts(LruCache<PartsKey, Arc<Vec<usize>>>);

/// Address of the record, hash of the text and its sections, and budget in bytes and tokens.
type PartsKey = (RecordAddress, u64, usize, usize);

impl Default for Parts {
    fn default() -> Self {
        Self(LruCache::new(LruLimits::new(MAX_DOCUMENTS).with_max_idle(MAX_IDLE)))
    }
}

/// A part of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartQuery<'a> {
    pub(crate) address: &'a RecordAddress,
    pub(crate) text: &'a str,
    /// Pieces of the text in its order that share no part with the text around them, such as texts of attachments.
    pub(crate) sections: &'a [Range<usize>],
    pub(crate) chunks: ChunkBudget,
    /// Number of the part, from 0.
    pub(crate) number: u32,
}

/// The reason why a part cannot be returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PartError {
    /// The document has fewer parts.
    NotFound {
        /// Number of its parts.
        parts: u32,
    },
    /// No document of this length has so many parts. They were not counted.
    OutOfRange,
    /// The call was dropped.
    Cancelled,
}

impl Parts {
    /// Returns the hits and misses of the cache.
    pub(crate) fn lookups(&self) -> Lookups {
        self.0.lookups()
    }

    /// Returns the start and the end of a part, in bytes. Stops when `stopped` is set.
    pub(crate) fn bounds(
        &self,
        PartQuery { address, text, sections, chunks, number }: PartQuery<'_>,
        stopped: &AtomicBool,
    ) -> Result<(usize, usize), PartError> {
        let wanted = saturated::<usize>(number);
        // A section adds a part that begins with it, and one that begins behind it.
        if wanted > max_parts(chunks, text).saturating_add(sections.len() * 2) {
            return Err(PartError::OutOfRange);
        }
        let mut hasher = DefaultHasher::new();
        (text, sections).hash(&mut hasher);
        let key = (address.clone(), hasher.finish(), chunks.bytes, chunks.tokens);
        let known = self.0.get(&key);
        // The ends of the known parts, from part 0.
        let mut ends: Vec<usize> = known.map(|ends| ends.to_vec()).unwrap_or_default();
        let before = ends.len();
        let is_last = |ends: &[usize]| ends.last().is_some_and(|end| *end >= text.len());
        while ends.len() <= wanted && !is_last(&ends) && !stopped.load(Ordering::Relaxed) {
            let start = ends.last().copied().unwrap_or(0);
            ends.push(end_of_part(text, start, sections, chunks));
        }
        let start = match wanted.checked_sub(1) {
            None => Some(0),
            Some(previous) => ends.get(previous).copied(),
        };
        let bounds = start.zip(ends.get(wanted).copied());
        let problem = if is_last(&ends) {
            PartError::NotFound { parts: saturated::<u32>(ends.len()) }
        } else {
            PartError::Cancelled
        };
        if ends.len() > before {
            self.0.insert(key, Arc::new(ends));
        }
        bounds.ok_or(problem)
    }
}

/// Returns the end of the part that begins at a byte: that of its chunk, or else where a section begins or ends.
fn end_of_part(text: &str, start: usize, sections: &[Range<usize>], chunks: ChunkBudget) -> usize {
    let end = chunk_end(text, start, chunks);
    let edges = sections.iter().flat_map(|section| [section.start, section.end]);
    edges.filter(|edge| (start + 1..end).contains(edge)).min().unwrap_or(end)
}

/// Returns a number that the parts of `text` cannot exceed. A byte of text takes at most six bytes of JSON, a token at
/// least one byte, and a part may give up an eighth of its size to end at a sentence. So a part has at least a seventh
/// of the smaller budget, unless it ends before a grapheme that does not fit, which the next part then has. Two
/// consecutive parts have at least an eighth.
fn max_parts(chunks: ChunkBudget, text: &str) -> usize {
    let mean_least = (chunks.bytes.min(chunks.tokens) / 16).max(1);
    text.len() / mean_least + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use fetchwell_core::handle::Handle;

    const CHUNKS: ChunkBudget = ChunkBudget { bytes: 1_000, tokens: 1_000 };

    /// Returns the bounds of a part, and the number of cache entries.
    fn bounds(text: &str, number: u32, stopped: bool) -> (Result<(usize, usize), PartError>, u64) {
        let address = "c/s:r".parse::<Handle>().unwrap().address().clone();
        let parts = Parts::default();
        let query = PartQuery { address: &address, text, sections: &[], chunks: CHUNKS, number };
        let found = parts.bounds(query, &AtomicBool::new(stopped));
        parts.0.evict();
        (found, parts.0.len())
    }

    #[test]
    fn a_part_number_out_of_range_is_refused_without_dividing() {
        let text = "word ".repeat(100_000);
        assert_eq!(bounds(&text, u32::MAX, false), (Err(PartError::OutOfRange), 0));
        assert_eq!(bounds("word ", 3, false), (Err(PartError::OutOfRange), 0));
        assert_eq!(bounds("word ", 2, false), (Err(PartError::NotFound { parts: 1 }), 1));
    }

    #[test]
    fn a_document_is_not_divided_for_a_dropped_call() {
        let text = "word ".repeat(100_000);
        assert_eq!(bounds(&text, 400, true), (Err(PartError::Cancelled), 0));
    }

    #[test]
    fn sections_are_parts_of_their_own() {
        let text = format!("{}{}{}", "body ".repeat(300), "short\n", "long ".repeat(300));
        let sections = [1_500..1_506, 1_506..3_006];
        let address = "c/s:r".parse::<Handle>().unwrap().address().clone();
        let parts = Parts::default();
        let bounds = |number| {
            let query =
                PartQuery { address: &address, text: &text, sections: &sections, chunks: CHUNKS, number };
            parts.bounds(query, &AtomicBool::new(false))
        };
        let mut ends = Vec::new();
        while let Ok((start, end)) = bounds(saturated::<u32>(ends.len())) {
            assert_eq!(start, ends.last().copied().unwrap_or(0));
            ends.push(end);
        }
        assert!(ends.contains(&1_500) && ends.contains(&1_506), "{ends:?}");
        assert_eq!((ends.len(), ends.last()), (5, Some(&3_006)), "{ends:?}");
        assert_eq!(bounds(5), Err(PartError::NotFound { parts: 5 }));
    }

    #[test]
    fn max_parts_is_never_exceeded() {
        let giant = format!("e{}", "\u{301}".repeat(480));
        for text in ["\u{1}".repeat(20_000), format!("a{giant}").repeat(40), "a \u{1}\n".repeat(9_000)] {
            let (mut parts, mut end) = (0, 0);
            while end < text.len() {
                end = chunk_end(&text, end, CHUNKS);
                parts += 1;
            }
            assert!(parts <= max_parts(CHUNKS, &text), "{parts}");
        }
    }
}
