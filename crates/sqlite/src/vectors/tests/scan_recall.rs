//! The share of the nearest vectors that a scan finds.

use super::*;

/// Fills a block with random vectors around a few directions, and compares the scan with exact scores.
#[test]
fn the_scan_finds_what_exact_scores_find() {
    let (count, dimensions) = (3_000, 128);
    // A generator of Marsaglia (xorshift), so that every run has the same vectors.
    let mut state = 88_172_645_463_325_252_u64;
    let mut number = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f32::from(u16::try_from(state >> 48).unwrap()) / 65_536.0 - 0.5
    };
    let directions: Vec<Vec<f32>> = (0..16).map(|_| (0..dimensions).map(|_| number()).collect()).collect();
    let mut vector = |at: usize| -> Vec<f32> {
        let vector: Vec<f32> = directions[at % 16].iter().map(|part| part + number()).collect();
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        vector.iter().map(|number| number / length).collect()
    };
    let vectors: Vec<Vec<f32>> = (0..count).map(&mut vector).collect();
    let mut block = scan::Block::default();
    for (id, vector) in (0..).zip(&vectors) {
        let stored = codes::StoredVector::new(vector);
        codes::add_small_codes(&stored.codes, &mut block.codes);
        block.rows.push(scan::ChunkRow { id, record: id, stream: 1, connection: 1, scale: stored.scale });
    }
    let (mut found, mut wanted) = (0, 0);
    for at in 0..40 {
        let query = vector(at);
        let mut exact: Vec<(f32, i64)> = (0..)
            .zip(&vectors)
            .map(|(id, one)| (one.iter().zip(&query).map(|(one, query)| one * query).sum(), id))
            .collect();
        exact.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut candidates = scan::Candidates::new(100);
        block.scan(&codes::QueryCodes::new(&query), &VectorScope::default(), &mut candidates);
        let candidates: Vec<i64> = candidates.into_sorted().iter().map(|candidate| candidate.chunk).collect();
        wanted += 10;
        found += exact.iter().take(10).filter(|(_, id)| candidates.contains(id)).count();
    }
    assert!(found * 1_000 >= wanted * 995, "{found} of {wanted}");
}
