//! Counting the tokens of JSON and plain text without the encoding's regular expression.
//!
//! The encoding cuts a text into pieces and encodes each piece by itself, so the tokens of a text are the sum of those of
//! its pieces. Pieces of ASCII are cut here by hand, and the tokens of short pieces are cached, because keys and words
//! repeat. Everything else is left to the encoding. The counts are exactly those of the encoding; `docs/decisions.md` has
//! the reason and the measurement.

use std::sync::Mutex;

/// Slots of a cache. An entry replaces the one that has its slot.
const SLOTS: usize = 8_192;

/// The longest piece that is cached, in bytes. An entry takes 16 bytes, so all caches take half a megabyte.
const MAX_CACHED: usize = 14;

/// Lookups after which it is checked whether the cache helps.
const TRIAL: usize = 512;

/// The caches. A call takes one that is free, or none: it never waits.
static CACHES: [Mutex<Cache>; 4] = [const { Mutex::new(Cache { entries: Vec::new() }) }; 4];

/// Tokens of short pieces.
struct Cache {
    entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    piece: [u8; MAX_CACHED],
    /// 0 for a slot that is free.
    bytes: u8,
    tokens: u8,
}

/// Counts the tokens of a text. `encoded` is the encoding itself.
pub(super) fn count(text: &str, encoded: impl Fn(&str) -> usize) -> usize {
    let mut cache = CACHES.iter().find_map(|cache| cache.try_lock().ok());
    let (mut at, mut tokens, mut lookups, mut misses) = (0, 0, 0_usize, 0_usize);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        // A text whose pieces do not repeat, such as base64, is encoded faster as a whole.
        if lookups > TRIAL && misses * 2 > lookups {
            return tokens + encoded(rest);
        }
        let (end, is_piece) = match ascii_piece(text.as_bytes(), at) {
            Some(end) => (end, true),
            None => (end_of_other(text.as_bytes(), at), false),
        };
        let piece = text.get(at..end).unwrap_or(rest);
        at += piece.len();
        if is_piece && piece.len() == 1 {
            tokens += 1;
            continue;
        }
        lookups += 1;
        tokens += match (&mut cache, is_piece) {
            (Some(cache), true) if piece.len() <= MAX_CACHED => cache.tokens(piece, || {
                misses += 1;
                encoded(piece)
            }),
            _ => {
                misses += 1;
                encoded(piece)
            }
        };
    }
    tokens
}

impl Cache {
    /// Returns the tokens of a piece of at most [`MAX_CACHED`] bytes.
    fn tokens(&mut self, piece: &str, encoded: impl FnOnce() -> usize) -> usize {
        if self.entries.is_empty() {
            self.entries = vec![Entry { piece: [0; MAX_CACHED], bytes: 0, tokens: 0 }; SLOTS];
        }
        let mut key = [0; MAX_CACHED];
        key.iter_mut().zip(piece.bytes()).for_each(|(slot, byte)| *slot = byte);
        let bytes = u8::try_from(piece.len()).unwrap_or(u8::MAX);
        let Some(entry) = self.entries.get_mut(slot_of(&key)) else { return encoded() };
        if entry.bytes == bytes && entry.piece == key {
            return usize::from(entry.tokens);
        }
        let tokens = encoded();
        // A token is at least a byte, so the number fits.
        *entry = Entry { piece: key, bytes, tokens: u8::try_from(tokens).unwrap_or(u8::MAX) };
        tokens
    }
}

/// Returns the slot of a piece (FNV-1a). A piece is compared whole, so that a bad spread costs time and nothing else.
fn slot_of(key: &[u8; MAX_CACHED]) -> usize {
    let hash = key.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    usize::try_from((hash ^ (hash >> 32)) & 0xFFFF_FFFF).unwrap_or_default() % SLOTS
}

