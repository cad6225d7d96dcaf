//! Cutting a text into the pieces that `o200k` encodes one by one.
//!
//! Pieces of ASCII are cut by hand, several times as fast as by the regular expression. A piece next to any other
//! character is left to the expression, which is the encoding's own but for its look-ahead.

use std::sync::LazyLock;

use regex::Regex;

/// The expression; none where it is broken, which a test would show.
static PATTERN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(include_str!(concat!(env!("OUT_DIR"), "/o200k.pattern"))).ok());

/// Calls `take` with each piece of a text, in order.
pub(super) fn each_piece(text: &str, mut take: impl FnMut(&[u8])) {
    let mut at = 0;
    while at < text.len() {
        let (end, is_piece) = match ascii_piece(text.as_bytes(), at) {
            Some(end) => (end, true),
            None => (end_of_other(text.as_bytes(), at), false),
        };
        let part = text.get(at..end).unwrap_or_default();
        if is_piece {
            take(part.as_bytes());
        } else {
            each_by_pattern(part, &mut take);
        }
        at = end;
    }
}

/// Splits a part of a text by the expression. The last piece ends with the part.
fn each_by_pattern(text: &str, take: &mut impl FnMut(&[u8])) {
    let mut at = 0;
    while let Some(found) = PATTERN.as_ref().and_then(|pattern| pattern.find_at(text, at)) {
        let mut piece = found.as_str();
        // The look-ahead leaves the last of several spaces to what follows them.
        let is_space = |piece: &str| piece.chars().all(char::is_whitespace) && !piece.ends_with(['\r', '\n']);
        if found.end() < text.len()
            && is_space(piece)
            && let Some((last, _)) = piece.char_indices().next_back().filter(|(last, _)| *last > 0)
        {
            piece = piece.get(..last).unwrap_or(piece);
        }
        take(piece.as_bytes());
        at = found.start() + piece.len();
    }
}

/// Returns where the piece that starts at a byte ends, when ASCII alone decides it: next to other characters the
/// expression decides.
///
/// The rules are those of `o200k`, tried in this order: a character that is no letter, digit or line break, then a
/// word of upper-case and then lower-case letters with an English contraction; a word without that character; up to three
/// digits; punctuation with a space before and line breaks or slashes behind; white space up to its last line break; white
/// space but for its last character, when something follows; white space.
fn ascii_piece(text: &[u8], at: usize) -> Option<usize> {
    let byte = |at: usize| text.get(at).copied();
    let is = |at: usize, kind: fn(u8) -> bool| byte(at).is_some_and(kind);
    let run = |from: usize, kind: fn(u8) -> bool| (from..).find(|at| !is(*at, kind)).unwrap_or(from);
    // Other characters than ASCII may continue any piece.
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
    use super::*;

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
        // Next to other characters, and only there, the expression decides.
        assert_eq!(cut("one é"), ["one"]);
        assert!(cut("é").is_empty() && cut("cafeé").is_empty() && cut("it'ſ").is_empty());
    }
}
