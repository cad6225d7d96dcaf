//! Measures text as JSON, and truncates it at grapheme boundaries.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Value};
use unicode_segmentation::GraphemeCursor;

/// Replacement for omitted text in excerpts and quotations.
pub(super) const ELLIPSIS: &str = "…";

/// Returns the bytes of `text` in a JSON string as `serde_json` writes it, without the quotes.
#[must_use]
pub fn json_len(text: &str) -> usize {
    // Most texts have nothing to escape.
    if has_escapes(text.as_bytes()) { text.bytes().map(json_byte_len).sum() } else { text.len() }
}

/// Returns true if JSON escapes any of the bytes.
fn has_escapes(bytes: &[u8]) -> bool {
    // The compiler vectorizes a count, but not a search.
    bytes.iter().filter(|byte| **byte < 0x20 || matches!(byte, b'"' | b'\\')).count() > 0
}

const fn json_byte_len(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 2,
        0x00..=0x1F => 6,
        _ => 1,
    }
}

/// Returns the bytes of a value as compact JSON.
#[must_use]
pub fn bytes_of<Written: Serialize + ?Sized>(value: &Written) -> usize {
    let mut counter = Counter(0);
    // A value that cannot be serialized exceeds any budget.
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX / 1_000, |()| counter.0)
}

/// Returns the bytes of a JSON value as compact JSON, as [`bytes_of`] does, without writing it.
#[must_use]
pub fn value_len(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(true) => "null".len(),
        Value::Bool(false) => "false".len(),
        Value::Number(number) => match number.as_u64() {
            Some(number) => number.checked_ilog10().map_or(1, |digits| digits as usize + 1),
            None => bytes_of(number),
        },
        Value::String(text) => json_len(text) + "\"\"".len(),
        Value::Array(items) => {
            "[]".len() + items.iter().map(value_len).sum::<usize>() + items.len().saturating_sub(1)
        }
        Value::Object(fields) => fields_len(fields),
    }
}

/// Returns the bytes of an object as compact JSON.
#[must_use]
pub fn fields_len(fields: &Map<String, Value>) -> usize {
    let all: usize = fields.iter().map(|(name, value)| field_len(name, value)).sum();
    // The last field has no comma.
    "{}".len() + all.saturating_sub(1)
}

/// Returns the bytes of a field as compact JSON, with its separators.
#[must_use]
pub fn field_len(name: &str, value: &Value) -> usize {
    json_len(name) + value_len(value) + "\"\":,".len()
}

/// Returns the rest of `room` bytes beside the text of a value, or `None` if that is longer. Stops as soon as it is.
#[must_use]
pub fn room_after(room: usize, value: &Value) -> Option<usize> {
    /// Bytes of a value besides its text.
    const OTHER: usize = 8;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => room.checked_sub(OTHER),
        Value::String(text) => room.checked_sub(text.len() + OTHER),
        Value::Array(items) => items.iter().try_fold(room.checked_sub(OTHER)?, room_after),
        Value::Object(fields) => {
            let field = |room: usize, (name, value): (&String, &Value)| {
                room_after(room.checked_sub(name.len())?, value)
            };
            fields.iter().try_fold(room.checked_sub(OTHER)?, field)
        }
    }
}

/// Counts bytes without storing them, since a value may have megabytes.
struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns `text` if it fits into `max_bytes` bytes of JSON, otherwise its start with an ellipsis.
///
/// For quotations in errors and for titles, which only have to be recognised. A budget too small even
/// for the ellipsis gives the empty text.
#[must_use]
pub fn clip(text: &str, max_bytes: usize) -> String {
    if json_len(text) <= max_bytes {
        return text.to_owned();
    }
    match max_bytes.checked_sub(ELLIPSIS.len()) {
        Some(room) => format!("{}{ELLIPSIS}", prefix(text, room).trim_end()),
        None => String::new(),
    }
}

/// Returns `text` on one line, truncated like [`clip`]. A run of white space and control characters is a space, or nothing at the
/// start and the end.
///
/// Stops reading where the line exceeds `max_bytes`.
#[must_use]
pub fn clip_line(text: &str, max_bytes: usize) -> String {
    let mut line = String::new();
    let mut is_between_words = false;
    for character in text.chars() {
        if character.is_whitespace() || character.is_control() {
            is_between_words = !line.is_empty();
            continue;
        }
        if is_between_words {
            line.push(' ');
            is_between_words = false;
        }
        line.push(character);
        if line.len() > max_bytes {
            break;
        }
    }
    clip(&line, max_bytes)
}

