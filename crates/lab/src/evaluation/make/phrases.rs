//! Questions of words in sequence, and titles.

use super::corpus::Corpus;
use super::draft::Draft;
use super::words::{fold, is_same, is_stop_word, words};
use crate::evaluation::random::Random;

/// Minimum number of words of a text from which a phrase is taken.
const MIN_TEXT_WORDS: usize = 20;

/// Minimum number of records with the words of a quoted phrase, in any order.
const MIN_WITH_WORDS: usize = 4;

/// Maximum number of words of a title that are asked for.
const MAX_TITLE_WORDS: usize = 12;

/// Asks for five words as they follow each other.
pub(super) fn phrase(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let words = sequence::<5>(corpus, number, 2, random)?;
    Some(Draft { query: corpus.text(&words), relevant: corpus.with_phrase(&words) })
}

/// Asks for three quoted words that other records have apart.
pub(super) fn quoted(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let words = sequence::<3>(corpus, number, 1, random)?;
    let is_common = corpus.with_all(&words).len() >= MIN_WITH_WORDS;
    is_common.then(|| Draft {
        query: format!("\"{}\"", corpus.text(&words)),
        relevant: corpus.with_phrase(&words),
    })
}

/// Returns words of the longest text in sequence, of which at least `meaningful` carry meaning.
fn sequence<const LENGTH: usize>(
    corpus: &Corpus,
    number: usize,
    meaningful: usize,
    random: &mut Random,
) -> Option<[usize; LENGTH]> {
    let text = &corpus.records.get(number)?.longest;
    if text.len() < MIN_TEXT_WORDS {
        return None;
    }
    let at = random.below(text.len() - LENGTH + 1);
    let words: [usize; LENGTH] = text.get(at..at + LENGTH)?.try_into().ok()?;
    let carries_meaning = |word: &&usize| {
        let text = corpus.word(**word);
        text.chars().count() > 2 && !is_stop_word(text)
    };
    let is_number = |word: &usize| corpus.word(*word).bytes().all(|byte| byte.is_ascii_digit());
    let is_phrase =
        words.iter().filter(carries_meaning).count() >= meaningful && !words.iter().any(is_number);
    is_phrase.then_some(words)
}

/// Asks for the words of a title.
pub(super) fn title(corpus: &Corpus, number: usize, _random: &mut Random) -> Option<Draft> {
    let title = corpus.records.get(number)?.record.title.as_deref()?;
    let asked: Vec<&str> = words(title).collect();
    let carries_meaning = |word: &&&str| word.chars().count() > 2 && !is_stop_word(&fold(word));
    if asked.len() > MAX_TITLE_WORDS || asked.iter().filter(carries_meaning).count() < 3 {
        return None;
    }
    let numbers: Vec<usize> = asked.iter().filter_map(|word| corpus.number(&fold(word))).collect();
    let mut relevant = corpus.with_all(&numbers);
    relevant.retain(|each| {
        let other = corpus.records.get(*each).and_then(|record| record.record.title.as_deref());
        other.is_some_and(|other| is_same(other, title))
    });
    Some(Draft { query: asked.join(" "), relevant })
}
