//! Divides the text of a search into words.
//!
//! A text has slots, which are its different words, and places, which are the slots in the order of the text. Words
//! that stand together without white space (`user_123`, a path, a text in a script without spaces) or within quotes
//! are a unit: a record that has them in sequence ranks higher.

use std::collections::HashMap;

use fetchwell_source::{SearchField, SearchText};

use super::words::{Word, WordKind, words};

/// Maximum number of places of a text that are looked at. Later words are ignored.
const MAX_PLACES: usize = 400;

/// Maximum number of units that are looked up as a whole, and of the words of one.
const MAX_UNITS: usize = 4;
const MAX_UNIT_WORDS: usize = 8;

/// Different word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Folded text of the word.
    pub text: String,
    pub(crate) kind: WordKind,
}

/// Occurrence of a slot in the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the slot.
    pub(crate) slot: usize,
    /// Ordinal of the word in the query, counted as in the text of records.
    pub(crate) position: usize,
    /// Number of the unit that the word belongs to.
    pub(crate) unit: usize,
}

/// Words that must follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase(pub Vec<PhraseWord>);

/// Word of a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhraseWord {
    /// Ordinal of the word, counted as in the text of records.
    pub position: usize,
    /// Word as it is folded.
    pub text: String,
    pub(crate) kind: WordKind,
    /// Parts of a word in camel case, in order.
    pub(crate) parts: Vec<String>,
}

/// Words of a search, ready to be looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryTerms {
    /// Words and phrases of the query, in its order.
    pub slots: Vec<Slot>,
    pub(crate) places: Vec<Place>,
    /// First units of several words, such as identifiers and quotations.
    pub units: Vec<Phrase>,
    /// Phrases that a record must contain.
    pub required: Vec<Phrase>,
    /// Phrases that a record must not contain.
    pub excluded: Vec<Phrase>,
    /// Words that the title must contain.
    pub title: Vec<String>,
    /// Words that the author must contain.
    pub from: Vec<String>,
    /// True if the text has more words than are looked at.
    is_cut: bool,
}

impl QueryTerms {
    /// Returns the note of a search that leaves words out.
    pub fn cut_note(&self) -> Option<String> {
        self.is_cut.then(|| format!("only the first {MAX_PLACES} words of the query were searched"))
    }

    /// Divides the text of a search into words. The words of required phrases and fields rank records too.
    pub fn new(text: &SearchText) -> Self {
        let mut terms = Self::default();
        let mut slots: HashMap<String, usize> = HashMap::new();
        terms.add_words(&text.words, &mut slots);
        for phrase in &text.phrases {
            terms.add_unit(phrase, &mut slots);
            terms.required.extend(Phrase::new(phrase));
        }
        terms.excluded.extend(text.excluded.iter().filter_map(|phrase| Phrase::new(phrase)));
        for field in &text.fields {
            terms.add_words(&field.text, &mut slots);
            let words = query_words(&field.text).into_iter().map(|word| word.folded(&field.text));
            match field.field {
                SearchField::Title => terms.title.extend(words),
                SearchField::From => terms.from.extend(words),
            }
        }
        terms
    }

    /// Returns true if each word is in a phrase that a record must contain.
    #[must_use]
    pub fn are_required(&self) -> bool {
        let is_required = |slot: &Slot| {
            let mut words = self.required.iter().flat_map(|Phrase(words)| words);
            words.any(|word| word.text == slot.text)
        };
        !self.slots.is_empty() && self.slots.iter().all(is_required)
    }

    /// Returns true if there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds plain text. Pieces between white space are units, and so is what stands within quotes.
    fn add_words(&mut self, text: &str, slots: &mut HashMap<String, usize>) {
        let mut rest = text;
        while let Some((before, quoted)) = rest.split_once(['"', '“', '„', '«']) {
            let Some((quoted, after)) = quoted.split_once(['"', '”', '“', '»']) else { break };
            before.split_whitespace().for_each(|piece| self.add_whole_unit(piece, slots));
            self.add_whole_unit(quoted, slots);
            rest = after;
        }
        rest.split_whitespace().for_each(|piece| self.add_whole_unit(piece, slots));
    }

    /// Adds a unit, and its phrase if it has several words.
    fn add_whole_unit(&mut self, piece: &str, slots: &mut HashMap<String, usize>) {
        self.add_unit(piece, slots);
        if self.units.len() < MAX_UNITS {
            let phrase = Phrase::new(piece);
            self.units.extend(phrase.filter(|Phrase(words)| (2..=MAX_UNIT_WORDS).contains(&words.len())));
        }
    }

