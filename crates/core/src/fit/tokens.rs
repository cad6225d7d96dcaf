//! Token counts by `o200k`, the encoding of OpenAI's current models.
//!
//! Every token is at least one byte, so a text with no more bytes than the limit has tokens is within the limit
//! without counting.
//!
//! A long text is counted piece by piece, up to the limit. Pieces end where the encoding never joins two characters,
//! so their sum equals the count of the whole text.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Estimator;
use super::budget::DOCUMENT_TOKENS;

/// Approximate number of bytes that are counted before the limit is checked.
const PIECE: usize = 8 * 1024;

/// Maximum distance to the end of a piece. Texts up to this length are always counted exactly.
const MAX_SEAM: usize = 64 * 1024;

/// Bytes of a sample from a text that continues beyond its limit.
const SAMPLE: usize = 2 * 1024;

/// Number of samples.
const SAMPLES: usize = 8;

/// Returns the tokens of `text` if they are at most `max_tokens`, or `None` if they need not be counted.
///
/// # Errors
///
/// There are more: so many, or about so many in a text that is longer than any answer.
pub fn tokens_within(text: &str, max_tokens: usize) -> Result<Option<usize>, usize> {
    if text.len() <= max_tokens {
        return Ok(None);
    }
    let counted = CountedPrefix::up_to(text, max_tokens);
    if counted.tokens <= max_tokens {
        return Ok(Some(counted.tokens));
    }
    // The caller fits the answer again with this number, and an estimate would make it smaller than necessary.
    if text.len() <= MAX_SEAM {
        return Err(counted.tokens + count_tokens(text.get(counted.bytes..).unwrap_or_default()));
    }
    Err(counted.with_the_rest(text))
}

/// Counts all tokens of `text`. Takes about 0.5 ms for 48,000 bytes of JSON.
#[must_use]
pub fn count_tokens(text: &str) -> usize {
    let (mut rest, mut tokens) = (text, 0);
    while !rest.is_empty() {
        // A piece ends at its seam however far that is: this is the exact count.
        let (piece, behind) = rest.split_at_checked(seam(rest, usize::MAX)).unwrap_or((rest, ""));
        tokens += fetchwell_o200k::count(piece);
        rest = behind;
    }
    tokens
}

/// Number of answers of a thread whose counts are kept, 16 bytes each.
const KEPT_COUNTS: usize = 512;

/// Maximum bytes of such an answer. A longer one is counted when it is fitted, so its count is already known.
const MAX_KEPT_BYTES: usize = DOCUMENT_TOKENS;

thread_local! {
    /// Hashes of the latest short answers of this thread with their tokens.
    static COUNTS: RefCell<Vec<(u64, usize)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the tokens of an answer, exactly up to the tokens of the longest document. Counting 2 kB takes about 15 µs and
/// hashing them 1 µs, so an answer that is sent again is not counted again.
#[must_use]
pub fn answer_tokens(json: &str) -> usize {
    let count = || Estimator::O200k.tokens(json, DOCUMENT_TOKENS);
    if json.len() > MAX_KEPT_BYTES {
        return count();
    }
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    let hash = hasher.finish();
    let place = usize::try_from(hash).unwrap_or_default() % KEPT_COUNTS;
    COUNTS.with_borrow_mut(|counts| {
        counts.resize(KEPT_COUNTS, (0, 0));
        match counts.get_mut(place) {
            Some((kept, tokens)) if *kept == hash => *tokens,
            Some(kept) => {
                *kept = (hash, count());
                kept.1
            }
            None => count(),
        }
    })
}

impl Estimator {
    /// Returns the tokens of `text`: exactly, up to `max_tokens`. Beyond that, the rest is assumed to be as dense as the
    /// densest piece, so that the estimate is not too low, and the work does not grow with the text.
    #[must_use]
    pub fn tokens(self, text: &str, max_tokens: usize) -> usize {
        match self {
            Self::O200k => CountedPrefix::up_to(text, max_tokens).with_the_rest(text),
            Self::Chars4 => quarter_of_characters(text),
        }
    }
}

/// Estimates tokens as the Context Protection API defines it: a token is four characters, plus a fifth. Computed in
/// floating point like the definition (`int(len(text) / 4 * 1.2)`), so that every text has the same number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a length is far below 2^53, and not negative"
)]
fn quarter_of_characters(text: &str) -> usize {
    (text.chars().count() as f64 / 4.0 * 1.2) as usize
}

/// Counted start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CountedPrefix {
    tokens: usize,
    bytes: usize,
    /// Density of its densest piece.
    densest: Density,
}

/// Number of tokens in a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Density {
    tokens: usize,
    bytes: usize,
}

impl Density {
    fn new(text: &str) -> Self {
        Self { tokens: fetchwell_o200k::count(text), bytes: text.len() }
    }

    fn or_denser(self, other: Self) -> Self {
        // Cross-multiplied, so that nothing is rounded. An empty density is less than any other.
        if self.bytes == 0 || other.tokens * self.bytes > self.tokens * other.bytes { other } else { self }
    }

    fn of_bytes(self, bytes: usize) -> usize {
        (bytes * self.tokens).div_ceil(self.bytes.max(1))
    }
}