/// Returns the bytes of [`clip`] as JSON.
pub(super) fn clipped_len(text: &str, text_len: usize, max_bytes: usize) -> usize {
    match max_bytes.checked_sub(ELLIPSIS.len()) {
        _ if text_len <= max_bytes => text_len,
        Some(room) => json_len(prefix(text, room).trim_end()) + ELLIPSIS.len(),
        None => 0,
    }
}

/// Returns the piece of a long text around `focus`, with up to `radius` bytes on either side, and the focus in that
/// piece. Used by sources that have megabytes and return a paragraph.
#[must_use]
pub fn passage(text: &str, focus: Range<usize>, radius: usize) -> (&str, Range<usize>) {
    let start = boundary_at_or_before(text, focus.start.saturating_sub(radius));
    let end = boundary_at_or_before(text, focus.end.saturating_add(radius).min(text.len()));
    let piece = text.get(start..end).unwrap_or_default();
    (piece, focus.start.saturating_sub(start)..focus.end.saturating_sub(start).min(piece.len()))
}

/// Returns at most `count` characters of `text` from character `start` on. Characters are code points: windows are
/// requested by number, and they may end inside a grapheme.
#[must_use]
pub fn characters(text: &str, start: usize, count: usize) -> &str {
    let offset = |text: &str, chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let rest = text.get(offset(text, start)..).unwrap_or_default();
    rest.get(..offset(rest, count)).unwrap_or_default()
}

/// Returns the longest prefix of `text` with at most `count` characters that ends between graphemes.
#[must_use]
pub fn first_characters(text: &str, count: usize) -> &str {
    first_bytes(text, characters(text, 0, count).len())
}

/// Returns the longest prefix of `text` with at most `max_bytes` bytes that ends between graphemes.
#[must_use]
pub fn first_bytes(text: &str, max_bytes: usize) -> &str {
    text.get(..boundary_at_or_before(text, max_bytes)).unwrap_or_default()
}

/// Returns the longest end of `text` with at most `count` characters that begins between graphemes.
#[must_use]
pub fn last_characters(text: &str, count: usize) -> &str {
    let start = count.checked_sub(1).and_then(|last| text.char_indices().nth_back(last));
    let start = if count == 0 { text.len() } else { start.map_or(0, |(at, _)| at) };
    text.get(boundary_at_or_after(text, start)..).unwrap_or_default()
}

/// Returns the number of characters of `text` before byte `at`.
#[must_use]
pub fn chars_before(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).chars().count()
}

/// Returns the longest prefix of `text` that takes at most `max_bytes` bytes of JSON and ends between graphemes.
pub(super) fn prefix(text: &str, max_bytes: usize) -> &str {
    let over = match text.as_bytes().get(..max_bytes) {
        None if !has_escapes(text.as_bytes()) => None,
        Some(start) if !has_escapes(start) => Some(max_bytes).filter(|max_bytes| *max_bytes < text.len()),
        _ => {
            let mut taken = 0;
            text.bytes().position(|byte| {
                taken += json_byte_len(byte);
                taken > max_bytes
            })
        }
    };
    let end = over.map_or(text.len(), |at| boundary_at_or_before(text, at));
    text.get(..end).unwrap_or_default()
}

/// Returns the longest suffix of `text` that takes at most `max_bytes` bytes of JSON and starts between graphemes.
pub(super) fn suffix(text: &str, max_bytes: usize) -> &str {
    let mut taken = 0;
    let over = text.bytes().rev().position(|byte| {
        taken += json_byte_len(byte);
        taken > max_bytes
    });
    let start = over.map_or(0, |from_end| boundary_at_or_after(text, text.len() - from_end));
    text.get(start..).unwrap_or_default()
}

/// Returns the last grapheme boundary of `text` that is not after byte `at`.
pub(super) fn boundary_at_or_before(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        // The whole text is one chunk, so the cursor never requests another.
        Ok(false) | Err(_) => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
    }
}

