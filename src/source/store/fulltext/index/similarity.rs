//! Similarity hashes of texts (simhash): texts that share most of their word pairs have hashes that differ in few bits.
//!
//! Hashes are stored in the index, so a change of this module requires a new layout.

/// Maximum number of words of a record that the hash depends on.
const MAX_WORDS: usize = 2_000;

/// Minimum number of word pairs of a similarity hash. The hash of a shorter text is equal for equal texts alone.
const MIN_PAIRS: usize = 12;

/// Similarity hash in progress.
#[derive(Debug)]
pub(super) struct SimilarityHash {
    /// For each bit, the number of pairs that have it less the number that do not.
    votes: [i32; 64],
    /// Hash of all words in order.
    exact: u64,
    before: u64,
    words: usize,
}

impl Default for SimilarityHash {
    fn default() -> Self {
        Self { votes: [0; 64], exact: 0, before: 0, words: 0 }
    }
}

impl SimilarityHash {
    /// Adds a text. Words are runs of letters and digits; case is ignored for ASCII.
    pub(super) fn add(&mut self, text: &str) {
        let is_separator = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
        for word in text.as_bytes().split(is_separator).filter(|word| !word.is_empty()) {
            if self.words == MAX_WORDS {
                return;
            }
            self.words += 1;
            // FNV-1a.
            let hash = word.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01B3)
            });
            let pair = mix(self.before.rotate_left(7) ^ hash);
            self.exact = mix(self.exact ^ hash);
            for (bit, votes) in self.votes.iter_mut().enumerate() {
                *votes += if (pair >> bit) & 1 == 1 { 1 } else { -1 };
            }
            self.before = hash;
        }
    }

    /// Returns the hash of all added texts.
    pub(super) fn finish(&self) -> u64 {
        if self.words < MIN_PAIRS {
            return self.exact;
        }
        let bits = self.votes.iter().enumerate().filter(|(_, votes)| **votes > 0);
        bits.fold(0, |hash, (bit, _)| hash | (1 << bit))
    }
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
    fn short_texts_have_equal_hashes_only_if_they_are_equal() {
        assert_eq!(hash("Invoice 123, paid"), hash("invoice 123 PAID"));
        assert!((hash("invoice 123 paid") ^ hash("invoice 124 paid")).count_ones() > 3);
        assert!((hash("") ^ hash("x")).count_ones() > 3);
    }
}
