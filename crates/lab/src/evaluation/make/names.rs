//! Questions of identifiers: paths, hashes, versions, addresses, and parts of names in camel case.

use super::corpus::{Corpus, IndexedRecord};
use super::draft::Draft;
use super::words::{fold, words};
use crate::evaluation::random::Random;

/// Lengths of an identifier in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 5..=80;

/// Number of characters of a hash that are asked for, as version control prints it.
const HASH_CHARS: usize = 8;

/// Minimum number of characters of a part of a name.
const MIN_PART_CHARS: usize = 3;

/// Asks for an identifier as it is written, or for the beginning of a hash.
pub(super) fn identifier(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let record = corpus.records.get(number)?;
    let mut names: Vec<&str> = record.record.texts.iter().flat_map(|text| identifiers(text)).collect();
    names.sort_unstable();
    names.dedup();
    let name = *random.choose(&names)?;
    let name = if is_hash(name) { name.get(..HASH_CHARS)? } else { name };
    let has_name = |each: &usize| {
        let has_it = |text: &String| identifiers(text).any(|other| other == name || is_hash_of(other, name));
        corpus.records.get(*each).is_some_and(|record| record.record.texts.iter().any(has_it))
    };
    // The last word may be the beginning of one.
    let mut known: Vec<usize> = words(name).filter_map(|word| corpus.number(&fold(word))).collect();
    if known.len() > 1 {
        known.pop();
    }
    let candidates = if known.is_empty() || is_hash_start(name) {
        (0..corpus.records.len()).collect()
    } else {
        corpus.with_all(&known)
    };
    Some(Draft { query: name.to_owned(), relevant: candidates.into_iter().filter(has_name).collect() })
}

/// Returns the pieces of a text that are identifiers: they have a separator or digit within letters.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |character: char| {
        character.is_whitespace() || "\"'`()[]{}<>,;|=*!?".contains(character) || !character.is_ascii()
    };
    text.split(is_between)
        .map(|piece| piece.trim_matches(|character: char| ".:-/#&$%~+\\".contains(character)))
        .filter(|piece| LENGTHS.contains(&piece.len()) && is_identifier(piece))
}

fn is_identifier(piece: &str) -> bool {
    let has_letter = piece.bytes().any(|byte| byte.is_ascii_alphabetic());
    let has_digit = piece.bytes().any(|byte| byte.is_ascii_digit());
    let has_separator = piece.contains(['_', '@']) || piece.contains("::") || piece.matches('/').count() > 1;
    let is_version =
        piece.matches('.').count() >= 2 && piece.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_url = piece.contains("://");
    !is_url && (has_letter && (has_digit || has_separator) || is_version)
}

/// Returns true for a hexadecimal hash in full.
fn is_hash(name: &str) -> bool {
    name.len() >= 32 && is_hash_start(name)
}

fn is_hash_start(name: &str) -> bool {
    name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && name.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_hash_of(hash: &str, start: &str) -> bool {
    start.len() == HASH_CHARS && is_hash(hash) && hash.starts_with(start)
}

/// Asks for two parts of a name in camel case that the record has nowhere else, and a word of the topic.
pub(super) fn camel_part(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let record = corpus.records.get(number)?;
    let topic = *corpus.topic(number, 1, 2, random)?.first()?;
    let names: Vec<Vec<String>> = camel_names(record).collect();
    let parts = random.choose(&names)?;
    let at = random.below(parts.len() - 1);
    let pair = parts.get(at..at + 2)?;
    let is_word_of = |part: &String, each: usize| {
        corpus.number(part).is_some_and(|word| corpus.with(word).binary_search(&each).is_ok())
    };
    if pair.iter().any(|part| part == corpus.word(topic)) || pair.iter().all(|part| is_word_of(part, number))
    {
        return None;
    }
    let has_pair = |each: &usize| {
        let has_words = pair.iter().all(|part| is_word_of(part, *each));
        let has_name =
            |record| camel_names(record).any(|parts| parts.windows(2).any(|window| window == pair));
        has_words || corpus.records.get(*each).is_some_and(has_name)
    };
    let relevant = corpus.with(topic).iter().copied().filter(has_pair).collect();
    Some(Draft { query: format!("{} {}", pair.join(" "), corpus.word(topic)), relevant })
}

/// Returns the parts of each name in camel case of a record.
fn camel_names(record: &IndexedRecord) -> impl Iterator<Item = Vec<String>> {
    let texts = record.record.texts.iter().flat_map(|text| words(text));
    texts.filter(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic())).filter_map(camel_parts)
}

/// Returns the parts of a name such as `parseConfigFile`, or `None` for another word.
fn camel_parts(word: &str) -> Option<Vec<String>> {
    let mut parts: Vec<String> = Vec::new();
    for letter in word.chars() {
        match parts.last_mut() {
            Some(part) if letter.is_ascii_lowercase() => part.push(letter),
            _ => parts.push(letter.to_ascii_lowercase().to_string()),
        }
    }
    (parts.len() > 1 && parts.iter().all(|part| part.len() >= MIN_PART_CHARS)).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_a_separator_or_a_digit() {
        let text = "See src/main.rs/x, `user_123@mail.example`: INV-2041 and 1.24.0. The plain words, 2026 and \
            https://a.test/x1 are none; std::fs::read is.";
        let found: Vec<&str> = identifiers(text).collect();
        let expect = ["src/main.rs/x", "user_123@mail.example", "INV-2041", "1.24.0", "std::fs::read"];
        assert_eq!(found, expect);
    }

    #[test]
    fn names_in_camel_case_have_parts() {
        assert_eq!(camel_parts("parseConfigFile").unwrap(), ["parse", "config", "file"]);
        assert_eq!(camel_parts("HashMap"), Some(vec!["hash".to_owned(), "map".to_owned()]));
        assert_eq!(camel_parts("README"), None);
        assert_eq!(camel_parts("Word"), None);
    }
}
