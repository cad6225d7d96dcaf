//! Results that another program found and ranked: the words of the query in them.
//!
//! There is no index of such results, so the words of the query are compared with the words of their texts: equal ones, and
//! other forms of them.
//!
//! * `forms`: words of texts that stand for words of the query
//! * `order`: the order of a list by the words of the query

mod forms;
mod order;

use std::borrow::Cow;
use std::collections::HashSet;

use fetchwell_core::record::{Coverage, ExplainedWord, Hit, Measure, Record, RecordData, own_title};
use fetchwell_source::{SearchField, SearchText};

use self::forms::{FoundWord, QueryForms};
use self::order::MAX_TEXT_BYTES;
pub use self::order::{ListedText, order_by_words};
use super::explanation::{MAX_ALL_WORDS, forms_in};
use super::hits::located;
use super::matching::{ExcerptTerms, ScanAllowance, locate_texts};
use super::selection::Match;
use super::terms::{JoinedSlot, QueryTerms, Slot, field_words, share_of};
use super::words::{Word, WordKind, fold_into, words};

/// Weight of another form of a word, beside 1 for the word itself.
const FORM_WEIGHT: f32 = 0.8;

/// Words of a search, with the forms that some results have of them.
#[derive(Debug)]
pub struct ForeignTerms {
    terms: ExcerptTerms,
    query: QueryTerms,
    excluded: Vec<String>,
    title: Vec<String>,
    scan: ScanAllowance,
}

