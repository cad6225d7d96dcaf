//! Results that another program found and ranked: the words of the query in them.
//!
//! There is no index of such results, so the words of the query are compared with the words of their texts: equal ones, and
//! other forms of them.
//!
//! * `order`: the order of a list by the words of the query

mod order;

use std::collections::HashSet;

use fetchwell_core::record::{Coverage, Hit, Record, RecordData, own_title};
use fetchwell_source::{SearchField, SearchText};

use self::order::MAX_TEXT_BYTES;
pub use self::order::{ListedText, order_by_words};
use super::hits::hit_of;
use super::matching::{ExcerptTerms, ScanAllowance};
use super::selection::Match;
use super::stems::Inflection;
use super::terms::{JoinedSlot, QueryTerms, share_of};
use super::words::words;

/// Weight of another form of a word, beside 1 for the word itself.
const FORM_WEIGHT: f32 = 0.8;

/// Words of a search, with the forms that some results have of them.
#[derive(Debug)]
pub struct ForeignTerms {
    terms: ExcerptTerms,
    /// Share of each word of the query in percent.
    shares: Vec<u8>,
    joined: Vec<JoinedSlot>,
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
        let forms: Vec<Option<Inflection>> =
            query.slots.iter().map(|slot| Inflection::new(&slot.text)).collect();
        // A result need not have two spellings of a word.
        let shares = query.slots.iter().map(|slot| if slot.is_joined() { 0 } else { slot.percent() });
        let shares: Vec<u8> = shares.collect();
        for (number, slot) in query.slots.iter().enumerate() {
            terms.add(&slot.text, number, slot.share());
        }
        let mut seen: HashSet<String> = HashSet::new();
        for text in records.flat_map(texts) {
            for word in words(text).map(|word| word.folded(text)) {
                if seen.contains(&word) {
                    continue;
                }
                for (number, (form, slot)) in forms.iter().zip(&query.slots).enumerate() {
                    if form.as_ref().is_some_and(|form| form.is_form(&word)) {
                        terms.add(&word, number, FORM_WEIGHT * slot.share());
                    }
                }
                seen.insert(word);
            }
        }
        let in_title = search.fields.iter().filter(|field| field.field == SearchField::Title);
        Self {
            terms,
            shares,
            joined: query.joined,
            excluded: search.excluded.iter().map(|text| folded(text)).collect(),
            title: in_title.map(|field| folded(&field.text)).collect(),
            scan: ScanAllowance::default(),
        }
    }

    /// Returns true if a result has no excluded word where its text is known, and the words that its title must have.
    #[must_use]
    pub fn passes(&self, record: &RecordData) -> bool {
        let has = |text: &str, words: &String| folded(text).contains(words.as_str());
        let title = own_title(record).unwrap_or_default();
        !self.excluded.iter().any(|words| texts(record).any(|text| has(text, words)))
            && self
                .title
                .iter()
                .all(|words| words.split_whitespace().all(|word| has(title, &format!(" {word} "))))
    }

    /// Returns the share of the query's words that a result has in its title and its text; words of a request count little.
    /// Another form of a word counts as four fifths. So does each missing word if the result has no text, which may have it.
    /// Returns `None` if the result has neither title nor text, or the query has no words.
    #[must_use]
    pub fn coverage(&self, record: &RecordData) -> Option<Coverage> {
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
        let mut found = self.terms.weights_in(texts(record));
        for JoinedSlot { slot, parts, .. } in &self.joined {
            let is_found = found.get(*slot).is_some_and(|weight| *weight > 0.0);
            for part in parts.iter().filter(|_| is_found) {
                if let (Some(weight), Some(share)) = (found.get_mut(*part), self.shares.get(*part)) {
                    *weight = weight.max(FORM_WEIGHT * share_of(*share));
                }
            }
        }
        let part: u32 =
            found.into_iter().zip(&self.shares).map(|(weight, share)| fifths(weight, *share)).sum();
        let whole = self.shares.iter().map(|share| u32::from(*share)).sum::<u32>().saturating_mul(5);
        let unseen = if record.contains_key("text") { 0 } else { whole.saturating_sub(part) };
        Coverage::new(
            part.saturating_mul(5).saturating_add(unseen.saturating_mul(4)),
            whole.saturating_mul(5),
        )
    }

    /// Returns the hit of a result with the passage that has most of the words.
    pub fn hit(&mut self, record: Record) -> Hit {
        let passage = None::<fn(&RecordData) -> Option<fetchwell_core::record::Excerpt>>;
        hit_of(record, &Match::new(0, f32::NAN), &self.terms, &mut self.scan, passage)
    }
}

fn texts(record: &RecordData) -> impl Iterator<Item = &str> {
    let fields = record.iter().filter(|(name, _)| matches!(name.as_str(), "title" | "text"));
    let texts = fields.filter_map(|(_, value)| value.as_str());
    texts.map(|text| fetchwell_core::fit::first_bytes(text, MAX_TEXT_BYTES))
}

/// Returns the folded words of a text with a space around each.
fn folded(text: &str) -> String {
    let mut folded = String::from(" ");
    for word in words(text).filter(|word| !word.is_joined()) {
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
}
