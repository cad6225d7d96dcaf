//! Counting tokens of `o200k`, the encoding of OpenAI's current models.
//!
//! The encoding cuts a text into pieces and merges the bytes of each piece by itself, so the tokens of a text are the sum
//! of those of its pieces. The counts are exactly those of tiktoken-rs; `docs/decisions.md` has why that crate only builds
//! the tables.
//!
//! - `cache`: counts of short pieces that were counted before
//! - `hash`: the hash table from bytes to their token
//! - `merges`: a cache of merges of two tokens
//! - `parts`: a cache of the tokens that tokens consist of
//! - `pieces`: cuts a text
//! - `token`: tokens as numbers
//! - `vocabulary`: counts the tokens of a piece
//!
//! Uses no other crate of the workspace.

mod cache;
mod hash;
mod merges;
mod parts;
mod pieces;
mod token;
mod vocabulary;

use std::cell::RefCell;

use cache::PieceCache;

thread_local! {
    static CACHE: RefCell<PieceCache> = RefCell::new(PieceCache::new());
}

/// Counts the tokens of a text, special tokens as text.
#[must_use]
pub fn count(text: &str) -> usize {
    CACHE.with_borrow_mut(|cache| {
        let mut tokens = 0;
        pieces::each_piece(text, |piece| tokens += cache.tokens_of(piece));
        tokens
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let expect = tiktoken_rs::o200k_base_singleton().count_ordinary(text);
        assert_eq!(count(text), expect, "{:?}", text.get(..200).unwrap_or(text));
    }

    #[test]
    fn long_pieces_are_merged_as_the_encoding_merges_them() {
        let units = "a|ab|A|=| |\n|-=|語|ม|é|\u{301}|😀|aé|xyzzy|mississippi";
        for unit in units.split('|') {
            for length in [1, 2, 3, 7, 64, 127, 128, 129, 1_000, 5_001] {
                check(&unit.repeat(length));
                check(&format!("{}é", unit.repeat(length)));
            }
        }
    }

    #[test]
    fn random_bytes_are_merged_as_the_encoding_merges_them() {
        let mut state = 1_u64;
        for (from, letters) in [(b'!', 90), (b'a', 26), (b'a', 4), (b'e', 2), (b'0', 70)] {
            let random = (0..20_000).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(from + u8::try_from((state >> 57) % letters).unwrap())
            });
            check(&random.collect::<String>());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn counts_are_those_of_the_encoding(
            parts in proptest::collection::vec(
                "[a-z]{1,3}|[A-Z]{1,3}|[0-9]{1,5}|'(s|S|t|re|Ve|ll|m|d|x)|[ \t\n\r\u{b}]{1,3}|[\"{}:,./_<-]{1,3}\
                 |[é家ſǅʰ½٣\u{a0}\u{3000}\u{85}\u{301}’K]|\\PC|\u{1}",
                0..24,
            ),
        ) {
            let text = parts.concat();
            let expect = tiktoken_rs::o200k_base_singleton().count_ordinary(&text);
            prop_assert_eq!(count(&text), expect, "{:?}", text);
        }

        #[test]
        fn long_words_are_merged_as_the_encoding_merges_them(text in "[a-z]{1,60}|[aeinst]{1,200}|\\PC{1,40}|[一-鿿]{1,40}|[ก-๛]{1,40}") {
            let expect = tiktoken_rs::o200k_base_singleton().count_ordinary(&text);
            prop_assert_eq!(count(&text), expect, "{:?}", text);
        }
    }
}
