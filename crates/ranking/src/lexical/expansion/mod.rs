//! Looks up the words of a query in the vocabulary of an index, with the words that stand for them.
//!
//! A word has its other forms beside it (`invoices` for `invoice`). A word that no record has is replaced: by its
//! forms, or else by words with one edit or with that beginning. A word that texts may write as several words is looked up as
//! a sequence of these, too. Only words of records in the scope of the search
//! count, so that other records change nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fetchwell_core::fit::characters;

use super::compounds::{groups, halves, possible_groups};
use super::ranking::WordMatches;
use super::stems::{Inflection, edits_at_beginning, is_one_edit};
use super::terms::{QueryTerms, Slot};
use super::understanding::request_words::is_listed;
pub use super::vocabulary::Alternative;
use super::vocabulary::Vocabulary;
use super::words::{UNDERSCORE, WordKind};

/// Quality of another form of a word that records have.
pub(super) const FORM_QUALITY: f32 = 0.6;

/// Quality of another form of a word that no record has.
pub(super) const ONLY_FORM_QUALITY: f32 = 0.9;

/// Quality of a word with one edit.
const EDIT_QUALITY: f32 = 0.7;

/// The same if other words begin with the word, which may be the beginning of one.
const EDIT_BESIDE_QUALITY: f32 = 0.5;

/// Quality of a word that a misspelt word begins with, such as `comm` for `commn`. Letters are left out more often than a
/// letter too many is typed at the end, so `common` comes before it.
const SHORTER_QUALITY: f32 = 0.5;

/// Quality of a word that begins with a word that no record has.
const PREFIX_QUALITY: f32 = 0.7;

/// Importance of a part of an identifier beside the identifier.
pub(super) const PART_WEIGHT: f32 = 0.25;

/// Importance of an identifier as it is written beside its words.
const JOINED_WEIGHT: f32 = 0.5;

/// The same beside its rarest word, if its words are joined by underscores.
const IDENTIFIER_WEIGHT: f32 = 0.75;

/// Quality of a word in another spelling: `set up` for `setup`, and the other way round.
pub(super) const SPELLING_QUALITY: f32 = 0.9;

/// The same for adjacent words of a query in a record that has them as one, and for the words that a word of no record is
/// separated into.
pub(super) const ADJACENT_QUALITY: f32 = 0.6;
const SEPARATED_QUALITY: f32 = 0.6;

/// Maximum number of sequences that a word is looked up as.
const MAX_SEQUENCES: usize = 3;

/// Maximum number of records that have each word of a sequence. Positions of the words are read in as many.
const MAX_SEQUENCE_RECORDS: u64 = 20_000;
/// Share of a word of requests, in any language, beside other words in the coverage of a query. Such a word tells little about
/// what is meant also where it is not known to ask, as in `where was the lease mentioned`.
const LISTED_SHARE: f32 = 0.2;

/// Maximum number of words of a query that are looked up in records: the rarest ones.
pub(super) const MAX_WORDS: usize = 32;

/// Maximum number of words of a query of which each has up to [`MAX_FORMS`] other forms; words of longer queries have
/// one.
const MAX_WORDS_WITH_ALL_FORMS: usize = 6;

/// Maximum number of words of a query that no record has and that are replaced.
const MAX_REPLACED: usize = 8;

/// Maximum number of words of a query that are looked up by their other forms: the rarest ones.
const MAX_INFLECTED: usize = 8;

/// Maximum number of other forms of a word, the most frequent ones.
const MAX_FORMS: usize = 4;

/// Maximum number of words with one edit that replace a word that no record has.
const MAX_REPLACEMENTS: usize = 5;

/// Maximum number of words that begin with a word that no record has.
const MAX_BEGINNINGS: usize = 24;

/// Minimum length in characters of a word that is replaced if no record has it.
const MIN_REPLACED: usize = 4;

/// Number of characters at the beginning of a misspelt word of which every edit is looked up. Words that differ later
/// are found by this beginning.
const EDITED_BEGINNING: usize = 3;

/// Maximum number of words that are looked up in the scope to find those that stand for one word of a query, the most
/// frequent ones.
const MAX_CHECKED: usize = 500;

