//! Finds sequences of words in a text, such as `set up` for an excerpt.

use std::ops::Range;

/// Sequences to find, each of folded words.
#[derive(Debug, Default)]
pub(crate) struct WordSequences(Vec<Vec<String>>);

/// Search for sequences in one text.
#[derive(Debug)]
pub(crate) struct SequenceFinder<'a> {
    sequences: Vec<(&'a [String], Option<Beginning>)>,
}

/// First words of a sequence that a text has.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    words: usize,
    start: usize,
    position: usize,
}

impl WordSequences {
    /// Adds a sequence. It has the number of those before it.
    pub(crate) fn add(&mut self, words: Vec<String>) {
        self.0.push(words);
    }

    /// Returns the first word of each sequence.
    pub(crate) fn first_words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|words| words.first()).map(String::as_str)
    }

    /// Begins the search in a text.
    pub(crate) fn finder(&self) -> SequenceFinder<'_> {
        SequenceFinder { sequences: self.0.iter().map(|words| (words.as_slice(), None)).collect() }
    }
}

impl SequenceFinder<'_> {
    /// Takes the next word of the text, with its ordinal and place. Returns the number and the place of a sequence that it ends.
    pub(crate) fn take(
        &mut self,
        folded: &str,
        position: usize,
        range: &Range<usize>,
    ) -> Option<(usize, Range<usize>)> {
        let mut ended = None;
        for (number, (words, found)) in self.sequences.iter_mut().enumerate() {
            let next = found.filter(|known| position == known.position + 1);
            let longer = next
                .filter(|known| words.get(known.words).is_some_and(|word| word == folded))
                .map(|known| Beginning { words: known.words + 1, position, ..known });
            let begins = words.first().is_some_and(|word| word == folded);
            let begun = begins.then_some(Beginning { words: 1, start: range.start, position });
            if let Some(reached) = longer.or(begun) {
                *found = Some(reached);
                if reached.words == words.len() {
                    ended = ended.or(Some((number, reached.start..range.end)));
                    *found = begun;
                }
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::words::words;

    #[test]
    fn sequences_are_found_where_their_words_follow_each_other() {
        let mut sequences = WordSequences::default();
        sequences.add(vec!["set".to_owned(), "up".to_owned()]);
        sequences.add(vec!["555".to_owned(), "123".to_owned(), "4567".to_owned()]);
        for (text, expect) in [
            ("Please set up the set, up", &["set up", "set, up"][..]),
            ("set it up", &[]),
            ("setUp now", &["setUp"]),
            ("set set up", &["set up"]),
            ("call (555) 123-4567 or 555 123 99", &["555) 123-4567"]),
        ] {
            let mut finder = sequences.finder();
            let found =
                words(text).filter_map(|word| finder.take(&word.folded(text), word.position, &word.range));
            let found: Vec<&str> = found.filter_map(|(_, range)| text.get(range)).collect();
            assert_eq!(found, expect, "{text}");
        }
    }
}
