//! Records with an inverted index, in memory.

use std::collections::HashMap;

use fetchwell_core::fit::first_bytes;

use super::words::{fold, is_stop_word, words};
use crate::evaluation::random::Random;

/// Maximum number of bytes of a record that questions are made from.
const MAX_TEXT_BYTES: usize = 20_000;

/// Number of typical words of a record from which a topic is chosen.
const TYPICAL_WORDS: usize = 10;

/// Minimum number of characters of a word of a topic.
const MIN_TOPIC_CHARS: usize = 4;

/// Number in a sequence between two texts of a record.
const BOUNDARY: usize = usize::MAX;

/// The texts of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRecord {
    /// Id as a search prints it.
    pub id: String,
    /// Title of the record, if it has one.
    pub title: Option<String>,
    /// Texts of all fields, the title among them.
    pub texts: Vec<String>,
    /// Author of the record, if it has one.
    pub author: Option<String>,
    /// Day of the record as YYYY-MM-DD.
    pub day: Option<String>,
}

/// Records with the numbers of their words.
#[derive(Debug)]
pub(super) struct Corpus {
    pub(super) records: Vec<IndexedRecord>,
    /// Folded words in order. The number of a word is its place.
    vocabulary: Vec<String>,
    /// Records of each word in order.
    postings: Vec<Vec<usize>>,
}

/// A record with the numbers of its words.
#[derive(Debug)]
pub(super) struct IndexedRecord {
    pub(super) record: TextRecord,
    /// Words of all texts in order, with `BOUNDARY` between two texts.
    sequence: Vec<usize>,
    /// Words of the longest text in order.
    pub(super) longest: Vec<usize>,
}

impl Corpus {
    /// Indexes the records. Their order does not matter.
    pub(super) fn new(mut records: Vec<TextRecord>) -> Self {
        records.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut indexed = Vec::with_capacity(records.len());
        for mut record in records {
            let mut left = MAX_TEXT_BYTES;
            for text in &mut record.texts {
                text.truncate(first_bytes(text, left).len());
                left -= text.len();
            }
            let numbered: Vec<Vec<usize>> = record
                .texts
                .iter()
                .map(|text| {
                    let number = |word| {
                        let next = numbers.len();
                        *numbers.entry(fold(word)).or_insert(next)
                    };
                    words(text).map(number).collect()
                })
                .collect();
            let longest = numbered.iter().max_by_key(|text| text.len()).cloned().unwrap_or_default();
            let sequence = numbered.join(&BOUNDARY);
            indexed.push(IndexedRecord { record, sequence, longest });
        }
        Self::with_sorted_words(indexed, numbers)
    }

    /// Renumbers the words in the order of their text and makes the postings.
    fn with_sorted_words(mut records: Vec<IndexedRecord>, numbers: HashMap<String, usize>) -> Self {
        let mut entries: Vec<(String, usize)> = numbers.into_iter().collect();
        entries.sort_unstable();
        let mut renumbered = vec![0; entries.len()];
        for (place, (_, old)) in entries.iter().enumerate() {
            if let Some(new) = renumbered.get_mut(*old) {
                *new = place;
            }
        }
        let mut postings = vec![Vec::new(); entries.len()];
        for (number, record) in records.iter_mut().enumerate() {
            for word in record.sequence.iter_mut().chain(&mut record.longest) {
                *word = renumbered.get(*word).copied().unwrap_or(BOUNDARY);
            }
            for word in &record.sequence {
                if let Some(list) = postings.get_mut(*word)
                    && list.last() != Some(&number)
                {
                    list.push(number);
                }
            }
        }
        Self { records, vocabulary: entries.into_iter().map(|(word, _)| word).collect(), postings }
    }

    pub(super) fn id(&self, number: usize) -> Option<String> {
        self.records.get(number).map(|record| record.record.id.clone())
    }

