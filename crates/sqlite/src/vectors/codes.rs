//! Vectors as integers: 16 bits a number in the file, 8 bits in memory.
//!
//! A number is stored as its share of the vector's largest number. 16 bits keep the order of scores; 8 bits find the
//! candidates, which are then scored again with 16.

/// Largest 16-bit code.
const MAX_STORED: f32 = 32_767.0;

/// Number of stored steps for one step in memory.
const STEPS: i32 = 258;

/// Largest code of a query. The sum over 8,192 dimensions fits into 32 bits: 2,047 x 127 x 8,192 is less than 2^31.
const MAX_QUERY: f32 = 2_047.0;

/// Largest code in memory.
pub(super) const MAX_IN_MEMORY: f32 = 127.0;

/// A vector as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredVector {
    /// Largest number of the vector, without its sign.
    pub(super) scale: f32,
    /// Codes in little-endian order.
    pub(super) codes: Vec<u8>,
}

impl StoredVector {
    /// Encodes a vector of finite numbers.
    pub(super) fn new(vector: &[f32]) -> Self {
        let scale = largest(vector);
        let codes = vector.iter().flat_map(|number| code(*number, scale, MAX_STORED).to_le_bytes()).collect();
        Self { scale, codes }
    }
}

impl From<&[f32]> for StoredVector {
    fn from(vector: &[f32]) -> Self {
        Self::new(vector)
    }
}

/// Returns the inner product of a query and the codes of a stored vector.
pub(super) fn exact_score(query: &[f32], scale: f32, codes: &[u8]) -> f32 {
    let (pairs, _odd) = codes.as_chunks::<2>();
    let products =
        pairs.iter().zip(query).map(|(pair, number)| f32::from(i16::from_le_bytes(*pair)) * number);
    products.sum::<f32>() * scale / MAX_STORED
}

/// Appends the 8-bit codes of stored ones.
pub(super) fn add_small_codes(codes: &[u8], small: &mut Vec<i8>) {
    let (pairs, _odd) = codes.as_chunks::<2>();
    small.extend(pairs.iter().map(|pair| {
        let code = i32::from(i16::from_le_bytes(*pair));
        let half = if code < 0 { -STEPS / 2 } else { STEPS / 2 };
        i8::try_from((code + half) / STEPS).unwrap_or(i8::MAX)
    }));
}

/// A query as integers.
#[derive(Debug)]
pub(super) struct QueryCodes {
    /// Codes, each a share of the largest number.
    pub(super) codes: Vec<i16>,
    /// Factor from an integer sum to a score, without the scale of the stored vector.
    pub(super) factor: f32,
}

impl QueryCodes {
    /// Encodes a query.
    pub(super) fn new(query: &[f32]) -> Self {
        let scale = largest(query);
        let codes = query.iter().map(|number| code(*number, scale, MAX_QUERY)).collect();
        Self { codes, factor: scale / MAX_QUERY / MAX_IN_MEMORY }
    }
}

fn largest(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0, |largest: f32, number| largest.max(number.abs()))
}

fn code(number: f32, scale: f32, steps: f32) -> i16 {
    if scale == 0.0 {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the share is at most the number of steps")]
    let code = (number / scale * steps).round() as i16;
    code
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn scores_of_codes_are_near_to_those_of_numbers(
            pairs in proptest::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 1..200)
        ) {
            let (one, query): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let expect: f32 = one.iter().zip(&query).map(|(one, query)| one * query).sum();
            let stored = StoredVector::new(&one);
            let size = one.len() as f32;
            prop_assert!((exact_score(&query, stored.scale, &stored.codes) - expect).abs() < size * 1e-4);
            let mut small = Vec::new();
            add_small_codes(&stored.codes, &mut small);
            let coded = QueryCodes::new(&query);
            let sum: i32 = small.iter().zip(&coded.codes).map(|(one, query)| i32::from(*one) * i32::from(*query)).sum();
            prop_assert!((sum as f32 * coded.factor * stored.scale - expect).abs() < size * 6e-3);
        }
    }

    #[test]
    fn extremes_are_encoded() {
        let stored = StoredVector::new(&[1.0, -1.0, 0.0]);
        let mut small = Vec::new();
        add_small_codes(&stored.codes, &mut small);
        assert_eq!(small, [127, -127, 0]);
        assert_eq!(StoredVector::new(&[0.0]).codes, [0, 0]);
        assert_eq!(QueryCodes::new(&[0.5, -0.5]).codes, [2_047, -2_047]);
    }
}
