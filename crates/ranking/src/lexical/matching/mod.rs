//! Finds the passage of a record that matches a search, for the excerpt of a hit.
//!
//! * `text_words`: the words of a record's texts, for the next searches that show it

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use fetchwell_core::fit::{clip, passage};
use fetchwell_core::record::{Excerpt, RecordData, attachment_at, own_title};

pub use self::text_words::TextWords;
use self::text_words::{PossibleHashes, WordPlace};
use super::field_texts::texts_of;
use super::word_sequences::WordSequences;
use super::words::{PossibleWords, fold_into, words};

mod text_words;

#[cfg(test)]
mod tests;

/// Maximum bytes of one record's text of which all words are compared. The rest is scanned for its first match.
pub(super) const SCAN_BYTES: usize = 512 * 1024;

/// Length in bytes of the pieces in which the rest of a long text is scanned.
const PIECE_BYTES: usize = 64 * 1024;

/// Maximum distance in bytes of the end of a piece from the white space that it is moved to.
const MAX_WORD_BYTES: usize = 512;

/// Number of bytes that are searched for one folded word in the time in which one byte is divided into words.
const WORDS_COST: usize = 16;

/// Bytes of context on either side of the match.
const RADIUS: usize = 400;

/// Maximum length in bytes of a cluster: matches within it are shown together.
const CLOSE: usize = 160;

/// Maximum number of matches of one cluster that are compared.
const CLUSTER: usize = 32;

/// Share of its weight that a word has in a heading above a text.
const HEADING_SHARE: f32 = 0.6;

/// Maximum length in bytes of the name of an attachment before an excerpt.
const MAX_LABEL_BYTES: usize = 60;

/// Maximum length in bytes of a path.
const MAX_PATH_BYTES: usize = 1_024;

/// Gain of a word that occurs several times in a text, as a share of its weight.
const REPETITION_SHARE: f32 = 0.2;

/// Words to find in a text, by their folded form.
#[derive(Debug, Default)]
pub struct ExcerptTerms {
    words: HashMap<String, ExcerptTerm>,
    /// Filter of the words, also those of sequences.
    possible: PossibleWords,
    hashes: PossibleHashes,
    sequences: WordSequences,
    /// The word of the query that each sequence stands for, and the words of the sequence with spaces between them.
    of_sequences: Vec<(ExcerptTerm, String)>,
    /// Number of words of the query.
    slots: usize,
}

/// Word to find in a text.
#[derive(Debug, Clone, Copy)]
struct ExcerptTerm {
    /// Number of the word of the query that it stands for.
    slot: usize,
    weight: f32,
}

impl ExcerptTerms {
    /// Adds a word that stands for word number `slot` of the query.
    pub(crate) fn add(&mut self, word: &str, slot: usize, weight: f32) {
        self.slots = self.slots.max(slot + 1);
        self.possible.add(word);
        self.hashes.add(word);
        self.words.entry(word.to_owned()).or_insert(ExcerptTerm { slot, weight });
    }

    /// Adds words that stand for word number `slot` of the query where they follow each other.
    pub(crate) fn add_sequence(&mut self, words: &[String], slot: usize, weight: f32) {
        self.slots = self.slots.max(slot + 1);
        for word in words {
            self.possible.add(word);
            self.hashes.add(word);
        }
        self.sequences.add(words.to_vec());
        self.of_sequences.push((ExcerptTerm { slot, weight }, words.join(" ")));
    }

    /// Returns the share of the words' weight that a part of a text has, with the headings above it: 0 to 1.
    pub(crate) fn share_of(&self, part: &str, headings: &str) -> f32 {
        let mut weights = vec![0.0_f32; self.slots];
        for term in self.words.values().chain(self.of_sequences.iter().map(|(term, _)| term)) {
            raise(&mut weights, term.slot, term.weight);
        }
        let total: f32 = weights.iter().sum::<f32>() * (1.0 + REPETITION_SHARE);
        if total <= 0.0 {
            return 0.0;
        }
        let (mut found, mut counts) = (vec![0.0_f32; self.slots], vec![0_u16; self.slots]);
        for (term, _) in self.matches(part) {
            raise(&mut found, term.slot, term.weight);
            if let Some(count) = counts.get_mut(term.slot) {
                *count = count.saturating_add(1);
            }
        }
        let repeated = found.iter().zip(&counts).map(|(weight, count)| {
            let times = f32::from(count.saturating_sub(1));
            weight * REPETITION_SHARE * times / (times + 1.0)
        });
        let repeated: f32 = repeated.sum();
        for (term, _) in self.matches(headings) {
            raise(&mut found, term.slot, term.weight * HEADING_SHARE);
        }
        (found.iter().sum::<f32>() + repeated) / total
    }