impl CountedPrefix {
    /// Counts until it is known if there are more than `max_tokens` tokens.
    fn up_to(text: &str, max_tokens: usize) -> Self {
        let mut counted = Self::default();
        while counted.bytes < text.len() && counted.tokens <= max_tokens {
            let rest = text.get(counted.bytes..).unwrap_or_default();
            let piece = rest.get(..seam(rest, MAX_SEAM)).unwrap_or(rest);
            let density = Density::new(piece);
            counted.tokens += density.tokens;
            counted.bytes += density.bytes;
            counted.densest = counted.densest.or_denser(density);
        }
        counted
    }

    fn with_the_rest(self, text: &str) -> usize {
        let rest = text.get(self.bytes..).unwrap_or_default();
        let step = rest.len() / SAMPLES;
        let samples = (0..SAMPLES).map(|number| {
            let start = rest.floor_char_boundary(number * step);
            let end = rest.floor_char_boundary(start + SAMPLE.min(step));
            Density::new(rest.get(start..end).unwrap_or_default())
        });
        let densest = if rest.is_empty() {
            self.densest
        } else {
            samples.filter(|sample| sample.bytes > 0).fold(self.densest, Density::or_denser)
        };
        self.tokens + densest.of_bytes(rest.len()).min(rest.len())
    }
}

/// Returns the end of the first piece of `text`: after [`PIECE`] bytes, at the first position where the encoding
/// never joins, or at `max_bytes` if there is none before.
fn seam(text: &str, max_bytes: usize) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let max_bytes = text.floor_char_boundary(max_bytes.min(text.len()));
    let start = text.floor_char_boundary(PIECE - 1);
    let mut before = None;
    for (at, after) in text.get(start..max_bytes).unwrap_or_default().char_indices() {
        if before.is_some_and(|before| never_joins(before, after)) {
            return start + at;
        }
        before = Some(after);
    }
    max_bytes
}

/// Returns true if no token contains both of two adjacent characters, whatever surrounds them.
fn never_joins(before: char, after: char) -> bool {
    match (before, after) {
        // Spaces begin a piece of their own; so does whatever stands behind a word or a number, but for the apostrophe
        // of "it's". Digits go in threes from the first on, so no number is cut.
        (before, ' ') => !before.is_whitespace() && !before.is_ascii_control(),
        (before, after) if before.is_ascii_alphabetic() => {
            after.is_ascii() && !after.is_ascii_alphabetic() && after != '\''
        }
        (before, after) if before.is_ascii_digit() => after.is_ascii() && !after.is_ascii_digit(),
        // Words of these scripts have nothing between them, but sentences have.
        ('\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{4E00}'..='\u{9FFF}', after) => {
            matches!(after, '。' | '，' | '、' | '；' | '？' | '！')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_are_o200ks() {
        assert_eq!(count_tokens("hello world"), 2);
        assert_eq!(count_tokens("日本語"), 2);
        assert_eq!(count_tokens(""), 0);
    }

    #[test]
    fn short_texts_are_within_by_their_bytes() {
        assert!(tokens_within("hello world", 11).is_ok());
        assert!(tokens_within("hello world", 2).is_ok());
        assert!(tokens_within("hello world", 1).is_err());
    }

    #[test]
    fn counting_ends_at_the_limit() {
        let text = "word ".repeat(1_000_000);
        let counted = CountedPrefix::up_to(&text, 4_000);
        assert!(counted.tokens > 4_000 && counted.bytes < 4 * PIECE, "{counted:?}");
        let giant = "語".repeat(1_000_000);
        let counted = CountedPrefix::up_to(&giant, 4_000);
        assert!(counted.tokens > 4_000 && counted.bytes <= MAX_SEAM, "{counted:?}");
        let chinese = "家家家，".repeat(100_000);
        let counted = CountedPrefix::up_to(&chinese, 4_000);
        assert!(counted.tokens > 4_000 && counted.bytes < 4 * PIECE, "{counted:?}");
    }

    /// Results of the definition in Python for these lengths.
    #[test]
    fn the_seeds_estimate_is_the_same_number() {
        for (characters, expect) in [
            (0, 0),
            (1, 0),
            (3, 0),
            (4, 1),
            (10, 3),
            (15, 4),
            (30, 9),
            (50, 15),
            (90, 27),
            (110, 33),
            (170, 51),
            (999, 299),
            (1_000, 300),
            (12_345, 3_703),
            (1_000_000, 300_000),
        ] {
            assert_eq!(Estimator::Chars4.tokens(&"ü".repeat(characters), 10), expect, "{characters}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn pieces_add_up(
            words in proptest::collection::vec("[a-zA-Z']{1,9}|[0-9]{1,7}|\\PC{1,6}|[家はア語]{1,3}[。，、；？！]?|[ \n\t\"{},:.]{1,4}|'s |\u{301}", 2_500..4_000),
        ) {
            let text = words.concat();
            let whole = tiktoken_rs::o200k_base_singleton().count_ordinary(&text);
            prop_assert_eq!(CountedPrefix::up_to(&text, usize::MAX).tokens, whole);
            prop_assert_eq!(count_tokens(&text), whole);
        }
    }
}