impl ForeignTerms {
    /// Looks for the words of a search in the texts of results.
    #[must_use]
    pub fn new<'a>(search: &SearchText, records: impl Iterator<Item = &'a RecordData>) -> Self {
        let query = QueryTerms::new(search);
        let mut terms = ExcerptTerms::default();
        let forms = QueryForms::new(query.slots.iter());
        for (number, slot) in query.slots.iter().enumerate() {
            terms.add(&slot.text, number, slot.share());
        }
        let (mut seen, mut folded_word): (HashSet<String>, String) = Default::default();
        for text in records.flat_map(texts) {
            for word in words(text).filter(|word| forms.may_have(text, word)) {
                folded_word.clear();
                fold_into(text.get(word.range).unwrap_or_default(), &mut folded_word);
                if !forms.may_have_folded(&folded_word) || seen.contains(&folded_word) {
                    continue;
                }
                for FoundWord { number, .. } in
                    forms.found(&folded_word).into_iter().filter(|found| !found.is_itself)
                {
                    let share = query.slots.get(number).map(Slot::share).unwrap_or_default();
                    terms.add(&folded_word, number, FORM_WEIGHT * share);
                }
                seen.insert(folded_word.clone());
            }
        }
        let in_title = search.fields.iter().filter(|field| field.field == SearchField::Title);
        Self {
            terms,
            query,
            excluded: search.excluded.iter().map(|text| folded(text, false)).collect(),
            title: in_title.flat_map(|field| field_words(&field.text)).collect(),
            scan: ScanAllowance::default(),
        }
    }

    /// Returns true if a result has no excluded word where its text is known, and the words that its title must have.
    #[must_use]
    pub fn passes(&self, record: &RecordData) -> bool {
        let forms = |text| [false, true].map(|with_parts| folded(text, with_parts));
        let has_excluded = || {
            let mut texts = texts(record).flat_map(forms);
            texts.any(|text| self.excluded.iter().any(|words| text.contains(words)))
        };
        let has_title = || {
            let titles = forms(own_title(record).unwrap_or_default());
            let has = |word: &String| titles.iter().any(|title| title.contains(&format!(" {word} ")));
            self.title.iter().all(has)
        };
        (self.excluded.is_empty() || !has_excluded()) && (self.title.is_empty() || has_title())
    }

    /// Returns the share of the query's words that a result has in its title and its text; words of a request count little.
    /// Another form of a word counts as four fifths. So does each missing word if the result has no text, which may have it.
    /// Returns `None` if the result has neither title nor text, or the query has no words.
    #[must_use]
    pub fn coverage(&self, record: &RecordData) -> Option<Coverage> {
        self.coverage_by(self.terms.weights_in(texts(record)), record)
    }

    /// Returns the share by the weight of each word of the query that the result has.
    fn coverage_by(&self, mut found: Vec<f32>, record: &RecordData) -> Option<Coverage> {
        texts(record).next()?;
        let fifths = |weight: f32, share: u8| {
            if weight <= 0.0 {
                0
            } else if weight >= share_of(share) {
                5 * u32::from(share)
            } else {
                4 * u32::from(share)
            }
        };
        // A result need not have two spellings of a word.
        let share = |slot: &Slot| if slot.is_joined() { 0 } else { slot.percent() };
        let shares: Vec<u8> = self.query.slots.iter().map(share).collect();
        for JoinedSlot { slot, parts, .. } in &self.query.joined {
            let is_found = found.get(*slot).is_some_and(|weight| *weight > 0.0);
            for part in parts.iter().filter(|_| is_found) {
                if let (Some(weight), Some(share)) = (found.get_mut(*part), shares.get(*part)) {
                    *weight = weight.max(FORM_WEIGHT * share_of(*share));
                }
            }
        }
        let part: u32 = found.into_iter().zip(&shares).map(|(weight, share)| fifths(weight, *share)).sum();
        let whole = shares.iter().map(|share| u32::from(*share)).sum::<u32>().saturating_mul(5);
        let unseen = if record.contains_key("text") { 0 } else { whole.saturating_sub(part) };
        Coverage::new(
            part.saturating_mul(5).saturating_add(unseen.saturating_mul(4)),
            whole.saturating_mul(5),
        )
    }

    /// Returns the words of the query with those of a result that stand for them, as far as they count for its coverage.
    #[must_use]
    pub fn explained_words(&self, record: &RecordData) -> Vec<ExplainedWord> {
        let found = self.terms.weights_in(texts(record));
        let shown: RecordData =
            texts_by_name(record).map(|(name, text)| (name.clone(), text.into())).collect();
        let mut forms = forms_in(&shown, &self.terms);
        let has_all = self.query.slots.len() <= MAX_ALL_WORDS;
        let words = self.query.slots.iter().zip(found).enumerate();
        // Another spelling of words of the query is named where the result has it.
        let words = words.filter(|(_, (slot, weight))| *weight > 0.0 || (has_all && !slot.is_joined()));
        let word = words.map(|(number, (slot, weight))| ExplainedWord {
            word: slot.text.clone(),
            importance_percent: slot.percent(),
            quality: Some(if weight > 0.0 { (weight / slot.share()).into() } else { Measure::default() }),
            matches: forms.remove(&number).unwrap_or_default(),
            ..ExplainedWord::default()
        });
        word.collect()
    }

    /// Returns the hit of a result, with its share of the query's words. Its excerpt is the part of its title and its text that
    /// has most of the words.
    pub fn hit(&mut self, record: Record) -> Hit {
        // A link and a time are no passage.
        let passages =
            texts_by_name(&record.data).filter(|(name, text)| *name == "title" || !text.trim().is_empty());
        let passages: Vec<(&str, Cow<'_, str>)> =
            passages.map(|(name, text)| (name.as_str(), Cow::Borrowed(text))).collect();
        let mut location = locate_texts(&record.data, &passages, None, &self.terms, &mut self.scan);
        let coverage = self.coverage_by(std::mem::take(&mut location.weights), &record.data);
        Hit { coverage, ..located(record, &Match::new(0, f32::NAN), location) }
    }
}

fn texts(record: &RecordData) -> impl Iterator<Item = &str> {
    texts_by_name(record).map(|(_, text)| text)
}

/// Returns the title and the text of a result with the names of these fields.
fn texts_by_name(record: &RecordData) -> impl Iterator<Item = (&String, &str)> {
    let fields = record.iter().filter(|(name, _)| matches!(name.as_str(), "title" | "text"));
    let texts = fields.filter_map(|(name, value)| Some((name, value.as_str()?)));
    texts.map(|(name, text)| (name, fetchwell_core::fit::first_bytes(text, MAX_TEXT_BYTES)))
}

