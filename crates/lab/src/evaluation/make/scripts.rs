//! Questions of words with accents, and of scripts without spaces between words.

use super::corpus::Corpus;
use super::draft::Draft;
use super::words::{fold, is_unspaced, words};
use crate::evaluation::random::Random;

/// Minimum length in characters of words that are also asked for without their accents.
const MIN_ACCENTED_CHARS: usize = 5;

/// Minimum number of characters of a run from which a part is asked for.
const MIN_RUN_CHARS: usize = 4;

/// Asks for a word that is written with accents, without them, and a word of the topic.
pub(super) fn accents_left_out(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let record = corpus.records.get(number)?;
    let texts = record.record.texts.iter().flat_map(|text| words(text));
    let mut accented: Vec<usize> = texts
        .filter(|word| !word.is_ascii() && word.chars().count() >= MIN_ACCENTED_CHARS)
        .map(fold)
        .filter(|folded| folded.is_ascii())
        .filter_map(|folded| corpus.number(&folded))
        .collect();
    accented.sort_unstable();
    accented.dedup();
    let topic = *corpus.topic(number, 1, 2, random)?.first()?;
    let word = *random.choose(&accented)?;
    let asked = if word == topic { vec![word] } else { vec![word, topic] };
    Some(Draft { query: corpus.text(&asked), relevant: corpus.with_all(&asked) })
}

/// Asks for some characters of a run in Chinese, Japanese or Korean.
pub(super) fn cjk(corpus: &Corpus, number: usize, random: &mut Random) -> Option<Draft> {
    let record = corpus.records.get(number)?;
    let runs: Vec<Vec<char>> = record
        .record
        .texts
        .iter()
        .flat_map(|text| text.split(|character: char| !is_unspaced(character)))
        .map(|run| run.chars().collect::<Vec<char>>())
        .filter(|run| run.len() >= MIN_RUN_CHARS)
        .collect();
    let run = random.choose(&runs)?;
    let length = (MIN_RUN_CHARS + random.below(4)).min(run.len());
    let at = random.below(run.len() - length + 1);
    let query: String = run.get(at..at + length)?.iter().collect();
    let has_it = |each: &usize| {
        let texts = corpus.records.get(*each).map(|record| &record.record.texts);
        texts.is_some_and(|texts| texts.iter().any(|text| text.contains(&query)))
    };
    let relevant = (0..corpus.records.len()).filter(has_it).collect();
    Some(Draft { query, relevant })
}