/// Share of the records from which on a word is so common that its other forms are not looked up.
const COMMON_SHARE: u64 = 10;

/// Number of words of a query from which on the places of very common words are not compared.
const MANY_WORDS: usize = 6;

/// Share of the records from which on a word is very common.
const VERY_COMMON_SHARE: u64 = 4;

/// Word of a query with what stands for it in the index.
#[derive(Debug, Clone, PartialEq)]
pub struct Lookup {
    pub(crate) kind: WordKind,
    /// Words of the index, the word itself first; none if no record matches.
    pub alternatives: Vec<Alternative>,
    /// Rarity of the word, times the importance of its kind and its share.
    pub weight: f32,
    /// Importance beside a word that the query is about, 0 to 1: less for a word of a request or date.
    pub share: f32,
    /// Share of its weight that it has in the coverage of the query: less for a word of requests.
    pub(crate) share_of_coverage: f32,
}

impl Lookup {
    /// Returns what is known about a slot of a query. `weight` is its rarity, times the importance of its kind and its share.
    pub(crate) fn new(slot: &Slot, alternatives: Vec<Alternative>, weight: f32) -> Self {
        let share_of_coverage = if is_listed(&slot.text) { LISTED_SHARE } else { 1.0 };
        Self { kind: slot.kind, alternatives, weight, share: slot.share(), share_of_coverage }
    }

    /// Returns true for a word that the query is about.
    pub fn is_matter(&self) -> bool {
        self.share >= 1.0
    }

    /// Returns true for a word of the query, and not for one that stands for several of its words.
    pub fn is_word(&self) -> bool {
        !matches!(self.kind, WordKind::Joined | WordKind::Adjacent | WordKind::Underscore)
    }

    /// Returns true for a word that selects records and is shown in them. Underscores only tell where words are joined.
    pub fn selects(&self) -> bool {
        self.kind != WordKind::Underscore
    }

    /// Returns the weight of the word in the score of a record. A word that only selects records has none.
    pub(crate) fn ranked_weight(&self) -> f32 {
        if self.kind == WordKind::Adjacent { 0.0 } else { self.weight }
    }

    /// Returns the weight of the word in the coverage of the query.
    fn covered_weight(&self) -> f32 {
        self.ranked_weight() * self.share_of_coverage
    }
}

/// Words that stand for a word of the query where they follow each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    /// Number of the word of the query.
    pub slot: usize,
    /// Words to look up, folded and in order.
    pub words: Vec<String>,
    /// Quality of the match.
    pub quality: f32,
    /// Maximum number of records that have the sequence.
    pub frequency: u64,
}

/// Words of a query, looked up in an index.
#[derive(Debug, Clone, Default)]
pub struct Lookups {
    /// Lookup of each slot of the query.
    pub words: Vec<Lookup>,
    /// Sequences that stand for words of the query.
    pub sequences: Vec<Sequence>,
    /// Number of records in the index.
    pub(crate) records: u64,
}

impl Lookups {
    /// Returns the rarity of a word that so many records have (inverse document frequency).
    pub fn rarity(&self, frequency: u64) -> f32 {
        rarity(frequency, self.records)
    }

    /// Returns the greatest weight of a word that the query is about; of any word if it is about none.
    pub(crate) fn strongest(&self) -> f32 {
        let greatest = |is_counted: fn(&Lookup) -> bool| {
            self.words
                .iter()
                .filter(|word| word.is_word() && is_counted(word))
                .map(|word| word.weight)
                .fold(0.0, f32::max)
        };
        let of_matter = greatest(Lookup::is_matter);
        if of_matter > 0.0 { of_matter } else { greatest(|_| true) }
    }

    /// Returns true if the places of a word are compared. In a long query, those of very common words tell little.
    pub fn has_places(&self, alternative: &Alternative) -> bool {
        let words = self.words.iter().filter(|word| word.is_word()).count();
        words < MANY_WORDS
            || alternative.text == UNDERSCORE
            || alternative.frequency <= self.records / VERY_COMMON_SHARE
    }

    /// Returns the share of the query's rarity that a record has, 0 to 1, in which words of requests count less.
    pub(crate) fn coverage(&self, matches: &[WordMatches]) -> f32 {
        self.covered(matches.iter().map(|matches| matches.quality))
    }

