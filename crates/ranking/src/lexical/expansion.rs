//! Looks up the words of a query in the vocabulary of an index, with the words that stand for them.
//!
//! A word has its other forms beside it (`invoices` for `invoice`). A word that no record has is replaced: by its
//! forms, or else by words with one edit or with that beginning. Only words of records in the scope of the search
//! count, so that other records change nothing.

use std::collections::BTreeMap;

use fetchwell_core::fit::characters;

use super::ranking::WordMatches;
use super::stems::{Inflection, edits_at_beginning, is_one_edit};
use super::terms::{QueryTerms, Slot};
use super::understanding::request_words::is_listed;
use super::vocabulary::Vocabulary;
use super::words::WordKind;

/// Quality of another form of a word that records have.
pub(super) const FORM_QUALITY: f32 = 0.6;

/// Quality of another form of a word that no record has.
pub(super) const ONLY_FORM_QUALITY: f32 = 0.9;

/// Quality of a word with one edit.
const EDIT_QUALITY: f32 = 0.7;

/// Quality of a word that a misspelt word begins with, such as `comm` for `commn`. Letters are left out more often than a
/// letter too many is typed at the end, so `common` comes before it.
const SHORTER_QUALITY: f32 = 0.5;

/// Quality of a word that begins with a word that no record has.
const PREFIX_QUALITY: f32 = 0.7;

/// Importance of a part of an identifier beside the identifier.
pub(super) const PART_WEIGHT: f32 = 0.25;

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

/// Maximum number of replacements of a word that no record has.
const MAX_REPLACEMENTS: usize = 5;

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

/// Word of the index that stands for a word of the query.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// Word to look up, folded.
    pub text: String,
    /// Quality of the match: 1 for the word itself.
    pub quality: f32,
    /// Number of records that have the word.
    pub frequency: u64,
}

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
    /// Weight of the word in the coverage of the query: less than `weight` for a word of requests.
    pub(crate) covered_weight: f32,
}

impl Lookup {
    /// Returns what is known about a slot of a query. `weight` is its rarity, times the importance of its kind and its share.
    pub(crate) fn new(slot: &Slot, alternatives: Vec<Alternative>, weight: f32) -> Self {
        let share_of_coverage = if is_listed(&slot.text) { LISTED_SHARE } else { 1.0 };
        let covered_weight = weight * share_of_coverage;
        Self { kind: slot.kind, alternatives, weight, share: slot.share(), covered_weight }
    }

    /// Returns true for a word that the query is about.
    pub fn is_matter(&self) -> bool {
        self.share >= 1.0
    }
}

/// Words of a query, looked up in an index.
#[derive(Debug, Clone, Default)]
pub struct Lookups {
    /// Lookup of each slot of the query.
    pub words: Vec<Lookup>,
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
            self.words.iter().filter(|word| is_counted(word)).map(|word| word.weight).fold(0.0, f32::max)
        };
        let of_matter = greatest(Lookup::is_matter);
        if of_matter > 0.0 { of_matter } else { greatest(|_| true) }
    }

    /// Returns true if the places of a word are compared. In a long query, those of very common words tell little.
    pub fn has_places(&self, alternative: &Alternative) -> bool {
        self.words.len() < MANY_WORDS || alternative.frequency <= self.records / VERY_COMMON_SHARE
    }

    /// Returns the share of the query's rarity that a record has, 0 to 1, in which words of requests count less.
    pub(crate) fn coverage(&self, matches: &[WordMatches]) -> f32 {
        self.covered(matches.iter().map(|matches| matches.quality))
    }

    /// Returns the greatest coverage that a record can have, with the words that some record has.
    pub(crate) fn possible_coverage(&self) -> f32 {
        let qualities =
            |word: &Lookup| word.alternatives.iter().map(|other| other.quality).fold(0.0, f32::max);
        self.covered(self.words.iter().map(qualities))
    }

    /// Returns the coverage by words with these qualities.
    fn covered(&self, qualities: impl Iterator<Item = f32>) -> f32 {
        let total: f32 = self.words.iter().map(|word| word.covered_weight).sum();
        let covered = self.words.iter().zip(qualities).map(|(word, quality)| word.covered_weight * quality);
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
    let matter = words.iter().filter(|(slot, _)| slot.is_matter()).count();
    let max_forms = if matter <= MAX_WORDS_WITH_ALL_FORMS { MAX_FORMS } else { 1 };
    let (mut kept, mut replaced) = (0, 0);
    let mut lookups = Vec::with_capacity(words.len());
    for (slot, frequency) in words {
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
        let importance = if slot.kind == WordKind::Part { PART_WEIGHT } else { slot.share() };
        let max_frequency = alternatives.iter().map(|alternative| alternative.frequency).max().unwrap_or(0);
        let is_looked_up = frequency > 0 && !alternatives.is_empty();
        let known = if is_looked_up { frequency } else { max_frequency };
        let weight = if known > 0 { rarity(known, expansion.records) * importance } else { 0.0 };
        lookups.push(Lookup::new(slot, alternatives, weight));
    }
    Ok(Lookups { words: lookups, records: expansion.records })
}

