//! The scan over the codes of many vectors.
//!
//! The loop is plain Rust that compilers vectorize. `rten_simd` compiles it for AVX-512, AVX2 and the baseline, and calls
//! the one for this processor, so no code of ours is unsafe.

use fetchwell_ranking::meaning::ScoreSpread;
use rten_simd::{Isa, SimdOp};

use super::codes::QueryCodes;
use super::scope::VectorScope;

/// A chunk of a block, without its codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ChunkRow {
    pub(super) id: i64,
    pub(super) record: i64,
    pub(super) stream: i32,
    pub(super) connection: i32,
    pub(super) scale: f32,
}

/// Chunks with their codes.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) rows: Vec<ChunkRow>,
    /// Codes of all rows, one after another.
    pub(super) codes: Vec<i8>,
}

/// A chunk with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    pub(super) chunk: i64,
    pub(super) record: i64,
    pub(super) score: f32,
}

/// The best candidates so far.
#[derive(Debug)]
pub(super) struct Candidates {
    best: Vec<Candidate>,
    limit: usize,
    /// Candidates with lower scores are not kept.
    floor: f32,
    sums: ScoreSums,
}

/// Sums over the scores of all chunks.
#[derive(Debug, Clone, Copy, Default)]
struct ScoreSums {
    count: u64,
    scores: f64,
    squares: f64,
}

impl Candidates {
    pub(super) fn new(limit: usize) -> Self {
        let (best, sums) = (Vec::with_capacity(limit * 2), ScoreSums::default());
        Self { best, limit, floor: f32::NEG_INFINITY, sums }
    }

    fn add(&mut self, candidate: Candidate) {
        let score = f64::from(candidate.score);
        self.sums.count += 1;
        self.sums.scores += score;
        self.sums.squares += score * score;
        if candidate.score <= self.floor && self.best.len() >= self.limit {
            return;
        }
        self.best.push(candidate);
        if self.best.len() >= self.limit * 2 {
            self.truncate();
        }
    }

    fn truncate(&mut self) {
        if self.best.len() > self.limit {
            self.best.select_nth_unstable_by(self.limit, by_score);
            self.best.truncate(self.limit);
            self.floor = self.best.iter().fold(f32::INFINITY, |floor, one| floor.min(one.score));
        }
    }

    /// Returns mean and deviation of the scores so far.
    pub(super) fn spread(&self) -> ScoreSpread {
        let ScoreSums { count, scores, squares } = self.sums;
        if count < 2 {
            return ScoreSpread::default();
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of chunks")]
        let count = count as f64;
        let mean = scores / count;
        let variance = (squares / count - mean * mean).max(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "a cosine needs no more than 24 bits")]
        let (mean, deviation) = (mean as f32, variance.sqrt() as f32);
        ScoreSpread { mean, deviation }
    }

    /// Returns the candidates, the best first.
    pub(super) fn into_sorted(mut self) -> Vec<Candidate> {
        self.truncate();
        self.best.sort_unstable_by(by_score);
        self.best
    }
}

/// Orders by score, the best first, and equal scores by chunk.
pub(super) fn by_score(one: &Candidate, other: &Candidate) -> std::cmp::Ordering {
    other.score.total_cmp(&one.score).then(one.chunk.cmp(&other.chunk))
}

impl Block {
    /// Returns the block without unused memory.
    pub(super) fn compact(mut self) -> Self {
        self.rows.shrink_to_fit();
        self.codes.shrink_to_fit();
        self
    }

    /// Adds the best chunks of the block that are in scope.
    pub(super) fn scan(&self, query: &QueryCodes, scope: &VectorScope, candidates: &mut Candidates) {
        let sums = Scan { block: self, query: &query.codes, scope }.dispatch();
        for (row, sum) in self.rows.iter().zip(sums) {
            let Some(sum) = sum else { continue };
            #[expect(clippy::cast_precision_loss, reason = "a score needs no more than 24 bits")]
            let score = sum as f32 * query.factor * row.scale;
            candidates.add(Candidate { chunk: row.id, record: row.record, score });
        }
    }
}

/// The sums of a query over the rows of a block.
struct Scan<'a> {
    block: &'a Block,
    query: &'a [i16],
    scope: &'a VectorScope,
}

impl SimdOp for Scan<'_> {
    /// Sum of each row, or `None` for a row that is not in scope.
    type Output = Vec<Option<i32>>;

    #[inline(always)]
    fn eval<I: Isa>(self, _isa: I) -> Self::Output {
        let Self { block, query, scope } = self;
        let mut sums = Vec::with_capacity(block.rows.len());
        for (row, codes) in block.rows.iter().zip(block.codes.chunks_exact(query.len().max(1))) {
            let is_covered = scope.includes(row.connection, row.stream, row.record);
            sums.push(if is_covered { Some(sum(codes, query)) } else { None });
        }
        sums
    }
}

/// Returns the sum of the products of codes. Inlined, so that it is compiled for the processor's instructions.
#[inline(always)]
fn sum(codes: &[i8], query: &[i16]) -> i32 {
    codes.iter().zip(query).map(|(code, query)| i32::from(i16::from(*code)) * i32::from(*query)).sum()
}
