//! Truncates an excerpt around its match.

use std::ops::Range;

use super::cut::{ELLIPSIS, json_len, prefix, suffix};
use crate::record::Excerpt;

/// Maximum number of bytes by which a cut moves towards the match to fall between words.
const WORD_SEARCH: usize = 12;

/// Minimum bytes of a passage after its label: the match with a word on either side.
const MIN_LABELLED: usize = 32;

/// Returns the excerpt in at most `max_bytes` bytes of JSON: all of it, or the match with as much of both sides as fits,
/// with ellipses for omitted text. Empty if not even an ellipsis and a word fit. The label stays if it leaves room for a few
/// words.
#[must_use]
pub fn shorten(excerpt: &Excerpt, max_bytes: usize) -> String {
    let text = excerpt.text();
    if json_len(text) <= max_bytes {
        return text.to_owned();
    }
    let label = excerpt.label();
    let passage = text.get(label.len()..).unwrap_or_default();
    let focus = excerpt.focus();
    let focus = focus.start.saturating_sub(label.len())..focus.end.saturating_sub(label.len());
    match max_bytes.checked_sub(json_len(label)).filter(|room| *room >= MIN_LABELLED) {
        Some(room) => format!("{label}{}", shorten_passage(passage, focus, room)),
        None => shorten_passage(passage, focus, max_bytes),
    }
}

/// Returns a passage with this match in at most `max_bytes` bytes of JSON.
fn shorten_passage(text: &str, focus: Range<usize>, max_bytes: usize) -> String {
    if json_len(text) <= max_bytes {
        return text.to_owned();
    }
    let Some(room) = max_bytes.checked_sub(2 * ELLIPSIS.len()).filter(|room| *room >= WORD_SEARCH) else {
        return String::new();
    };
    let (before, rest) = text.split_at_checked(focus.start).unwrap_or(("", text));
    let (focus, after) = rest.split_at_checked(focus.len()).unwrap_or((rest, ""));
    let (whole_focus, focus) = (focus, prefix(focus, room));
    let after = if focus.len() < whole_focus.len() { "" } else { after };
    let sides = room - json_len(focus);
    // Each side gets half of the room; bytes that one side does not need go to the other.
    let (before_len, after_len) = (json_len(before), json_len(after));
    let left = (sides / 2).max(sides.saturating_sub(after_len)).min(before_len);
    let right = sides.saturating_sub(left).min(after_len);
    let (head, tail) =
        (at_word_start(before, suffix(before, left)), at_word_end(after, prefix(after, right)));
    let leading = if head.len() < before.len() { ELLIPSIS } else { "" };
    let trailing = if tail.len() < after.len() || focus.len() < whole_focus.len() { ELLIPSIS } else { "" };
    format!("{leading}{head}{focus}{tail}{trailing}")
}

/// Returns `piece` without the truncated word at its start, if that is short.
fn at_word_start<'a>(whole: &str, piece: &'a str) -> &'a str {
    if piece.len() == whole.len() || whole.strip_suffix(piece).is_some_and(|left| left.ends_with(' ')) {
        return piece;
    }
    match piece.find(' ') {
        Some(space) if space <= WORD_SEARCH => piece.get(space + 1..).unwrap_or_default(),
        _ => piece,
    }
}

/// Returns `piece` without the truncated word at its end, if that is short.
fn at_word_end<'a>(whole: &str, piece: &'a str) -> &'a str {
    if piece.len() == whole.len() || whole.strip_prefix(piece).is_some_and(|left| left.starts_with(' ')) {
        return piece;
    }
    match piece.rfind(' ') {
        Some(space) if piece.len() - space <= WORD_SEARCH => piece.get(..space).unwrap_or_default(),
        _ => piece,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, word: &str, max_bytes: usize, expect: &str) {
        let at = text.find(word).unwrap();
        assert_eq!(shorten(&Excerpt::new(text, at..at + word.len()), max_bytes), expect);
    }

    const LETTER: &str =
        "Dear Ann, please pay the invoice number four before the end of the month, thank you.";

    #[test]
    fn an_excerpt_is_centred_on_its_match() {
        check(LETTER, "invoice", 200, LETTER);
        check(LETTER, "invoice", 50, "…please pay the invoice number four before…");
        check(LETTER, "Dear", 30, "Dear Ann, please pay the…");
        check(LETTER, "you.", 40, "…the end of the month, thank you.");
    }

    #[test]
    fn a_label_stays_if_there_is_room_for_words() {
        let excerpt = Excerpt::new(LETTER, 24..31).with_label("a.pdf");
        assert_eq!(shorten(&excerpt, 57), "a.pdf: …please pay the invoice number four…");
        assert_eq!(shorten(&excerpt, 38), "…pay the invoice number four…");
        assert_eq!(shorten(&excerpt, 200), format!("a.pdf: {LETTER}"));
    }

    #[test]
    fn a_match_longer_than_the_room_is_cut_itself() {
        check(&"x".repeat(500), &"x".repeat(500), 30, &format!("{}…", "x".repeat(24)));
    }

    #[test]
    fn no_room_gives_nothing() {
        check(LETTER, "invoice", 17, "");
    }

    proptest! {
        #[test]
        fn an_excerpt_never_exceeds_its_room(text in any::<String>(), from in 0usize..40, len in 0usize..20, max_bytes in 0usize..60) {
            let excerpt = Excerpt::new(&text, from..from + len);
            prop_assert!(json_len(&shorten(&excerpt, max_bytes)) <= max_bytes);
            prop_assert!(json_len(&shorten(&excerpt.with_label(&text), max_bytes)) <= max_bytes);
        }

        #[test]
        fn an_excerpt_keeps_its_match_when_there_is_room(before in "[a-z ]{0,90}", after in "[a-z ]{0,90}") {
            let text = format!("{before}MATCH{after}");
            let short = shorten(&Excerpt::new(&text, before.len()..before.len() + 5), 40);
            prop_assert!(short.contains("MATCH"), "{short}");
        }
    }
}