    /// Returns the greatest coverage that a record can have, with the words that some record has.
    pub(crate) fn possible_coverage(&self) -> f32 {
        let qualities = self.words.iter().enumerate().map(|(slot, word)| {
            let sequences = self.sequences.iter().filter(|sequence| sequence.slot == slot);
            let qualities = word.alternatives.iter().map(|alternative| alternative.quality);
            let qualities = qualities.chain(sequences.map(|sequence| sequence.quality));
            // An identifier is found by its underscores.
            let by_underscores = if word.kind == WordKind::Joined { 1.0 } else { 0.0 };
            qualities.fold(by_underscores, f32::max)
        });
        self.covered(qualities)
    }

    /// Returns the coverage by words with these qualities.
    fn covered(&self, qualities: impl Iterator<Item = f32>) -> f32 {
        let total: f32 = self.words.iter().map(Lookup::covered_weight).sum();
        let covered = self.words.iter().zip(qualities).map(|(word, quality)| word.covered_weight() * quality);
        if total > 0.0 { covered.sum::<f32>() / total } else { 0.0 }
    }

    /// Returns the number of different words of the query, with those that no record has. Parts of a word in camel case do not
    /// count, and of a script without spaces two characters are a word.
    pub(crate) fn word_count(&self) -> usize {
        let of_kind = |kind: WordKind| self.words.iter().filter(|word| word.kind == kind).count();
        let characters = of_kind(WordKind::Single) + of_kind(WordKind::Pair);
        of_kind(WordKind::Spaced) + characters.div_ceil(2)
    }

    /// Returns true if the query has a number of two digits or more, such as a year, that some record has.
    pub(crate) fn has_number(&self) -> bool {
        let is_number = |text: &str| text.chars().all(char::is_numeric) && text.chars().nth(1).is_some();
        let itself = |word: &Lookup| {
            word.alternatives.first().is_some_and(|first| first.quality >= 1.0 && is_number(&first.text))
        };
        self.words.iter().any(itself)
    }
}

/// Finds the words of the index that stand for words of a query.
struct Expansion<'a, V> {
    vocabulary: &'a V,
    records: u64,
}

/// Looks up the words of a query.
pub fn look_up<V: Vocabulary>(vocabulary: &V, terms: &QueryTerms) -> Result<Lookups, V::Error> {
    let expansion = Expansion { vocabulary, records: vocabulary.records() };
    let mut words = Vec::with_capacity(terms.slots.len());
    for slot in &terms.slots {
        let is_in_scope = vocabulary.is_in_scope(&slot.text)?;
        words.push((slot, if is_in_scope { vocabulary.frequency(&slot.text)? } else { 0 }));
    }
    let mut rarest: Vec<u64> =
        words.iter().map(|(_, frequency)| *frequency).filter(|frequency| *frequency > 0).collect();
    rarest.sort_unstable();
    let limit = rarest.get(MAX_WORDS).copied().unwrap_or(u64::MAX);
    let inflected = rarest.get(MAX_INFLECTED).copied().unwrap_or(u64::MAX);
    let matter = words.iter().filter(|(slot, _)| slot.is_matter() && !slot.is_joined()).count();
    let max_forms = if matter <= MAX_WORDS_WITH_ALL_FORMS { MAX_FORMS } else { 1 };
    let (mut kept, mut replaced) = (0, 0);
    let mut lookups = Vec::with_capacity(words.len());
    let mut sequences = Vec::new();
    for (number, (slot, frequency)) in words.into_iter().enumerate() {
        let mut alternatives = Vec::new();
        // Other forms of words of a request are as unimportant as these.
        let has_forms = matches!(slot.kind, WordKind::Spaced | WordKind::Part) && slot.is_matter();
        if frequency == 0 && has_forms && replaced < MAX_REPLACED {
            replaced += 1;
            alternatives.extend(expansion.others(&slot.text, frequency, max_forms)?);
        } else if frequency > 0 && frequency <= limit && kept < MAX_WORDS {
            kept += 1;
            alternatives.push(Alternative { text: slot.text.clone(), quality: 1.0, frequency });
            if frequency <= inflected && has_forms {
                alternatives.extend(expansion.others(&slot.text, frequency, max_forms)?);
            }
        }
        let of_word = if slot.kind == WordKind::Spaced && slot.is_matter() && number < MAX_WORDS {
            expansion.sequences(number, &slot.text, frequency > 0)?
        } else {
            Vec::new()
        };
        let importance = importance(slot);
        let max_frequency = alternatives.iter().map(|alternative| alternative.frequency).max();
        let max_frequency =
            max_frequency.or(of_word.iter().map(|sequence| sequence.frequency).max()).unwrap_or(0);
        sequences.extend(of_word);
        let is_looked_up = frequency > 0 && !alternatives.is_empty();
        let known = if is_looked_up { frequency } else { max_frequency };
        let weight = if known > 0 { rarity(known, expansion.records) * importance } else { 0.0 };
        lookups.push(Lookup::new(slot, alternatives, weight));
    }
    weigh_identifiers(terms, &mut lookups);
    Ok(Lookups { words: lookups, sequences, records: expansion.records })
}

