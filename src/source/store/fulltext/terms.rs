//! Parses the text of a search into terms.
//!
//! There is no query syntax: `AND`, `*`, quotes and brackets are plain text. The query is split at white space, and
//! each piece is a phrase: its words must follow each other (`user_123` is `user` followed by `123`).

use std::collections::HashSet;

use super::words::{WordKind, words};

/// White-space-separated piece of a query: its terms, each with its distance from the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Phrase(pub(in crate::source::store) Vec<(usize, String)>);

/// Returns the phrases of a query without duplicates.
pub(super) fn phrases(query: &str) -> Vec<Phrase> {
    let mut phrases: Vec<Phrase> = Vec::new();
    for piece in query.split_whitespace() {
        let phrase = phrase(piece);
        if !phrase.0.is_empty() && !phrases.contains(&phrase) {
            phrases.push(phrase);
        }
    }
    phrases
}

/// Returns the terms of all phrases as a set, to find them again in a text.
pub(super) fn term_set(phrases: &[Phrase]) -> HashSet<&str> {
    phrases.iter().flat_map(|phrase| &phrase.0).map(|(_, term)| term.as_str()).collect()
}

fn phrase(piece: &str) -> Phrase {
    let mut terms: Vec<(usize, String)> = Vec::new();
    let mut paired = 0;
    let mut found = words(piece).peekable();
    while let Some(word) = found.next() {
        // A character that belongs to a pair is looked up as that pair, which is rarer.
        let starts_pair = found.peek().is_some_and(|next| next.kind == WordKind::Pair);
        let in_pair = word.kind == WordKind::Single && (starts_pair || word.range.start < paired);
        if word.kind == WordKind::Pair {
            paired = word.range.end;
        }
        if !in_pair {
            terms.push((word.position, word.folded(piece)));
        }
    }
    let first = terms.first().map_or(0, |(position, _)| *position);
    for (position, _) in &mut terms {
        *position -= first;
    }
    Phrase(terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expect: &[&[(usize, &str)]]) {
        let found = phrases(query);
        let found: Vec<Vec<(usize, &str)>> = found
            .iter()
            .map(|phrase| phrase.0.iter().map(|(at, term)| (*at, term.as_str())).collect())
            .collect();
        assert_eq!(found, expect, "{query}");
    }

    #[test]
    fn operators_are_text() {
        check(
            "invoice AND \"paid\" NOT* (x",
            &[&[(0, "invoice")], &[(0, "and")], &[(0, "paid")], &[(0, "not")], &[(0, "x")]],
        );
        check("a OR a", &[&[(0, "a")], &[(0, "or")]]);
        check("*** \"\" ()", &[]);
    }

    #[test]
    fn adjacent_words_form_a_phrase() {
        check("user_123 a@b.c", &[&[(0, "user"), (1, "123")], &[(0, "a"), (1, "b"), (2, "c")]]);
    }

    #[test]
    fn unspaced_text_is_looked_up_by_its_pairs() {
        check("東", &[&[(0, "東")]]);
        check("東京", &[&[(0, "東京")]]);
        check("東京都庁", &[&[(0, "東京"), (1, "京都"), (2, "都庁")]]);
        check("iPhone用", &[&[(0, "iphone"), (1, "用")]]);
        check("用iPhoneケース", &[&[(0, "用"), (1, "iphone"), (2, "ケー"), (3, "ース")]]);
    }
}
