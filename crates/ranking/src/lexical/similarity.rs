//! Similarity hashes of texts (simhash): texts that share most of their word pairs have hashes that differ in few bits.
//!
//! Hashes are stored in the index, so a change of this module requires a new layout.

/// Maximum number of words of a record that the hash depends on.
const MAX_WORDS: usize = 2_000;

/// Minimum number of word pairs of a similarity hash. The hash of a shorter text is equal for equal texts alone.
const MIN_PAIRS: usize = 12;

/// Number of binary digits of a count of words.
const COUNT_DIGITS: usize = 11;

const _: () = assert!(MAX_WORDS < 1 << COUNT_DIGITS, "a count of words does not overflow");

/// Similarity hash in progress.
#[derive(Debug, Default)]
pub(crate) struct SimilarityHash {
    /// For each bit, the number of pairs that have it. Digit `n` of all 64 counts is in element `n`, so that a pair is
    /// added to all of them at once.
    counts: [u64; COUNT_DIGITS],
    /// Hash of all words in order.
    exact: u64,
    before: u64,
    words: usize,
}

impl SimilarityHash {
    /// Adds a text. Words are runs of letters and digits; case is ignored for ASCII.
    pub(crate) fn add(&mut self, text: &str) {
        for word in text
            .as_bytes()
            .split(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
        {
            if self.words == MAX_WORDS {
                return;
            }
            self.words += 1;
            let hash = fnv(word);
            let pair = mix(self.before.rotate_left(7) ^ hash);
            self.exact = mix(self.exact ^ hash);
            self.count(pair);
            self.before = hash;
        }
    }

    /// Returns the hash of all added texts.
    pub(crate) fn finish(&self) -> u64 {
        if self.words < MIN_PAIRS {
            return self.exact;
        }
        let count = |bit: usize| {
            let digits = self.counts.iter().enumerate();
            digits.fold(0, |count, (digit, counts)| count + (((counts >> bit) & 1) << digit))
        };
        (0..64).filter(|bit| 2 * count(*bit) > self.words as u64).fold(0, |hash, bit| hash | (1 << bit))
    }

    /// Adds one to the count of each bit of a pair.
    fn count(&mut self, pair: u64) {
        let mut carry = pair;
        for digit in &mut self.counts {
            if carry == 0 {
                return;
            }
            (*digit, carry) = (*digit ^ carry, *digit & carry);
        }
    }
}

/// Hashes a word without regard to the case of ASCII letters (FNV-1a).
fn fnv(word: &[u8]) -> u64 {
    word.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01B3)
    })
}

/// Mixes the bits of a number (the finalizer of `SplitMix64`).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> u64 {
        let mut hash = SimilarityHash::default();
        hash.add(text);
        hash.finish()
    }

    #[test]
    fn similar_texts_have_similar_hashes() {
        let words: Vec<String> = (0..300).map(|number| format!("word{number}")).collect();
        let text = words.join(" ");
        let copy = text.replace("word299", "other").to_uppercase();
        assert!((hash(&text) ^ hash(&copy)).count_ones() <= 3);
        let different: Vec<String> = (300..600).map(|number| format!("word{number}")).collect();
        assert!((hash(&text) ^ hash(&different.join(" "))).count_ones() > 10);
    }

    #[test]
    fn a_bit_is_set_if_most_pairs_have_it() {
        for words in [MIN_PAIRS, 13, 1_000, MAX_WORDS, MAX_WORDS + 500] {
            let text: Vec<String> = (0..words).map(|number| format!("w{}", number % 700)).collect();
            let mut votes = [0_i32; 64];
            let mut before = 0_u64;
            for word in text.iter().take(MAX_WORDS) {
                let hash = fnv(word.as_bytes());
                let pair = mix(before.rotate_left(7) ^ hash);
                (0..)
                    .zip(&mut votes)
                    .for_each(|(bit, votes)| *votes += if (pair >> bit) & 1 == 1 { 1 } else { -1 });
                before = hash;
            }
            let expected = (0..)
                .zip(votes)
                .filter(|(_, votes)| *votes > 0)
                .fold(0, |hash, (bit, _)| hash | (1_u64 << bit));
            assert_eq!(hash(&text.join(" ")), expected, "{words}");
        }
    }

    #[test]
    fn short_texts_have_equal_hashes_only_if_they_are_equal() {
        assert_eq!(hash("Invoice 123, paid"), hash("invoice 123 PAID"));
        assert!((hash("invoice 123 paid") ^ hash("invoice 124 paid")).count_ones() > 3);
        assert!((hash("") ^ hash("x")).count_ones() > 3);
    }
}