/// Gives an identifier with underscores a weight by its rarest word, whether or not records have it as one word.
fn weigh_identifiers(terms: &QueryTerms, lookups: &mut [Lookup]) {
    for joined in terms.joined.iter().filter(|joined| joined.underscore.is_some()) {
        let parts = joined.parts.iter().filter_map(|part| lookups.get(*part));
        let weights = parts
            .map(|part| if part.kind == WordKind::Part { part.weight / PART_WEIGHT } else { part.weight });
        let rarest = weights.fold(0.0, f32::max);
        if let Some(lookup) = lookups.get_mut(joined.slot) {
            lookup.weight = lookup.weight.max(rarest * IDENTIFIER_WEIGHT);
        }
    }
}

/// Returns the importance of a slot beside a word that the query is about.
pub(super) fn importance(slot: &Slot) -> f32 {
    match slot.kind {
        WordKind::Part => PART_WEIGHT,
        WordKind::Joined => JOINED_WEIGHT * slot.share(),
        WordKind::Underscore => 0.0,
        _ => slot.share(),
    }
}

/// Adds the words that are not there yet.
fn add_new(known: &mut Vec<Alternative>, others: Vec<Alternative>) {
    for other in others {
        if !known.iter().any(|each| each.text == other.text) {
            known.push(other);
        }
    }
}

/// Returns the inverse document frequency of a word.
#[expect(clippy::cast_precision_loss, reason = "a logarithm of numbers of records")]
fn rarity(frequency: u64, records: u64) -> f32 {
    let (frequency, records) = (frequency as f32, records.max(frequency) as f32);
    (1.0 + (records - frequency + 0.5) / (frequency + 0.5)).ln()
}