    /// Returns the weight of each word of the query, by its number, that it has in any of the texts; 0 if none has it.
    pub(crate) fn weights_in<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Vec<f32> {
        let mut found = vec![0.0_f32; self.slots];
        for (term, _) in texts.flat_map(|text| self.matches(text)) {
            raise(&mut found, term.slot, term.weight);
        }
        found
    }

    /// Reads the words and sequences of a text that are looked for: the number of the query's word that each stands for, and its
    /// folded form.
    pub(super) fn each_form(&self, text: &str, mut read: impl FnMut(usize, &str)) {
        self.each_match(text, |term, form, _| read(term.slot, form));
    }

    /// Returns the words of a text that are looked for, with their places.
    fn matches(&self, text: &str) -> Vec<(ExcerptTerm, Range<usize>)> {
        let mut matches = Vec::new();
        self.each_match(text, |term, _, range| matches.push((term, range)));
        matches
    }

    /// Returns the words of a text that are looked for, with their places, by all its words.
    fn known_matches(&self, text: &str, known: &[WordPlace]) -> Vec<(ExcerptTerm, Range<usize>)> {
        let mut matches = Vec::new();
        let possible = known.iter().filter(|word| self.hashes.may_have(word.hash));
        let places = possible.map(|word| (word.position.into(), word.start.into()..word.end.into()));
        self.each_match_at(text, places, |term, _, range| matches.push((term, range)));
        matches
    }

    /// Reads the words and sequences of a text that are looked for, with their folded forms and their places.
    fn each_match(&self, text: &str, read: impl FnMut(ExcerptTerm, &str, Range<usize>)) {
        let possible = words(text).filter(|word| self.possible.may_have(text, word));
        self.each_match_at(text, possible.map(|word| (word.position, word.range)), read);
    }

    /// Does what [`Self::each_match`] does with words of a text that may be looked for, by their ordinals and places.
    fn each_match_at(
        &self,
        text: &str,
        possible: impl Iterator<Item = (usize, Range<usize>)>,
        mut read: impl FnMut(ExcerptTerm, &str, Range<usize>),
    ) {
        let (mut folded, mut sequences) = (String::new(), self.sequences.finder());
        for (position, place) in possible {
            folded.clear();
            fold_into(text.get(place.clone()).unwrap_or_default(), &mut folded);
            if let Some((number, range)) = sequences.take(&folded, position, &place)
                && let Some((term, form)) = self.of_sequences.get(number)
            {
                read(*term, form, range);
            }
            if let Some(term) = self.words.get(folded.as_str()) {
                read(*term, &folded, place);
            }
        }
    }
}

/// Raises the weight of a word of the query.
fn raise(weights: &mut [f32], slot: usize, weight: f32) {
    if let Some(known) = weights.get_mut(slot) {
        *known = known.max(weight);
    }
}

/// Matching fields and excerpt of a record.
#[derive(Debug, Default)]
pub(crate) struct MatchLocation {
    /// Passage with the most and the rarest words close together. Fields that repeat the title are skipped, since it
    /// is shown anyway. Without a match, the passage is the start of the longest text.
    pub(crate) excerpt: Excerpt,
    /// Field that contains the matching passage.
    pub(crate) field: Option<String>,
    /// Fields with a match, in the order of the record.
    pub(crate) fields: Vec<String>,
    /// Title field with its matching passage, if nothing else matches.
    pub(crate) title_match: Option<(String, Excerpt)>,
    /// Weight of each word of the query, by its number, that it has in the texts as far as all their words are compared.
    pub(crate) weights: Vec<f32>,
}

/// Bytes of the rests of long texts that may be scanned for the hits of a page, times the number of words.
#[derive(Debug)]
pub struct ScanAllowance(usize);

impl Default for ScanAllowance {
    /// Allows for half a second: 16 MiB of words, or ten records of 10 MB for two words of ASCII.
    fn default() -> Self {
        Self(256 * 1024 * 1024)
    }
}

