//! Finds the records of a segment with the best sums of BM25 scores of some words.
//!
//! Records are read in windows. The least important words of a window, which together cannot reach the score that a
//! record needs, are only looked up for records that have another word and may reach it (`MaxScore`). With many words this
//! takes a fraction of the time of block-max WAND, which orders all words again for each record. Sums are exact and do
//! not depend on the score that is needed: they are added up with 64 bits, which hold each sum of 32-bit scores.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::Bm25Weight;
use tantivy::{DocId, Score};

/// Number of records of a window. Their sums fit into the first cache of a processor.
const WINDOW: u32 = 4_096;

/// Number of postings of a word that are read in the time in which it is looked up for one record.
const LOOKUP_COST: usize = 6;

/// Number of records of a block of postings. Only the last block of a word has fewer.
const BLOCK: usize = 128;

/// Factor by which bounds are increased, because they are sums of rounded numbers.
const ROUNDING: f64 = 1.000_01;

/// Postings of a word in a segment, with those of the current window.
pub(super) struct WordPostings {
    postings: BlockSegmentPostings,
    weight: Bm25Weight,
    lengths: FieldNormReader,
    /// Number of postings of the current block that were read.
    read: usize,
    /// Records of the current window that have the word, and the number of its occurrences in each.
    documents: Vec<DocId>,
    frequencies: Vec<u32>,
    /// Factor for the maximum scores of blocks, see [`length_factor`].
    length_factor: f64,
    /// Maximum score of the word in the current window.
    bound: f64,
    /// Number of records of the window that are before the one that is scored.
    at: usize,
}

impl WordPostings {
    pub(super) fn new(
        postings: BlockSegmentPostings,
        weight: Bm25Weight,
        lengths: FieldNormReader,
        length_factor: f64,
    ) -> Self {
        let (documents, frequencies) = (Vec::new(), Vec::new());
        Self { postings, weight, lengths, read: 0, documents, frequencies, length_factor, bound: 0.0, at: 0 }
    }

    /// Returns the next record that no window had, if there is one.
    fn next(&mut self) -> Option<DocId> {
        if self.read == BLOCK {
            self.postings.advance();
            self.read = 0;
        }
        self.postings.docs().get(self.read).copied()
    }

    /// Reads the postings of records before `end`.
    fn read_window(&mut self, end: DocId) {
        self.documents.clear();
        self.frequencies.clear();
        self.bound = 0.0;
        self.at = 0;
        while self.next().is_some_and(|next| next < end) {
            let rest = self.postings.docs().get(self.read..).unwrap_or_default();
            let count = rest.partition_point(|document| *document < end);
            let frequencies = self.postings.freqs().get(self.read..).unwrap_or_default();
            self.documents.extend(rest.iter().take(count));
            self.frequencies.extend(frequencies.iter().take(count));
            let block = f64::from(self.postings.block_max_score(&self.lengths, &self.weight));
            self.bound = self.bound.max(block * self.length_factor);
            self.read += count;
        }
    }

    fn score(&self, document: DocId, frequency: u32) -> f64 {
        f64::from(self.weight.score(self.lengths.fieldnorm_id(document), frequency))
    }

    /// Returns the score of the word in a record of the window. Records are asked for in ascending order.
    fn score_of(&mut self, document: DocId) -> f64 {
        // Most records follow soon, so the range that is searched grows from one element.
        let mut width = 1;
        while self.documents.get(self.at + width).is_some_and(|other| *other < document) {
            self.at += width;
            width *= 2;
        }
        let rest =
            self.documents.get(self.at..self.documents.len().min(self.at + width + 1)).unwrap_or_default();
        self.at += rest.partition_point(|other| *other < document);
        match (self.documents.get(self.at), self.frequencies.get(self.at)) {
            (Some(found), Some(frequency)) if *found == document => self.score(document, *frequency),
            _ => 0.0,
        }
    }
}

/// Returns the factor by which the score of a block's best record can exceed that of the record which the block names.
///
/// A segment names the record that is the best by the average length of its own records. By the average of the whole
/// index another one can be better, at most by the ratio of the averages.
pub(super) fn length_factor(average_of_segment: f64, average_of_index: f64) -> f64 {
    let ratio = average_of_segment / average_of_index;
    if ratio.is_finite() && ratio > 0.0 { ratio.max(1.0 / ratio) } else { 1.0 }
}

/// Sums of the records of a window.
struct Sums {
    start: DocId,
    sums: Vec<f64>,
    /// A bit for each record that has a sum.
    has_sum: Vec<u64>,
}