impl<V: Vocabulary> Expansion<'_, V> {
    /// Returns the words that stand for a word: its other forms, or replacements if no record in scope has it.
    fn others(&self, word: &str, frequency: u64, max_forms: usize) -> Result<Vec<Alternative>, V::Error> {
        self.vocabulary.known_or(word, max_forms, || self.find_others(word, frequency, max_forms))
    }

    fn find_others(
        &self,
        word: &str,
        frequency: u64,
        max_forms: usize,
    ) -> Result<Vec<Alternative>, V::Error> {
        if frequency > 1_000 && frequency > self.records / COMMON_SHARE {
            return Ok(Vec::new());
        }
        let forms = match Inflection::new(word) {
            Some(inflection) => {
                // Segments have the same words, and each is stemmed once.
                let lengths = 0..=inflection.longest();
                let mut found = self
                    .vocabulary
                    .beginning_with(inflection.prefix(), lengths, |other| inflection.may_be_form(other))?;
                found.retain(|other, _| inflection.is_form(other));
                found
            }
            None => BTreeMap::new(),
        };
        if frequency > 0 {
            return self.most_frequent(forms, max_forms, FORM_QUALITY);
        }
        let mut others = self.most_frequent(forms, MAX_FORMS, ONLY_FORM_QUALITY)?;
        if word.chars().count() < MIN_REPLACED {
            return Ok(others);
        }
        let edits = if others.is_empty() { self.edits(word)? } else { BTreeMap::new() };
        let longer = self.vocabulary.beginning_with(word, 0..=usize::MAX, |other| other != word)?;
        let longer = self.most_frequent(longer, MAX_BEGINNINGS, PREFIX_QUALITY)?;
        let quality = if longer.is_empty() { EDIT_QUALITY } else { EDIT_BESIDE_QUALITY };
        let mut edits = self.most_frequent(edits, MAX_REPLACEMENTS, quality)?;
        add_new(&mut others, longer);
        for shorter in edits.iter_mut().filter(|edit| word.starts_with(&edit.text)) {
            shorter.quality = SHORTER_QUALITY;
        }
        add_new(&mut others, edits);
        Ok(others)
    }

    /// Returns the sequences of words that stand for a word. Of many, those with the most frequent words are taken, and those of
    /// numbers with the fewest groups.
    fn sequences(&self, slot: usize, word: &str, is_known: bool) -> Result<Vec<Sequence>, V::Error> {
        let halves = halves(word, is_known);
        let parts: Vec<&str> = halves.iter().flatten().copied().chain(possible_groups(word)).collect();
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let parts: Vec<String> = parts.into_iter().map(str::to_owned).collect();
        let is_number = word.bytes().any(|byte| byte.is_ascii_digit());
        self.vocabulary.prepare_lookups(&parts)?;
        let is_in_scope = |part: &str| self.vocabulary.is_in_scope(part);
        let mut found = Vec::new();
        let halves = halves.iter().map(<[&str; 2]>::as_slice);
        let groups = groups(word, &is_in_scope, MAX_SEQUENCES)?;
        for words in halves.chain(groups.iter().map(Vec::as_slice)) {
            let mut frequency = u64::MAX;
            for part in words {
                let is_known = is_in_scope(part)?;
                frequency = frequency.min(if is_known { self.vocabulary.frequency(part)? } else { 0 });
            }
            if (1..=MAX_SEQUENCE_RECORDS).contains(&frequency) {
                let words = words.iter().map(|part| (*part).to_owned()).collect();
                let quality = if is_known || is_number { SPELLING_QUALITY } else { SEPARATED_QUALITY };
                found.push(Sequence { slot, words, quality, frequency });
            }
        }
        if groups.is_empty() {
            found.sort_by_key(|sequence| Reverse(sequence.frequency));
        }
        found.truncate(MAX_SEQUENCES);
        Ok(found)
    }

    /// Returns the words that differ from a word by one edit. A word with a digit has none: its neighbours are other
    /// numbers, not other spellings.
    fn edits(&self, word: &str) -> Result<BTreeMap<String, u64>, V::Error> {
        if word.bytes().any(|byte| byte.is_ascii_digit()) {
            return Ok(BTreeMap::new());
        }
        let count = EDITED_BEGINNING.min(word.chars().count() / 2);
        let beginning = characters(word, 0, count);
        let lengths = word.len().saturating_sub(4)..=word.len() + 4;
        let mut found = self.vocabulary.beginning_with(beginning, lengths.clone(), |other| {
            lengths.contains(&other.len()) && is_one_edit(word, other)
        })?;
        let edits = edits_at_beginning(word, count);
        self.vocabulary.prepare_lookups(&edits)?;
        for edit in edits {
            let frequency = self.vocabulary.frequency(&edit)?;
            if frequency > 0 {
                found.insert(edit, frequency);
            }
        }
        Ok(found)
    }

    /// Returns the most frequent of some words that records in scope have.
    fn most_frequent(
        &self,
        words: BTreeMap<String, u64>,
        count: usize,
        quality: f32,
    ) -> Result<Vec<Alternative>, V::Error> {
        let mut words: Vec<(String, u64)> = words.into_iter().collect();
        words.sort_by(|(one, count), (other, than)| than.cmp(count).then_with(|| one.cmp(other)));
        let mut found = Vec::with_capacity(count);
        for (text, frequency) in words.into_iter().take(MAX_CHECKED) {
            if found.len() == count {
                break;
            }
            if self.vocabulary.is_in_scope(&text)? {
                found.push(Alternative { text, quality, frequency });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