fn boundary_at_or_after(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        Ok(false) | Err(_) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    #[test]
    fn clipping_keeps_whole_graphemes_and_says_so() {
        assert_eq!(clip("short", 5), "short");
        assert_eq!(clip("too long", 6), "too…");
        assert_eq!(clip("👩‍👩‍👧👩‍👩‍👧", 25), "👩‍👩‍👧…"); // one family is 18 bytes and is not split
        assert_eq!(clip("abc", 2), "");
    }

    #[test]
    fn a_line_has_single_spaces_and_is_clipped() {
        assert_eq!(clip_line(" a \n\n b\u{7}c ", 9), "a b c");
        assert_eq!(clip_line("too   long", 6), "too…");
        assert_eq!(clip_line(" \n ", 9), "");
    }

    #[test]
    fn a_passage_is_cut_around_its_focus() {
        assert_eq!(passage("0123456789", 4..6, 2), ("234567", 2..4));
        assert_eq!(passage("0123456789", 0..1, 100), ("0123456789", 0..1));
        assert_eq!(passage("ééééé", 4..6, 1), ("éé", 2..4)); // byte 3 is inside the second é
    }

    #[test]
    fn characters_are_counted_from_both_ends() {
        assert_eq!((first_characters("abcde", 2), last_characters("abcde", 2)), ("ab", "de"));
        assert_eq!(
            (last_characters("abc", 3), last_characters("abc", 9), last_characters("abc", 0)),
            ("abc", "abc", "")
        );
        // A family has five code points and 18 bytes.
        assert_eq!((first_bytes("é👩‍👩‍👧", 19), first_bytes("é👩‍👩‍👧", 20), first_bytes("é", 1)), ("é", "é👩‍👩‍👧", ""));
        assert_eq!((first_characters("👩‍👩‍👧é", 4), last_characters("é👩‍👩‍👧", 4)), ("", ""));
        assert_eq!(last_characters("é👩‍👩‍👧", 5), "👩‍👩‍👧");
    }

    proptest! {
        #[test]
        fn a_line_is_the_whole_text_on_one_line_clipped(text in "[ab \n\"\u{301}\u{600}क\u{94D}ष👩👧\u{200D}🇩🇪é]{0,60}", max_bytes in 0_usize..80) {
            let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
            let whole = words.collect::<Vec<_>>().join(" ");
            prop_assert_eq!(clip_line(&text, max_bytes), clip(&whole, max_bytes));
        }

        #[test]
        fn json_len_is_what_serde_json_writes(text in any::<String>()) {
            prop_assert_eq!(json_len(&text) + 2, serde_json::to_string(&text).unwrap().len());
        }

        #[test]
        fn value_len_is_what_serde_json_writes(text in any::<String>(), number in any::<i64>(), share in any::<f64>(), flag in any::<bool>()) {
            let inner = serde_json::json!([text, number, number.unsigned_abs(), share, flag, null, {}, []]);
            let value = serde_json::json!({ &text: inner, "b": {"c": [inner]}, "d": 0 });
            prop_assert_eq!(value_len(&value), serde_json::to_string(&value).unwrap().len());
            prop_assert_eq!(value_len(&inner), serde_json::to_string(&inner).unwrap().len());
        }

        #[test]
        fn cuts_fit_are_pieces_and_fall_between_graphemes(text in any::<String>(), max_bytes in 0usize..64) {
            let (start, end) = (prefix(&text, max_bytes), suffix(&text, max_bytes));
            prop_assert!(text.starts_with(start) && text.ends_with(end));
            prop_assert!(json_len(start) <= max_bytes && json_len(end) <= max_bytes);
            let mut boundaries: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
            boundaries.push(text.len());
            prop_assert!(boundaries.contains(&start.len()));
            prop_assert!(boundaries.contains(&(text.len() - end.len())));
        }

        #[test]
        fn a_clip_never_exceeds_its_budget(text in any::<String>(), max_bytes in 0usize..64) {
            prop_assert!(json_len(&clip(&text, max_bytes)) <= max_bytes);
            prop_assert_eq!(clipped_len(&text, json_len(&text), max_bytes), json_len(&clip(&text, max_bytes)));
        }

        #[test]
        fn a_passage_holds_its_focus(text in ".{0,60}", from in 0usize..60, len in 0usize..10, radius in 0usize..20) {
            let start = text.floor_char_boundary(from);
            let end = text.ceil_char_boundary((start + len).min(text.len()));
            let (piece, focus) = passage(&text, start..end, radius);
            prop_assert!(text.contains(piece));
            prop_assert!(focus.end <= piece.len() && focus.start <= focus.end);
        }
    }
}
