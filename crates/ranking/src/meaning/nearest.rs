//! The records that are nearest to a query.

use crate::lexical::selection::Likeness;

/// Mean and standard deviation of the scores of all chunks in scope. A score is only high if it stands out from these.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ScoreSpread {
    /// Mean of the scores.
    pub mean: f32,
    /// Standard deviation of the scores; 0 for fewer than two.
    pub deviation: f32,
}

/// A record that a vector search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorHit {
    /// Row of the record in the store. The record may have been deleted since.
    pub record: i64,
    /// Cosine of the query and the best chunk.
    pub score: f32,
    /// First and last byte of the best chunk in the record's text.
    pub first_byte: i64,
    /// End of the best chunk in the record's text.
    pub end_byte: i64,
}

/// Records nearest to a query.
#[derive(Debug, Default)]
pub struct NearestRecords {
    /// Records, the nearest first.
    pub hits: Vec<NearestHit>,
    /// Cosines of all chunks in scope.
    pub spread: ScoreSpread,
    /// True if there may be more records than these.
    pub is_cut: bool,
}

impl NearestRecords {
    /// Merges the nearest records of two parts of a scope. Each part has its number of chunks. Keeps at most `limit` records.
    /// The spread is that of all chunks.
    pub fn merged(parts: [(Self, i64); 2], limit: usize) -> Self {
        let spread = ScoreSpread::pooled(&parts.each_ref().map(|(part, chunks)| (part.spread, *chunks)));
        let is_cut = parts.iter().any(|(part, _)| part.is_cut);
        let mut hits: Vec<NearestHit> = parts.into_iter().flat_map(|(part, _)| part.hits).collect();
        hits.sort_by(|one, other| {
            other.hit.score.total_cmp(&one.hit.score).then(one.hit.record.cmp(&other.hit.record))
        });
        let is_cut = is_cut || hits.len() > limit;
        hits.truncate(limit);
        Self { hits, spread, is_cut }
    }
}

impl ScoreSpread {
    /// Returns the spread of the scores of several parts, each with its number of scores.
    #[expect(clippy::cast_precision_loss, reason = "a weight")]
    fn pooled(parts: &[(Self, i64)]) -> Self {
        let all: f32 = parts.iter().map(|(_, count)| *count as f32).sum();
        if all <= 0.0 {
            return Self::default();
        }
        let mean_of = |value: &dyn Fn(&Self) -> f32| {
            parts.iter().map(|(spread, count)| value(spread) * (*count as f32 / all)).sum::<f32>()
        };
        let mean = mean_of(&|spread| spread.mean);
        let variance = mean_of(&|spread| spread.deviation.powi(2) + (spread.mean - mean).powi(2));
        Self { mean, deviation: variance.sqrt() }
    }
}

/// A record near to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearestHit {
    /// Record with the score of its vector.
    pub hit: VectorHit,
    /// Likeness to other records; `None` if the index does not have it.
    pub likeness: Option<Likeness>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(scores: &[(i64, f32)], spread: (f32, f32)) -> NearestRecords {
        let hit = |&(record, score): &(i64, f32)| NearestHit {
            hit: VectorHit { record, score, first_byte: 0, end_byte: 0 },
            likeness: None,
        };
        let (mean, deviation) = spread;
        let spread = ScoreSpread { mean, deviation };
        NearestRecords { hits: scores.iter().map(hit).collect(), spread, is_cut: false }
    }

    #[test]
    fn parts_are_merged_by_score() {
        let (one, other) = (part(&[(1, 0.9), (2, 0.3)], (0.2, 0.1)), part(&[(3, 0.5)], (0.2, 0.1)));
        let merged = NearestRecords::merged([(one, 10), (other, 10)], 2);
        assert_eq!(merged.hits.iter().map(|near| near.hit.record).collect::<Vec<_>>(), [1, 3]);
        assert!(merged.is_cut);
        let alone = NearestRecords::merged([(part(&[(1, 0.9)], (0.2, 0.1)), 4), Default::default()], 2);
        assert!(!alone.is_cut);
        assert!((alone.spread.mean - 0.2).abs() < 1e-6 && (alone.spread.deviation - 0.1).abs() < 1e-6);
    }

    #[test]
    fn spread_is_that_of_all_scores() {
        // Scores 0 and 2, and scores 4 and 4 and 4 and 4.
        let spread = ScoreSpread::pooled(&[
            (ScoreSpread { mean: 1.0, deviation: 1.0 }, 2),
            (ScoreSpread { mean: 4.0, deviation: 0.0 }, 4),
        ]);
        let expect = ScoreSpread { mean: 3.0, deviation: (14.0_f32 / 6.0).sqrt() };
        assert!((spread.mean - expect.mean).abs() < 1e-5, "{spread:?}");
        assert!((spread.deviation - expect.deviation).abs() < 1e-5, "{spread:?}");
        assert_eq!(ScoreSpread::pooled(&[]), ScoreSpread::default());
    }
}