impl Sums {
    fn new() -> Self {
        Self { start: 0, sums: vec![0.0; WINDOW as usize], has_sum: vec![0; WINDOW as usize / 64] }
    }

    /// Adds the scores of a word.
    fn add(&mut self, word: &WordPostings) {
        for (document, frequency) in word.documents.iter().zip(&word.frequencies) {
            let at = (document - self.start) as usize;
            if let (Some(sum), Some(bits)) = (self.sums.get_mut(at), self.has_sum.get_mut(at / 64)) {
                *sum += word.score(*document, *frequency);
                *bits |= 1 << (at % 64);
            }
        }
    }

    /// Adds the scores of a word to records that have a sum.
    fn add_to_known(&mut self, word: &mut WordPostings) {
        let known: usize = self.has_sum.iter().map(|bits| bits.count_ones() as usize).sum();
        if known * LOOKUP_COST < word.documents.len() {
            self.for_each(|document, sum| *sum += word.score_of(document));
            return;
        }
        for (document, frequency) in word.documents.iter().zip(&word.frequencies) {
            let at = (document - self.start) as usize;
            if let (Some(sum), Some(bits)) = (self.sums.get_mut(at), self.has_sum.get(at / 64))
                && bits >> (at % 64) & 1 == 1
            {
                *sum += word.score(*document, *frequency);
            }
        }
    }

    /// Removes the records with a sum that is not accepted.
    fn retain(&mut self, is_accepted: impl Fn(f64) -> bool) {
        for (sums, bits) in self.sums.chunks_exact_mut(64).zip(&mut self.has_sum) {
            let mut left = *bits;
            while left != 0 {
                let at = left.trailing_zeros();
                left &= left - 1;
                if let Some(sum) = sums.get_mut(at as usize)
                    && !is_accepted(*sum)
                {
                    *sum = 0.0;
                    *bits &= !(1 << at);
                }
            }
        }
    }

    /// Calls a function with each record that has a sum, in ascending order.
    fn for_each(&mut self, mut with: impl FnMut(DocId, &mut f64)) {
        for ((block, sums), bits) in (0..).zip(self.sums.chunks_exact_mut(64)).zip(&self.has_sum) {
            let mut left = *bits;
            while left != 0 {
                let at = left.trailing_zeros();
                left &= left - 1;
                if let Some(sum) = sums.get_mut(at as usize) {
                    with(self.start + block * 64 + at, sum);
                }
            }
        }
    }

    /// Removes all sums.
    fn clear(&mut self) {
        self.for_each(|_, sum| *sum = 0.0);
        self.has_sum.fill(0);
    }
}

/// Calls `push` with each record that has a sum above a threshold, in ascending order. `push` returns the new threshold.
pub(super) fn for_each_above(
    mut words: Vec<WordPostings>,
    mut threshold: Score,
    mut push: impl FnMut(DocId, Score) -> Score,
) {
    let mut sums = Sums::new();
    while let Some(start) = words.iter_mut().filter_map(WordPostings::next).min() {
        sums.start = start;
        let end = start.saturating_add(WINDOW);
        words.iter_mut().for_each(|word| word.read_window(end));
        words.sort_by(|one, other| one.bound.total_cmp(&other.bound));
        let absent = words.partition_point(|word| word.documents.is_empty());
        let words = words.get_mut(absent..).unwrap_or_default();
        // The sum of the bounds of the words before each.
        let mut before = Vec::with_capacity(words.len());
        let mut bound = 0.0;
        for word in words.iter() {
            before.push(bound);
            bound += word.bound;
        }
        let can_exceed = |bound: f64, threshold: Score| bound * ROUNDING > f64::from(threshold);
        let is_needed = |(word, before): (&WordPostings, &f64)| can_exceed(before + word.bound, threshold);
        let Some(first) = words.iter().zip(&before).position(is_needed) else { continue };
        let (others, needed) = words.split_at_mut(first);
        needed.iter().for_each(|word| sums.add(word));
        for (word, before) in others.iter_mut().zip(&before).rev() {
            sums.retain(|sum| can_exceed(sum + before + word.bound, threshold));
            sums.add_to_known(word);
        }
        sums.for_each(|document, sum| {
            #[expect(clippy::cast_possible_truncation, reason = "scores have 32 bits")]
            let score = *sum as Score;
            if score > threshold {
                threshold = push(document, score);
            }
        });
        sums.clear();
    }
}