/// Returns where the piece that starts at a byte ends, when ASCII alone decides it: next to other characters the
/// encoding decides.
///
/// The rules are those of `o200k`, tried in this order: a character that is no letter, digit or line break, then a
/// word of upper-case and then lower-case letters with an English contraction; a word without that character; up to three
/// digits; punctuation with a space before and line breaks or slashes behind; white space up to its last line break; white
/// space but for its last character, when something follows; white space.
fn ascii_piece(text: &[u8], at: usize) -> Option<usize> {
    let byte = |at: usize| text.get(at).copied();
    let is = |at: usize, kind: fn(u8) -> bool| byte(at).is_some_and(kind);
    let run = |from: usize, kind: fn(u8) -> bool| (from..).find(|at| !is(*at, kind)).unwrap_or(from);
    // What is not ASCII may go on with anything.
    let known = |end: usize| byte(end).is_none_or(|byte| byte.is_ascii()).then_some(end);
    let first = byte(at).filter(u8::is_ascii)?;
    if first.is_ascii_alphabetic() {
        return end_of_word(text, at);
    }
    if first.is_ascii_digit() {
        let end = run(at, |byte| byte.is_ascii_digit()).min(at + 3);
        return if end == at + 3 { Some(end) } else { known(end) };
    }
    let next = known(at + 1)?;
    if !is_line_break(first) && is(next, |byte| byte.is_ascii_alphabetic()) {
        return end_of_word(text, next);
    }
    let start = if first == b' ' && is(next, is_punctuation) { next } else { at };
    if is(start, is_punctuation) {
        let end = known(run(start, is_punctuation))?;
        return Some(run(end, |byte| is_line_break(byte) || byte == b'/'));
    }
    let end = known(run(at, is_space))?;
    let space = text.get(at..end)?;
    if let Some(last_break) = space.iter().rposition(|byte| is_line_break(*byte)) {
        return Some(at + last_break + 1);
    }
    Some(if end == text.len() || end == next { end } else { end - 1 })
}

/// Returns where a word ends that starts with a letter of ASCII.
fn end_of_word(text: &[u8], start: usize) -> Option<usize> {
    let byte = |at: usize| text.get(at).copied();
    let upper = (start..).find(|at| !byte(*at).is_some_and(|byte| byte.is_ascii_uppercase()))?;
    let end = (upper..).find(|at| !byte(*at).is_some_and(|byte| byte.is_ascii_lowercase()))?;
    match byte(end) {
        Some(b'\'') => {}
        Some(other) if !other.is_ascii() => return None,
        _ => return Some(end),
    }
    let behind = |offset: usize| byte(end + offset).unwrap_or_default().to_ascii_lowercase();
    match (behind(1), behind(2)) {
        // A long s is an s for the encoding.
        (one, two) if !one.is_ascii() || !two.is_ascii() => None,
        (b's' | b't' | b'm' | b'd', _) => Some(end + 2),
        (b'r' | b'v', b'e') | (b'l', b'l') => Some(end + 3),
        _ => Some(end),
    }
}

/// Returns where a piece with other characters certainly ends: at a place behind them where the encoding never joins.
fn end_of_other(text: &[u8], at: usize) -> usize {
    let other =
        text.iter().skip(at).position(|byte| !byte.is_ascii()).map_or(text.len(), |offset| at + offset);
    let ends = |pair: &[u8]| match pair {
        [before, after] if !before.is_ascii() || !after.is_ascii() => false,
        [before, b' '] => before.is_ascii_graphic(),
        [before, after] if before.is_ascii_alphabetic() => !after.is_ascii_alphabetic() && *after != b'\'',
        [before, after] if before.is_ascii_digit() => !after.is_ascii_digit(),
        _ => false,
    };
    let behind = text.get(other..).unwrap_or_default();
    behind.windows(2).position(ends).map_or(text.len(), |offset| other + offset + 1)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn is_punctuation(byte: u8) -> bool {
    byte.is_ascii() && !is_space(byte) && !byte.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(text: &str) -> usize {
        tiktoken_rs::o200k_base_singleton().count_ordinary(text)
    }

    #[test]
    fn pieces_of_ascii_are_cut_as_the_encoding_cuts_them() {
        let cut = |text: &str| {
            let (mut pieces, mut at) = (Vec::new(), 0);
            while let Some(end) = ascii_piece(text.as_bytes(), at) {
                pieces.push(text.get(at..end).unwrap().to_owned());
                at = end;
            }
            pieces
        };
        assert_eq!(cut("{\"aB\":\"HTMLParser's\"}"), ["{\"", "a", "B", "\":\"", "HTMLParser's", "\"}"]);
        assert_eq!(
            cut("it'll 12345  x\n\n y //\n"),
            ["it'll", " ", "123", "45", " ", " x", "\n\n", " y", " //\n"]
        );
        assert_eq!(cut("a  "), ["a", "  "]);
        // Next to other characters, and only there, the encoding decides.
        assert_eq!(cut("one é"), ["one"]);
        assert!(cut("é").is_empty() && cut("cafeé").is_empty() && cut("it'ſ").is_empty());
    }

    #[test]
    fn a_text_that_does_not_repeat_is_counted_as_a_whole() {
        let mut state = 1_u64;
        let random: String = (0..20_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b'!' + u8::try_from(state >> 57).unwrap() % 90)
            })
            .collect();
        let calls = std::cell::Cell::new(0);
        let counted = count(&random, |piece| {
            calls.set(calls.get() + 1);
            encoded(piece)
        });
        assert_eq!(counted, encoded(&random));
        assert!(calls.get() <= TRIAL + 2, "{}", calls.get());
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
            prop_assert_eq!(count(&text, encoded), encoded(&text), "{:?}", text);
        }
    }
}
