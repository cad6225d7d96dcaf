//! Marks the words of a query in a text.

use std::collections::HashSet;
use std::ops::Range;

use maud::{Markup, html};
use unicode_segmentation::UnicodeSegmentation;

/// Minimum length, in characters, of a word of the query that also marks longer words that begin with it.
const MIN_PREFIX_CHARS: usize = 4;

/// Words of a query.
#[derive(Debug, Clone, Default)]
pub(super) struct QueryWords(HashSet<String>);

impl QueryWords {
    /// Returns the words of a text.
    pub(super) fn new(text: &str) -> Self {
        Self(text.unicode_words().map(str::to_lowercase).collect())
    }

    /// Renders a text with marks around the words of the query. If it has none of them, `focus` is marked.
    pub(super) fn mark(&self, text: &str, focus: Range<usize>) -> Markup {
        let mut ranges: Vec<Range<usize>> = text
            .unicode_word_indices()
            .filter(|(_, word)| self.has(word))
            .map(|(start, word)| start..start + word.len())
            .collect();
        if ranges.is_empty() && text.get(focus.clone()).is_some_and(|focus| !focus.is_empty()) {
            ranges.push(focus);
        }
        let mut pieces = Vec::with_capacity(ranges.len() * 2 + 1);
        let mut end = 0;
        for range in ranges {
            pieces.push((text.get(end..range.start).unwrap_or_default(), false));
            pieces.push((text.get(range.clone()).unwrap_or_default(), true));
            end = range.end;
        }
        pieces.push((text.get(end..).unwrap_or_default(), false));
        html! {
            @for (piece, is_marked) in pieces {
                @if is_marked { mark { (piece) } } @else { (piece) }
            }
        }
    }

    fn has(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        let begins =
            |known: &String| known.chars().count() >= MIN_PREFIX_CHARS && word.starts_with(known.as_str());
        self.0.contains(&word) || self.0.iter().any(begins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, text: &str, focus: Range<usize>, expect: &str) {
        assert_eq!(QueryWords::new(query).mark(text, focus).into_string(), expect);
    }

    #[test]
    fn words_of_the_query_are_marked_and_all_text_is_escaped() {
        check(
            "Invoice due",
            "The invoices are due.",
            0..0,
            "The <mark>invoices</mark> are <mark>due</mark>.",
        );
        check(
            "b",
            "<b>a & b</b>",
            0..0,
            "&lt;<mark>b</mark>&gt;a &amp; <mark>b</mark>&lt;/<mark>b</mark>&gt;",
        );
        check("meaning", "no such word", 3..7, "no <mark>such</mark> word");
        check("", "é", 0..1, "é");
        check("пар", "пар парк", 0..0, "<mark>пар</mark> парк");
    }
}