/// Returns the folded words of a text with a space around each, those in camel case as they are or also with their parts.
fn folded(text: &str, with_parts: bool) -> String {
    let mut folded = String::from(" ");
    let is_shown = |word: &Word| !word.is_joined() && (with_parts || word.kind != WordKind::Part);
    for word in words(text).filter(is_shown) {
        folded.push_str(&word.folded(text));
        folded.push(' ');
    }
    folded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(title: &str, text: &str) -> RecordData {
        RecordData::from_iter([("title".to_owned(), json!(title)), ("text".to_owned(), json!(text))])
    }

    #[test]
    fn results_are_judged_by_their_own_words() {
        let records = [
            record("Invoices of Øresund", "Paid by transfer"),
            record("Holiday", "The invoice was paid late"),
            record("Holiday", "Beach"),
        ];
        let terms = ForeignTerms::new(&SearchText::plain("the invoice was paid"), records.iter());
        let coverages: Vec<Option<u8>> =
            records.iter().map(|record| terms.coverage(record).map(Coverage::percent)).collect();
        assert_eq!(coverages, [Some(45), Some(100), Some(0)]);
    }

    #[test]
    fn titles_alone_are_covered_and_results_without_words_are_unknown() {
        let fields = |fields: &[(&str, &str)]| -> RecordData {
            fields.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect()
        };
        for (query, record, expect) in [
            ("unpaid invoice", fields(&[("title", "Invoice 7")]), Some(90)),
            ("unpaid invoice", fields(&[("title", "Trip")]), Some(80)),
            ("unpaid invoice", fields(&[("text", "Invoices, unpaid")]), Some(90)),
            ("unpaid invoice", fields(&[("url", "https://a.test/unpaid-invoice")]), None),
            ("wi-fi", fields(&[("text", "Wifi here")]), Some(80)),
            ("wifi", fields(&[("text", "Wi-Fi here")]), Some(100)),
            ("wi-fi", fields(&[("text", "Wi-Fi here")]), Some(100)),
            ("***", fields(&[("title", "Invoice 7")]), None),
        ] {
            let terms = ForeignTerms::new(&SearchText::plain(query), std::iter::once(&record));
            assert_eq!(terms.coverage(&record).map(Coverage::percent), expect, "{query} in {record:?}");
        }
    }

    #[test]
    fn excluded_words_and_words_of_titles_are_checked() {
        let search = SearchText {
            excluded: vec!["paid late".to_owned()],
            fields: vec![fetchwell_source::FieldText {
                field: SearchField::Title,
                text: "HOLIDAY".to_owned(),
            }],
            ..SearchText::plain("x")
        };
        let records =
            [record("Holiday", "it was Paid, late"), record("My holiday", "paid"), record("Trip", "")];
        let terms = ForeignTerms::new(&search, records.iter());
        let passes: Vec<bool> = records.iter().map(|record| terms.passes(record)).collect();
        assert_eq!(passes, [false, true, false]);
    }

    #[test]
    fn words_in_camel_case_are_compared_as_they_are() {
        let field = fetchwell_source::FieldText { field: SearchField::Title, text: "GitHub".to_owned() };
        let titled = SearchText { fields: vec![field], ..SearchText::plain("x") };
        let without = |text: &str| SearchText { excluded: vec![text.to_owned()], ..SearchText::plain("x") };
        for (search, title, expect) in [
            (&titled, "Tips for github", true),
            (&titled, "Tips for GITHUB", true),
            (&titled, "Tips for git", false),
            (&without("GitHub"), "github tips", false),
            (&without("GitHub actions"), "All GitHub Actions", false),
            (&without("git hub"), "All GitHub actions", false),
            (&without("GitHub"), "git hub", true),
        ] {
            let record = record(title, "");
            assert_eq!(
                ForeignTerms::new(search, std::iter::once(&record)).passes(&record),
                expect,
                "{title}"
            );
        }
    }
}
