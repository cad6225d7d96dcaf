//! Where the parts of a long document start.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::fit::{ChunkBudget, chunk_end};
use crate::handle::RecordAddress;

/// Where the parts of the last few long documents start, so that reading one to its end does not cut it
/// again from its start for every part. Forgetting them changes nothing but time.
#[derive(Debug, Clone)]
pub(super) struct Parts(Cache<PartsKey, Arc<Vec<usize>>>);

/// The address, the text's hash, and the budget.
type PartsKey = (RecordAddress, u64, usize, usize);

impl Default for Parts {
    fn default() -> Self {
        let minutes = Duration::from_secs(600);
        let documents = Cache::builder().max_capacity(64).time_to_idle(minutes);
        Self(documents.eviction_policy(EvictionPolicy::lru()).build())
    }
}

/// A part of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartQuery<'a> {
    pub(super) address: &'a RecordAddress,
    pub(super) text: &'a str,
    pub(super) chunks: ChunkBudget,
    /// Number of the part, from 0.
    pub(super) number: u32,
}

/// Why a part is not given.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoPart {
    /// There are only so many.
    Only(u32),
    /// There are far fewer; nobody counted them.
    FarFewer,
    /// Nobody waits for it any more.
    Abandoned,
}

impl Parts {
    /// Where part `number` of a record's text starts and ends.
    pub(super) fn bounds(
        &self,
        PartQuery { address, text, chunks, number }: PartQuery<'_>,
        stopped: &AtomicBool,
    ) -> Result<(usize, usize), NoPart> {
        let wanted = usize::try_from(number).unwrap_or(usize::MAX);
        if wanted > chunks.most_parts(text) {
            return Err(NoPart::FarFewer);
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let key = (address.clone(), hasher.finish(), chunks.bytes, chunks.tokens);
        let known = self.0.get(&key);
        // The ends of the parts from 0 on, as far as they are known.
        let mut ends: Vec<usize> = known.map(|ends| ends.to_vec()).unwrap_or_default();
        let before = ends.len();
        let is_last = |ends: &[usize]| ends.last().is_some_and(|end| *end >= text.len());
        while ends.len() <= wanted && !is_last(&ends) && !stopped.load(Ordering::Relaxed) {
            let start = ends.last().copied().unwrap_or(0);
            ends.push(chunk_end(text, start, chunks));
        }
        let start = match wanted.checked_sub(1) {
            None => Some(0),
            Some(previous) => ends.get(previous).copied(),
        };
        let bounds = start.zip(ends.get(wanted).copied());
        let problem = if is_last(&ends) {
            NoPart::Only(u32::try_from(ends.len()).unwrap_or(u32::MAX))
        } else {
            NoPart::Abandoned
        };
        if ends.len() > before {
            self.0.insert(key, Arc::new(ends));
        }
        bounds.ok_or(problem)
    }
}

impl ChunkBudget {
    /// A number that the parts of `text` cannot exceed. A byte of text is at most six of JSON and a token
    /// at least one, and a part may give up an eighth for a tidy end, so it holds a seventh of the smaller
    /// budget, unless it ends before a grapheme that does not fit; the next one then holds that. Two parts in
    /// a row hold at least an eighth.
    fn most_parts(self, text: &str) -> usize {
        let mean_least = (self.bytes.min(self.tokens) / 16).max(1);
        text.len() / mean_least + 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Handle;

    const CHUNKS: ChunkBudget = ChunkBudget { bytes: 1_000, tokens: 1_000 };

    fn bounds(text: &str, number: u32, stopped: bool) -> (Result<(usize, usize), NoPart>, u64) {
        let address = "c/s:r".parse::<Handle>().unwrap().address().clone();
        let parts = Parts::default();
        let found = parts
            .bounds(PartQuery { address: &address, text, chunks: CHUNKS, number }, &AtomicBool::new(stopped));
        parts.0.run_pending_tasks();
        (found, parts.0.entry_count())
    }

    #[test]
    fn a_part_that_cannot_exist_is_refused_without_cutting() {
        let text = "word ".repeat(100_000);
        assert_eq!(bounds(&text, u32::MAX, false), (Err(NoPart::FarFewer), 0));
        assert_eq!(bounds("word ", 3, false), (Err(NoPart::FarFewer), 0));
        assert_eq!(bounds("word ", 2, false), (Err(NoPart::Only(1)), 1));
    }

    #[test]
    fn a_document_is_not_cut_for_a_call_that_was_dropped() {
        let text = "word ".repeat(100_000);
        assert_eq!(bounds(&text, 400, true), (Err(NoPart::Abandoned), 0));
    }

    #[test]
    fn the_most_parts_are_never_fewer_than_there_are() {
        let giant = format!("e{}", "\u{301}".repeat(480));
        for text in ["\u{1}".repeat(20_000), format!("a{giant}").repeat(40), "a \u{1}\n".repeat(9_000)] {
            let (mut parts, mut end) = (0, 0);
            while end < text.len() {
                end = chunk_end(&text, end, CHUNKS);
                parts += 1;
            }
            assert!(parts <= CHUNKS.most_parts(&text), "{parts}");
        }
    }
}
