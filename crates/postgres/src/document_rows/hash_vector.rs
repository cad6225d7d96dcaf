//! Vectors that stand for those of a model: hashes of the words of a text. They fill a column that cannot be empty, carry
//! the label `hash`, and no search compares them.

use fetchwell_ranking::lexical::words::words;
use fetchwell_source::contract::EMBEDDING_DIMENSIONS;
use sha2::{Digest, Sha256};

/// Label of such a vector in the metadata of its chunk.
pub(crate) const HASH_LABEL: &str = "hash";

/// Returns the vector of a text, which has length 1. Equal texts have equal vectors.
pub(crate) fn hash_vector(text: &str) -> Vec<f32> {
    let mut numbers = vec![0.0_f32; EMBEDDING_DIMENSIONS];
    // A text without words has a direction of its own.
    add(&mut numbers, "");
    for word in words(text).filter(|word| !word.is_joined()) {
        add(&mut numbers, &word.folded(text));
    }
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        numbers.iter_mut().for_each(|number| *number /= length);
    } else if let Some(first) = numbers.first_mut() {
        *first = 1.0;
    }
    numbers
}

fn add(numbers: &mut [f32], word: &str) {
    let digest = Sha256::digest(word);
    let mut bytes = digest.iter().map(|byte| usize::from(*byte));
    let (Some(low), Some(high), Some(sign)) = (bytes.next(), bytes.next(), bytes.next()) else { return };
    if let Some(number) = numbers.get_mut((low + 256 * high) % EMBEDDING_DIMENSIONS) {
        *number += if sign % 2 == 0 { 1.0 } else { -1.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_vectors_have_length_one() {
        for text in ["", "one two three", "???", &"word ".repeat(10_000)] {
            let vector = hash_vector(text);
            let length: f32 = vector.iter().map(|number| number * number).sum();
            assert!(vector.len() == EMBEDDING_DIMENSIONS && (length - 1.0).abs() < 1e-3, "{length}");
            assert_eq!(vector, hash_vector(text));
        }
        assert_ne!(hash_vector("one"), hash_vector("two"));
    }
}