/// Finds the fields and the best passage of a record that contain the terms. `known` has the words of the record.
pub(crate) fn locate_match(
    data: &RecordData,
    known: Option<&TextWords>,
    terms: &ExcerptTerms,
    allowance: &mut ScanAllowance,
) -> MatchLocation {
    locate_texts(data, &texts_of(data), known, terms, allowance)
}

/// Finds the fields and the best passage of some texts of a record, which have the names of their fields. `known` has the words
/// of these texts.
pub(super) fn locate_texts(
    data: &RecordData,
    texts: &[(&str, Cow<'_, str>)],
    known: Option<&TextWords>,
    terms: &ExcerptTerms,
    allowance: &mut ScanAllowance,
) -> MatchLocation {
    let title = own_title(data);
    let mut fields: Vec<&str> = Vec::new();
    let mut budget = SCAN_BYTES;
    let mut best: Option<BestText<'_>> = None;
    let mut of_title = None;
    let mut weights = vec![0.0_f32; terms.slots];
    let mut rests: Vec<(&str, &str, usize)> = Vec::new();
    for (number, (name, text)) in texts.iter().enumerate() {
        let is_title = title.is_some_and(|title| repeats_title(text, title));
        let max_bytes = if is_title { SCAN_BYTES } else { budget };
        let scanned = text.get(..end_of_piece(text, 0, max_bytes)).unwrap_or_default();
        if scanned.len() < text.len() {
            rests.push((*name, &**text, scanned.len()));
        }
        let matches = match known {
            Some(known) if scanned.len() == text.len() => terms.known_matches(text, known.in_text(number)),
            _ => terms.matches(scanned),
        };
        matches.iter().for_each(|(term, _)| raise(&mut weights, term.slot, term.weight));
        let Some((weight, range)) = best_cluster(&matches, terms.slots) else {
            budget -= if is_title { 0 } else { scanned.len().min(budget) };
            continue;
        };
        if fields.last() != Some(name) {
            fields.push(name);
        }
        if is_title {
            of_title.get_or_insert((*name, &**text, range));
            continue;
        }
        budget -= scanned.len().min(budget);
        let stem = title.filter(|title| file_stem(text) == Some(title));
        if stem.is_some_and(|stem| range.end <= stem.len()) {
            // The title has the words, too.
            continue;
        }
        let text = BestText { weight, name, text, range, is_path: is_path(text) };
        if best.as_ref().is_none_or(|best| text.is_better_than(best)) {
            best = Some(text);
        }
    }
    if best.is_none() && of_title.is_none() {
        let mut later = rests.into_iter().filter_map(|(name, text, start)| {
            let range = first_match(text, start, terms, allowance)?;
            Some(BestText { weight: 0.0, name, text, range, is_path: false })
        });
        best = later.next();
        fields.extend(best.as_ref().map(|best| best.name));
    }
    let longest = || {
        let is_other = |text: &str| !title.is_some_and(|title| repeats_title(text, title));
        let others = texts.iter().filter(|(_, text)| is_other(text));
        others.max_by_key(|(_, text)| text.len()).or_else(|| texts.iter().max_by_key(|(_, text)| text.len()))
    };
    let (excerpt, field) = match &best {
        Some(best) => (best.excerpt(data), Some(best.name.to_owned())),
        None => (excerpt_of(longest().map_or("", |(_, text)| text), 0..0), None),
    };
    let title_match = of_title.filter(|_| best.is_none());
    MatchLocation {
        excerpt,
        field,
        fields: fields.into_iter().map(str::to_owned).collect(),
        weights,
        title_match: title_match.map(|(name, text, range)| (name.to_owned(), excerpt_of(text, range))),
    }
}

/// Returns the passage of a text around a match.
fn excerpt_of(text: &str, focus: Range<usize>) -> Excerpt {
    let (piece, focus) = passage(text, focus, RADIUS);
    Excerpt::new(piece, focus)
}

/// Returns the name of an attachment as the label of an excerpt.
pub(crate) fn attachment_label(name: &str) -> String {
    clip(name, MAX_LABEL_BYTES)
}

/// Returns the end of a piece of a text: at most `length` bytes after `start`, and between words if white space is near.
fn end_of_piece(text: &str, start: usize, length: usize) -> usize {
    let end = start.saturating_add(length);
    if end >= text.len() {
        return text.len();
    }
    let end = text.floor_char_boundary(end);
    let near = text.floor_char_boundary(end.saturating_sub(MAX_WORD_BYTES)).max(start);
    let space = text.get(near..end).and_then(|tail| tail.rfind(char::is_whitespace));
    // A piece is not empty, so that a scan ends.
    space.map(|space| near + space).filter(|space| *space > start).unwrap_or(end)
}

/// Returns the place of the first piece of a text with a match, from `start` on.
fn first_match(
    text: &str,
    start: usize,
    terms: &ExcerptTerms,
    allowance: &mut ScanAllowance,
) -> Option<Range<usize>> {
    // A folded word of ASCII letters is in a text of ASCII letters as it is, apart from their case.
    let looked_for = terms.words.keys().map(String::as_str).chain(terms.sequences.first_words());
    let ascii: Vec<&str> = looked_for.filter(|word| word.is_ascii()).collect();
    let mut at = start;
    while at < text.len() {
        let end = end_of_piece(text, at, PIECE_BYTES).max(text.ceil_char_boundary(at + 1));
        let piece = text.get(at..end)?;
        let mut has_word = !piece.is_ascii();
        if !has_word {
            allowance.0 = allowance.0.checked_sub(piece.len() * ascii.len())?;
            let folded = piece.to_ascii_lowercase();
            has_word = ascii.iter().any(|word| folded.contains(word));
        }
        if has_word {
            allowance.0 = allowance.0.checked_sub(piece.len() * WORDS_COST)?;
            if let Some((_, range)) = best_cluster(&terms.matches(piece), terms.slots) {
                return Some(at + range.start..at + range.end);
            }
        }
        at = end;
    }
    None
}

/// Text with the best passage of the texts so far.
struct BestText<'a> {
    weight: f32,
    name: &'a str,
    text: &'a str,
    range: Range<usize>,
    is_path: bool,
}

impl BestText<'_> {
    /// Returns the passage, with the name of the attachment that it is from.
    fn excerpt(&self, data: &RecordData) -> Excerpt {
        let attachment = attachment_at(data, self.name, self.text, self.range.start);
        excerpt_of(self.text, self.range.clone())
            .with_label(&attachment.map(attachment_label).unwrap_or_default())
    }

    /// Returns true for a greater weight. Of texts with equal weight, the first is preferred, and a sentence to a path.
    fn is_better_than(&self, other: &Self) -> bool {
        match self.weight.total_cmp(&other.weight) {
            Ordering::Equal => other.is_path && !self.is_path,
            order => order.is_gt(),
        }
    }
}

