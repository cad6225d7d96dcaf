//! Adjacent words of a query that texts may write as one: `set up`, `wi fi`, `RFC 2119`, the groups of a phone number.
//!
//! Only words of these kinds are joined, so that other queries look up no more words than they have.

use std::ops::Range;

use crate::lexical::understanding::request_words::is_listed;

/// Words that form nouns with the verb before them.
pub(super) const PARTICLES: [&str; 10] =
    ["up", "in", "out", "off", "on", "down", "over", "back", "away", "through"];

/// Maximum length of a verb before a particle, of letters beside a number and of the number, in bytes.
const MAX_VERB: usize = 8;
const MAX_LETTERS: usize = 8;
const MAX_DIGITS: usize = 6;

/// Maximum length in bytes of each of two short words.
const MAX_SHORT: usize = 3;

/// Letters that are the first part of a word: `e mail`, `x ray`.
const FIRST_LETTERS: [&str; 5] = ["e", "t", "u", "v", "x"];

/// Digits of a number that is written in groups.
const GROUPED_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// Maximum number of groups of a number.
const MAX_GROUPS: usize = 6;

/// Returns true if texts may write two folded words as one.
pub(crate) fn are_joined(first: &str, second: &str) -> bool {
    if has_letters(first) && has_digits(second) || has_digits(first) && has_letters(second) {
        return first.len().min(second.len()) <= MAX_DIGITS && first.len().max(second.len()) <= MAX_LETTERS;
    }
    if !has_letters(first) || !has_letters(second) {
        return false;
    }
    let are_short = first.len().max(second.len()) <= MAX_SHORT && first.len().min(second.len()) > 1;
    (2..=MAX_VERB).contains(&first.len()) && PARTICLES.contains(&second)
        || are_short && !is_listed(first) && !is_listed(second)
        || FIRST_LETTERS.contains(&first) && second.len() > MAX_SHORT
}

/// Returns true if texts that have the words as one hardly mean anything else: not for two short words (`git hub`).
pub(crate) fn are_certain(words: &[&str]) -> bool {
    words.iter().any(|word| has_digits(word)) || words.last().is_some_and(|last| PARTICLES.contains(last))
}

/// Returns the sequences of groups of digits among folded words that may be one number.
pub(crate) fn grouped_numbers(words: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for start in 0..words.len() {
        let mut length = 0;
        for (end, word) in words.iter().enumerate().skip(start).take(MAX_GROUPS) {
            length += word.len();
            if !has_digits(word) || length > *GROUPED_DIGITS.end() {
                break;
            }
            if end > start && GROUPED_DIGITS.contains(&length) {
                found.push(start..end + 1);
            }
        }
    }
    found
}

fn has_letters(word: &str) -> bool {
    !word.is_empty() && word.chars().all(char::is_alphabetic)
}

fn has_digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_some_kinds_are_joined() {
        for (first, second) in [
            ("set", "up"),
            ("wi", "fi"),
            ("rfc", "2119"),
            ("covid", "19"),
            ("10", "km"),
            ("e", "mail"),
            ("follow", "up"),
        ] {
            assert!(are_joined(first, second), "{first} {second}");
        }
        for (first, second) in [
            ("harbour", "lease"),
            ("2025", "03"),
            ("to", "be"),
            ("a", "house"),
            ("up", "set"),
            ("rfc2", "11"),
            ("invoicing", "12"),
            ("web", "socket"),
            ("the", "who"),
        ] {
            assert!(!are_joined(first, second), "{first} {second}");
        }
    }

    #[test]
    fn groups_of_a_number_are_sequences_of_digits() {
        assert_eq!(grouped_numbers(&["call", "555", "123", "4567", "now"]), [1..4, 2..4]);
        assert_eq!(grouped_numbers(&["22", "33", "44", "55"]), vec![0..4]);
        for words in [&["2025", "03"][..], &["5551234567"], &["555", "a", "4567"], &[]] {
            assert!(grouped_numbers(words).is_empty(), "{words:?}");
        }
    }
}