    /// Returns the numbers of all records in random order, several times.
    pub(super) fn shuffled(&self, passes: usize, max_count: usize, random: &mut Random) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..self.records.len()).collect();
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, random.below(at + 1));
        }
        let all = numbers.len().saturating_mul(passes).min(max_count);
        numbers.iter().copied().cycle().take(all).collect()
    }

    /// Returns the text of a word.
    pub(super) fn word(&self, number: usize) -> &str {
        self.vocabulary.get(number).map_or("", String::as_str)
    }

    /// Returns the number of a folded word.
    pub(super) fn number(&self, word: &str) -> Option<usize> {
        self.vocabulary.binary_search_by(|known| known.as_str().cmp(word)).ok()
    }

    /// Returns a random word of the vocabulary.
    pub(super) fn random_word(&self, random: &mut Random) -> usize {
        random.below(self.vocabulary.len())
    }

    /// Returns the records of a word.
    pub(super) fn with(&self, word: usize) -> &[usize] {
        self.postings.get(word).map_or(&[], Vec::as_slice)
    }

    /// Returns the records with all of some words.
    pub(super) fn with_all(&self, words: &[usize]) -> Vec<usize> {
        let mut lists: Vec<&[usize]> = words.iter().map(|word| self.with(*word)).collect();
        lists.sort_unstable_by_key(|list| list.len());
        let Some((shortest, others)) = lists.split_first() else { return Vec::new() };
        shortest
            .iter()
            .filter(|number| others.iter().all(|list| list.binary_search(number).is_ok()))
            .copied()
            .collect()
    }

    /// Returns the records with some words in sequence.
    pub(super) fn with_phrase(&self, words: &[usize]) -> Vec<usize> {
        let has_phrase = |number: &usize| {
            let sequence = self.records.get(*number).map_or(&[][..], |record| &record.sequence);
            sequence.windows(words.len().max(1)).any(|window| window == words)
        };
        self.with_all(words).into_iter().filter(has_phrase).collect()
    }

    /// Returns the records with words that begin so.
    pub(super) fn with_beginning(&self, start: &str) -> Vec<usize> {
        let from = self.vocabulary.partition_point(|word| word.as_str() < start);
        let words = self.vocabulary.iter().skip(from).take_while(|word| word.starts_with(start));
        let mut found: Vec<usize> =
            (from..).zip(words).flat_map(|(word, _)| self.with(word)).copied().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the distinct words of a record in the order of their numbers.
    pub(super) fn distinct_words(&self, number: usize) -> Vec<usize> {
        let mut words: Vec<usize> =
            self.records.get(number).map(|record| record.sequence.clone()).unwrap_or_default();
        words.sort_unstable();
        words.dedup();
        words.retain(|word| *word != BOUNDARY);
        words
    }

    /// Returns `count` typical words of a record in the order of its text: frequent in it, rare elsewhere, but in
    /// `min_records` records or more.
    pub(super) fn topic(
        &self,
        number: usize,
        count: usize,
        min_records: usize,
        random: &mut Random,
    ) -> Option<Vec<usize>> {
        let sequence = &self.records.get(number)?.sequence;
        let max_records = (self.records.len() / 25).max(20);
        let mut counts: HashMap<usize, usize> = HashMap::new();
        sequence.iter().for_each(|word| *counts.entry(*word).or_default() += 1);
        let is_typical = |word: &usize| {
            let text = self.word(*word);
            (min_records..=max_records).contains(&self.with(*word).len())
                && text.chars().count() >= MIN_TOPIC_CHARS
                && text.chars().all(char::is_alphabetic)
                && !is_stop_word(text)
        };
        let weight = |word: usize, count: usize| count as f64 / (2.0 + self.with(word).len() as f64).sqrt();
        let mut typical: Vec<(usize, f64)> = counts
            .into_iter()
            .filter(|(word, _)| is_typical(word))
            .map(|(word, count)| (word, weight(word, count)))
            .collect();
        typical.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        typical.truncate(TYPICAL_WORDS);
        if typical.len() < count {
            return None;
        }
        let mut chosen: Vec<usize> =
            (0..count).map(|_| typical.swap_remove(random.below(typical.len())).0).collect();
        chosen.sort_unstable_by_key(|word| sequence.iter().position(|each| each == word));
        Some(chosen)
    }

    /// Joins words with spaces.
    pub(super) fn text(&self, words: &[usize]) -> String {
        words.iter().map(|word| self.word(*word)).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Corpus {
        let record = |id: &str, texts: &[&str]| TextRecord {
            id: id.to_owned(),
            title: None,
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            author: None,
            day: None,
        };
        Corpus::new(vec![
            record("b", &["The invoice is overdue", "pay now"]),
            record("a", &["overdue invoice"]),
            record("c", &["invoices"]),
        ])
    }

    #[test]
    fn records_are_found_by_words_phrases_and_beginnings() {
        let corpus = corpus();
        let numbers =
            |words: &[&str]| words.iter().map(|word| corpus.number(word).unwrap()).collect::<Vec<_>>();
        assert_eq!(corpus.with_all(&numbers(&["invoice", "overdue"])), [0, 1]);
        assert_eq!(corpus.with_phrase(&numbers(&["overdue", "invoice"])), [0]);
        assert_eq!(corpus.with_phrase(&numbers(&["overdue", "pay"])), Vec::<usize>::new());
        assert_eq!(corpus.with_beginning("invo"), [0, 1, 2]);
        assert_eq!(corpus.with_beginning("x"), Vec::<usize>::new());
        assert_eq!(corpus.text(&numbers(&["pay", "now"])), "pay now");
        assert_eq!((corpus.id(1).as_deref(), corpus.number("the b")), (Some("b"), None));
    }

    #[test]
    fn a_long_text_is_truncated() {
        let text = "é".repeat(MAX_TEXT_BYTES);
        let texts = vec![text, "lost".to_owned()];
        let record = TextRecord { id: "a".to_owned(), title: None, texts, author: None, day: None };
        let corpus = Corpus::new(vec![record]);
        assert_eq!((corpus.number("lost"), corpus.records[0].record.texts[0].len()), (None, MAX_TEXT_BYTES));
    }
}
