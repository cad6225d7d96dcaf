//! Finds the passage of a record that matches a search, for the excerpt of a hit.
//!
//! * `long_text`: the rest of a long text, which is scanned for its first match

mod long_text;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use fetchwell_core::fit::{clip, passage};
use fetchwell_core::record::{Excerpt, RecordData, attachment_at, own_title};

pub use self::long_text::ScanAllowance;
use self::long_text::{end_of_piece, first_match};
use super::field_texts::texts_of;
use super::word_sequences::WordSequences;
use super::words::{PossibleWords, fold_into, words};

/// Maximum bytes of one record's text of which all words are compared. The rest is scanned for its first match.
pub(super) const SCAN_BYTES: usize = 512 * 1024;

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
        self.words.entry(word.to_owned()).or_insert(ExcerptTerm { slot, weight });
    }

    /// Adds words that stand for word number `slot` of the query where they follow each other.
    pub(crate) fn add_sequence(&mut self, words: &[String], slot: usize, weight: f32) {
        self.slots = self.slots.max(slot + 1);
        words.iter().for_each(|word| self.possible.add(word));
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

    /// Reads the words and sequences of a text that are looked for, with their folded forms and their places.
    fn each_match(&self, text: &str, mut read: impl FnMut(ExcerptTerm, &str, Range<usize>)) {
        let (mut folded, mut sequences) = (String::new(), self.sequences.finder());
        for word in words(text).filter(|word| self.possible.may_have(text, word)) {
            folded.clear();
            fold_into(text.get(word.range.clone()).unwrap_or_default(), &mut folded);
            if let Some((number, range)) = sequences.take(&folded, word.position, &word.range)
                && let Some((term, form)) = self.of_sequences.get(number)
            {
                read(*term, form, range);
            }
            if let Some(term) = self.words.get(folded.as_str()) {
                read(*term, &folded, word.range);
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

/// Finds the fields and the best passage of a record that contain the terms.
pub(crate) fn locate_match(
    data: &RecordData,
    terms: &ExcerptTerms,
    allowance: &mut ScanAllowance,
) -> MatchLocation {
    locate_texts(data, &texts_of(data), terms, allowance)
}

/// Finds the fields and the best passage of some texts of a record, which have the names of their fields.
pub(super) fn locate_texts(
    data: &RecordData,
    texts: &[(&str, Cow<'_, str>)],
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
    for (name, text) in texts {
        let is_title = title.is_some_and(|title| repeats_title(text, title));
        let max_bytes = if is_title { SCAN_BYTES } else { budget };
        let scanned = text.get(..end_of_piece(text, 0, max_bytes)).unwrap_or_default();
        if scanned.len() < text.len() {
            rests.push((*name, &**text, scanned.len()));
        }
        let matches = terms.matches(scanned);
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn terms(words: &[&str]) -> ExcerptTerms {
        let mut terms = ExcerptTerms::default();
        words.iter().enumerate().for_each(|(slot, word)| terms.add(word, slot, 1.0));
        terms
    }

    #[track_caller]
    fn check(data: Value, words: &[&str], expect: &str) {
        let data = serde_json::from_value(data).unwrap();
        let found = locate_match(&data, &terms(words), &mut ScanAllowance::default()).excerpt;
        assert_eq!(found.text().get(found.focus()).unwrap(), expect);
    }

    #[test]
    fn the_closest_different_terms_win() {
        let body = format!("pay. {} please pay the invoice {}", "x ".repeat(200), "y ".repeat(200));
        check(json!({"body": body}), &["pay", "invoice"], "pay the invoice");
    }

    #[test]
    fn accents_and_scripts_are_found_as_they_are_indexed() {
        check(json!({"body": "Das Café schließt."}), &["cafe"], "Café");
        check(json!({"body": "今日は東京都へ行く"}), &["東京", "京都"], "東京都");
    }

    #[test]
    fn the_title_is_not_shown_twice() {
        check(json!({"title": "Invoice", "body": "the invoice is due"}), &["invoice"], "invoice");
        let of = |data: Value| {
            let data = serde_json::from_value(data).unwrap();
            locate_match(&data, &terms(&["invoice"]), &mut ScanAllowance::default())
        };
        let only_title = of(json!({"title": "Invoice", "body": "due at once"}));
        assert_eq!((only_title.excerpt.text(), only_title.field), ("due at once", None));
        assert_eq!(only_title.fields, ["title"]);
        let (field, found) = only_title.title_match.unwrap();
        assert_eq!((field.as_str(), found.text(), found.focus()), ("title", "Invoice", 0..7));
        let both = of(
            json!({"body": {"a": "the invoice", "b": "an invoice"}, "n": 5, "title": "Invoice", "x": "y"}),
        );
        assert_eq!((both.fields, both.field.as_deref()), (vec!["body".into(), "title".into()], Some("body")));
        assert!(both.title_match.is_none());
    }

    #[test]
    fn a_sentence_is_shown_rather_than_a_path_with_the_same_words() {
        let of = |path: &str, body: &str, word: &str| {
            let data =
                serde_json::from_value(json!({"title": "Boat log", "path": path, "body": body})).unwrap();
            locate_match(&data, &terms(&[word]), &mut ScanAllowance::default()).excerpt.text().to_owned()
        };
        assert_eq!(of("sub/boat.md", "# Boat repair", "boat"), "# Boat repair");
        assert_eq!(of("sub/My boat.md", "# Boat repair", "boat"), "# Boat repair");
        assert_eq!(of("sub/boat.md", "# Ship repair", "boat"), "sub/boat.md");
        assert_eq!(of("Boat log.md", "# Ship repair", "boat"), "# Ship repair");
        assert_eq!(of("Boat log.pdf", "# Ship repair", "pdf"), "Boat log.pdf");
        assert_eq!(of("sub/boat.md", "boat", "boat"), "sub/boat.md");
        assert_eq!(of("メモ/東京都.md", "今日は東京都へ行く。", "東京"), "今日は東京都へ行く。");
        // A text that ends with an address, a price or a file is no path.
        for end in ["www.hotel.com", "$3.50", "report.pdf", "https://example.com/a.b"] {
            assert_eq!(
                of(&format!("The boat costs {end}"), "a boat", "boat"),
                format!("The boat costs {end}")
            );
        }
    }

    #[test]
    fn thousands_of_matches_beside_a_long_text_are_compared_in_linear_time() {
        let tags = vec!["boat"; 60_000];
        check(json!({"csv": format!("boat,{}", "a,".repeat(130_000)), "tags": tags}), &["boat"], "boat");
    }

    #[test]
    fn a_part_with_more_of_the_words_has_a_greater_share() {
        let terms = terms(&["token", "expire"]);
        let share = |part: &str, headings: &str| terms.share_of(part, headings);
        assert!(share("nothing", "") == 0.0);
        assert!(share("a token", "") > 0.0);
        assert!(share("tokens and a token", "") < share("a token can expire", ""));
        assert!(share("a token, another token", "") > share("a token", ""));
        assert!(share("when they expire", "Token") > share("when they expire", ""));
        assert!(share("when they expire", "Token") < share("token expire", ""));
        assert!(share("token expire token expire token expire", "") <= 1.0);
    }

    #[test]
    fn matches_behind_the_first_half_megabyte_are_found() {
        let filler = "needles and other words of a long text. ".repeat(25_000);
        check(json!({"body": format!("{filler}The Needle. {filler}")}), &["needle"], "Needle");
        check(json!({"body": filler, "notes": "a needle"}), &["needle"], "needle");
        let accents = "Äpfel und Öfen ".repeat(45_000);
        check(json!({"body": format!("{accents}das Café")}), &["cafe"], "Café");
        check(json!({"body": format!("{}needle", "x".repeat(700_000))}), &["needle"], "");
        // Nothing is read when the allowance is used up.
        let data = serde_json::from_value(json!({"body": format!("{filler}needle")})).unwrap();
        let found = locate_match(&data, &terms(&["needle"]), &mut ScanAllowance(1_000));
        assert!(found.fields.is_empty() && found.excerpt.text().starts_with("needles and"));
    }

    #[test]
    fn nested_text_is_looked_through() {
        check(json!({"a": {"b": ["x", "the Needle"]}}), &["needle"], "Needle");
        check(json!({"n": 1}), &["needle"], "");
    }
}