/// Returns true if a text is part of the title.
fn repeats_title(text: &str, title: &str) -> bool {
    let text = text.trim();
    text.len() <= title.len() && title.contains(text)
}

/// Returns true for a path, an address or a word: one line without a sentence.
fn is_path(text: &str) -> bool {
    if text.len() > MAX_PATH_BYTES || text.contains('\n') {
        return false;
    }
    match text.trim().split_once(char::is_whitespace) {
        // The names of files may have spaces.
        Some((start, _)) => start.contains('/'),
        // Sentences of some scripts have no spaces.
        None => text.is_ascii() || text.contains('/') || file_stem(text).is_some(),
    }
}

/// Returns the name of a file without its extension; none for other texts.
fn file_stem(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    let is_extension =
        (1..=8).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_extension && !stem.is_empty()).then_some(stem)
}

/// Returns the first cluster of matches with the greatest weight of distinct words: the weight and the byte range of the
/// cluster. `slots` is the number of words of the query.
fn best_cluster(matches: &[(ExcerptTerm, Range<usize>)], slots: usize) -> Option<(f32, Range<usize>)> {
    let mut best: Option<(f32, Range<usize>)> = None;
    let mut weights = vec![0.0_f32; slots];
    for (at, (_, first)) in matches.iter().enumerate() {
        let close = matches.iter().skip(at).take_while(|(_, range)| range.end <= first.start + CLOSE);
        weights.fill(0.0);
        let mut end = first.end;
        for (term, range) in close.take(CLUSTER) {
            if let Some(weight) = weights.get_mut(term.slot)
                && term.weight > *weight
            {
                *weight = term.weight;
                end = end.max(range.end);
            }
        }
        let weight = weights.iter().sum();
        if best.as_ref().is_none_or(|(best_weight, _)| weight > *best_weight) {
            best = Some((weight, first.start..end));
        }
        if weights.iter().all(|weight| *weight > 0.0) {
            break;
        }
    }
    best
}