    fn add_unit(&mut self, piece: &str, slots: &mut HashMap<String, usize>) {
        let unit = self.places.last().map_or(0, |place| place.unit + 1);
        let start = self.places.last().map_or(0, |place| place.position + 1);
        for word in query_words(piece) {
            if self.places.len() == MAX_PLACES {
                self.is_cut = true;
                return;
            }
            let text = word.folded(piece);
            let slot = *slots.entry(text).or_insert_with_key(|text| {
                self.slots.push(Slot { text: text.clone(), kind: word.kind });
                self.slots.len() - 1
            });
            self.places.push(Place { slot, position: start + word.position, unit });
        }
    }
}

impl Phrase {
    /// Creates the phrase of a text; returns `None` for one without words.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let mut found: Vec<PhraseWord> = Vec::new();
        for word in query_words(text) {
            match found.last_mut() {
                Some(whole) if word.kind == WordKind::Part => whole.parts.push(word.folded(text)),
                _ => {
                    let (position, text) = (word.position, word.folded(text));
                    found.push(PhraseWord { position, text, kind: word.kind, parts: Vec::new() });
                }
            }
        }
        (!found.is_empty()).then_some(Self(found))
    }
}

/// Returns the words of a text that are looked up. A character that belongs to a pair is looked up as that pair, which
/// is rarer.
fn query_words(text: &str) -> Vec<Word> {
    let mut kept = Vec::new();
    let mut paired = 0;
    let mut found = words(text).peekable();
    while let Some(word) = found.next() {
        let starts_pair = found.peek().is_some_and(|next| next.kind == WordKind::Pair);
        let in_pair = word.kind == WordKind::Single && (starts_pair || word.range.start < paired);
        if word.kind == WordKind::Pair {
            paired = word.range.end;
        }
        if !in_pair {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the words of a query, each with its position and unit.
    #[track_caller]
    fn check(query: &str, expect: &[(&str, usize, usize)]) {
        let terms = QueryTerms::new(&SearchText::plain(query));
        let found: Vec<(&str, usize, usize)> = terms
            .places
            .iter()
            .map(|place| (terms.slots[place.slot].text.as_str(), place.position, place.unit))
            .collect();
        assert_eq!(found, expect, "{query}");
    }

    #[test]
    fn operators_are_text() {
        check(
            "invoice AND paid NOT* (x",
            &[("invoice", 0, 0), ("and", 1, 1), ("paid", 2, 2), ("not", 3, 3), ("x", 4, 4)],
        );
        check("a OR a", &[("a", 0, 0), ("or", 1, 1), ("a", 2, 2)]);
        check("*** \"\" ()", &[]);
    }

    #[test]
    fn adjacent_and_quoted_words_form_a_unit() {
        check("user_123 a@b.c", &[("user", 0, 0), ("123", 1, 0), ("a", 2, 1), ("b", 3, 1), ("c", 4, 1)]);
        check("say \"good day\" now", &[("say", 0, 0), ("good", 1, 1), ("day", 2, 1), ("now", 3, 2)]);
        check("say \"good day", &[("say", 0, 0), ("good", 1, 1), ("day", 2, 2)]);
        check("parseFile x", &[("parsefile", 0, 0), ("parse", 0, 0), ("file", 1, 0), ("x", 2, 1)]);
    }

    #[test]
    fn units_of_several_words_are_phrases() {
        let text = "at user_123 parseFile \"good day\" 1.2.3.4.5.6.7.8.9 a/b c-d e.f";
        let units = QueryTerms::new(&SearchText::plain(text)).units;
        let words =
            |Phrase(words): &Phrase| -> Vec<String> { words.iter().map(|word| word.text.clone()).collect() };
        let units: Vec<Vec<String>> = units.iter().map(words).collect();
        assert_eq!(units, [["user", "123"], ["good", "day"], ["a", "b"], ["c", "d"]]);
    }

    #[test]
    fn unspaced_text_is_looked_up_by_its_pairs() {
        check("東", &[("東", 0, 0)]);
        check("東京", &[("東京", 0, 0)]);
        check("東京都庁", &[("東京", 0, 0), ("京都", 1, 0), ("都庁", 2, 0)]);
        check("iPhone用", &[("iphone", 0, 0), ("用", 1, 0)]);
        check("用iPhoneケース", &[("用", 0, 0), ("iphone", 1, 0), ("ケー", 2, 0), ("ース", 3, 0)]);
    }

    #[test]
    fn operators_of_a_parsed_text_become_phrases() {
        let text = SearchText {
            phrases: vec!["Good day".to_owned()],
            excluded: vec!["draft".to_owned()],
            ..SearchText::plain("hello")
        };
        let terms = QueryTerms::new(&text);
        assert_eq!(terms.slots.len(), 3);
        let words = |phrases: &[Phrase]| -> Vec<(usize, String)> {
            let [Phrase(words)] = phrases else { panic!("{phrases:?}") };
            words.iter().map(|word| (word.position, word.text.clone())).collect()
        };
        assert_eq!(words(&terms.required), [(0, "good".to_owned()), (1, "day".to_owned())]);
        assert_eq!(words(&terms.excluded), [(0, "draft".to_owned())]);
    }
}
