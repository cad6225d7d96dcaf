//! The spellings in which a phrase is looked up.
//!
//! A word in camel case takes as many places of a record as it has parts. A phrase is therefore looked up in several
//! spellings: `github actions` and `GitHub Actions` find each other.

use super::terms::{Phrase, PhraseWord};
use super::words::WordKind;

/// Maximum number of spellings of a phrase that are looked up.
const MAX_SPELLINGS: usize = 16;

/// Maximum length in bytes of a word that is looked up in camel case, too.
const MAX_SPLIT: usize = 32;

/// Minimum length in bytes of a part of a word in camel case.
const MIN_PART: usize = 2;

/// Words with the places that they take relative to the first word of a phrase.
pub type Spelling = Vec<(usize, String)>;

/// Returns the ways in which records can spell a phrase: each word plain or in camel case.
///
/// `has_word` returns true for a word that a record has.
pub fn spellings<E>(
    Phrase(words): &Phrase,
    has_word: &impl Fn(&str) -> Result<bool, E>,
) -> Result<Vec<Spelling>, E> {
    // Each spelling with the place of its next word.
    let mut spellings: Vec<(Spelling, usize)> = vec![(Vec::new(), 0)];
    for (number, word) in words.iter().enumerate() {
        let next = words.get(number + 1);
        let splits = match next {
            Some(_) if spellings.len() < MAX_SPELLINGS => camel_case_splits(word, has_word)?,
            _ => Vec::new(),
        };
        let plain_width = match next {
            Some(next) if word.parts.is_empty() => next.position - word.position,
            _ => 1,
        };
        let mut longer = Vec::new();
        for (spelling, at) in spellings {
            let with = |parts: &[String], width: usize| {
                let parts = parts.iter().enumerate().map(|(part, text)| (at + part, text.clone()));
                let whole = std::iter::once((at, word.text.clone()));
                (spelling.iter().cloned().chain(whole).chain(parts).collect(), at + width)
            };
            longer.push(with(&[], plain_width));
            longer.extend(splits.iter().map(|parts| with(parts, parts.len())));
        }
        longer.truncate(MAX_SPELLINGS);
        spellings = longer;
    }
    Ok(spellings.into_iter().map(|(spelling, _)| spelling).collect())
}

/// Returns the parts that a word may have in camel case: those that it has in the query, or else each two words of the
/// index that it consists of.
fn camel_case_splits<E>(
    word: &PhraseWord,
    has_word: &impl Fn(&str) -> Result<bool, E>,
) -> Result<Vec<Vec<String>>, E> {
    if !word.parts.is_empty() {
        return Ok(vec![word.parts.clone()]);
    }
    let mut splits = Vec::new();
    for (first, second) in possible_splits(word) {
        if has_word(first)? && has_word(second)? {
            splits.push(vec![first.to_owned(), second.to_owned()]);
        }
    }
    Ok(splits)
}

/// Returns the words that are looked up for the spellings of a phrase.
pub fn looked_up_parts(Phrase(words): &Phrase) -> impl Iterator<Item = &str> {
    words.iter().flat_map(possible_splits).flat_map(|(first, second)| [first, second])
}

/// Returns the pairs of words that a word may consist of.
fn possible_splits(word: &PhraseWord) -> impl Iterator<Item = (&str, &str)> {
    let length = word.text.len();
    let is_word = word.kind == WordKind::Spaced && word.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let can_split = is_word && word.parts.is_empty() && (2 * MIN_PART..=MAX_SPLIT).contains(&length);
    let places = if can_split { MIN_PART..length - MIN_PART + 1 } else { 0..0 };
    places.filter_map(|at| word.text.split_at_checked(at))
}
