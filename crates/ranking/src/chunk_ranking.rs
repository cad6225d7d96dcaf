//! The order of the chunks of the documents that a search ranked, for every store.
//!
//! A document is ranked as a record, by its words and its vectors. Its chunks are then compared by the share of the query's
//! words that each has, and by the passage that is nearest in meaning. The best chunk has the score of its document.

use fetchwell_source::documents::search::Candidate;
use fetchwell_source::documents::tiles::leading_headings;
use fetchwell_source::documents::uuid::Uuid;

use crate::lexical::matching::ExcerptTerms;

/// Maximum number of chunks of one document among the candidates.
const MAX_CHUNKS_OF_DOCUMENT: usize = 3;

/// Minimum share of the best chunk of a document that another one of it must have.
const MIN_SHARE: f32 = 0.5;

/// Part of a document's score that its further chunks have at least.
const BASE_SHARE: f32 = 0.7;

/// Gain of the chunk that is nearest to the query in meaning.
const NEAREST_GAIN: f32 = 0.5;

/// Share of the score before it that a document has that was found by meaning alone.
const MEANING_STEP: f32 = 0.99;

/// Maximum bytes of one document that are divided into compared chunks. Chunks behind them are candidates only by meaning.
pub const MAX_SCANNED_BYTES: usize = 512 * 1024;

/// A chunk as the search compares it.
#[derive(Debug, Clone, Copy)]
pub struct ComparedChunk<'a> {
    /// Text of the chunk; `None` behind [`MAX_SCANNED_BYTES`].
    pub text: Option<&'a str>,
    /// Headings above it.
    pub headings: &'a str,
    /// True if the passage that is nearest to the query is in the chunk.
    pub is_nearest: bool,
}

/// Chunks with the shares of the query that they have, the best first.
pub type ChunkShares = Vec<(Uuid, f32)>;

impl ComparedChunk<'_> {
    /// Returns the share of the query that the chunk has. The headings at its start are compared as headings.
    pub fn share(&self, words: &ExcerptTerms) -> f32 {
        let below = self.text.map(|text| text.strip_prefix(leading_headings(text)).unwrap_or(text));
        let gain = if self.is_nearest { NEAREST_GAIN } else { 0.0 };
        below.map_or(0.0, |below| words.share_of(below, self.headings)) + gain
    }
}

/// The chunks of ranked documents.
#[derive(Debug, Default)]
pub struct ChunkRanking {
    candidates: Vec<Candidate>,
    /// Score of the last document; `None` before the first.
    score: Option<f32>,
}

impl ChunkRanking {
    /// Adds the next document with the shares of its chunks, in the order of its text. `score` is that of its words, from 0
    /// to 1; `None` if only its meaning found it.
    pub fn add(&mut self, score: Option<f32>, mut shares: ChunkShares) {
        let before = self.score.unwrap_or(1.0);
        // Hits by meaning are among hits by words, and near-copies behind others: the list decides, not the score.
        let score = score.map_or(before * MEANING_STEP, |own| own.min(before));
        self.score = Some(score);
        // Equal chunks stay in the order of the text.
        shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let best = shares.first().map_or(0.0, |(_, share)| *share);
        for (chunk, share) in shares.into_iter().take(MAX_CHUNKS_OF_DOCUMENT) {
            let relative = if best > 0.0 { share / best } else { 1.0 };
            if relative >= MIN_SHARE {
                let score = score * (BASE_SHARE + (1.0 - BASE_SHARE) * relative);
                self.candidates.push(Candidate { chunk, score });
            }
            if best <= 0.0 {
                break;
            }
        }
    }

    /// Returns the best chunks, at most `depth`, the best first.
    pub fn best(mut self, depth: usize) -> Vec<Candidate> {
        self.candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
        self.candidates.truncate(depth);
        self.candidates
    }
}