/// Returns the inverse document frequency of a word.
#[expect(clippy::cast_precision_loss, reason = "a logarithm of numbers of records")]
fn rarity(frequency: u64, records: u64) -> f32 {
    let (frequency, records) = (frequency as f32, records.max(frequency) as f32);
    (1.0 + (records - frequency + 0.5) / (frequency + 0.5)).ln()
}

impl<V: Vocabulary> Expansion<'_, V> {
    /// Returns the words that stand for a word: its other forms, or replacements if no record has it.
    fn others(&self, word: &str, frequency: u64, max_forms: usize) -> Result<Vec<Alternative>, V::Error> {
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
        let forms = self.most_frequent(forms, MAX_FORMS, ONLY_FORM_QUALITY)?;
        if !forms.is_empty() {
            return Ok(forms);
        }
        if word.chars().count() < MIN_REPLACED {
            return Ok(Vec::new());
        }
        let mut edits = self.most_frequent(self.edits(word)?, MAX_REPLACEMENTS, EDIT_QUALITY)?;
        for shorter in edits.iter_mut().filter(|edit| word.starts_with(&edit.text)) {
            shorter.quality = SHORTER_QUALITY;
        }
        let longer = self.vocabulary.beginning_with(word, 0..=usize::MAX, |other| other != word)?;
        let mut others = self.most_frequent(longer, MAX_REPLACEMENTS, PREFIX_QUALITY)?;
        others.retain(|other| !edits.iter().any(|edit| edit.text == other.text));
        others.extend(edits);
        Ok(others)
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
mod tests {
    use fetchwell_source::SearchText;

    use super::*;

    /// Returns the coverage of a query of equally rare words by a record with some of them.
    fn coverage(query: &str, words: &[&str]) -> f32 {
        let slots = QueryTerms::new(&SearchText::plain(query)).slots;
        let found = |slot: &Slot| WordMatches {
            quality: if words.contains(&slot.text.as_str()) { 1.0 } else { 0.0 },
            ..WordMatches::default()
        };
        let matches: Vec<WordMatches> = slots.iter().map(found).collect();
        let words = slots.iter().map(|slot| Lookup::new(slot, Vec::new(), slot.share())).collect();
        Lookups { words, records: 1 }.coverage(&matches)
    }

    #[test]
    fn words_of_requests_count_less_in_the_coverage() {
        // No frame at the beginning: all words are searched as they are.
        assert!(coverage("was the lease of the harbour mentioned", &["lease", "harbour"]) > 0.6);
        assert!(coverage("was the lease of the harbour mentioned", &["was", "the", "of", "mentioned"]) < 0.4);
        assert!(coverage("wurde die Pacht im Hafen besprochen", &["pacht", "hafen"]) > 0.6);
        assert!((coverage("lease harbour", &["lease"]) - 0.5).abs() < 1e-6);
        // Without another word, they are all that is asked for.
        assert!((coverage("to be or not to be", &["to", "be", "or", "not"]) - 1.0).abs() < 1e-6);
        assert_eq!(coverage("", &[]), 0.0);
    }
}
