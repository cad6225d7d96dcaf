//! The order of a list of results by the words of the query.
//!
//! Small servers return every record that has a word of the query, in the order of their files. The position of a result then
//! says nothing about how well it fits, and the answer is often behind the part of the list that is read. Such a list is
//! ordered by the score that stores use, with the rarity of words in the list. A list that was selected by other means than
//! words, and one whose first results are its best by words, keep their order.

use std::cmp::Ordering;
use std::collections::HashMap;

use fetchwell_core::fit::first_bytes;
use fetchwell_core::saturate::saturated;
use fetchwell_source::SearchText;

use super::forms::{FoundWord, QueryForms};
use crate::lexical::expansion::{FORM_QUALITY, Lookup, Lookups, MAX_WORDS, ONLY_FORM_QUALITY, importance};
use crate::lexical::ranking::{RankedRecord, WordMatches};
use crate::lexical::scoring::{Evidence, score};
use crate::lexical::terms::{QueryTerms, Slot};
use crate::lexical::understanding::request_words::is_listed;
use crate::lexical::words::{fold_into, words};

/// Maximum number of bytes of a text whose words are compared.
pub(super) const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Minimum number of results of a list that is ordered. Of a shorter list, most results are read at once.
const MIN_ORDERED: usize = 20;

/// Number of results at the beginning of a list that are compared with all others.
const FIRST: usize = 10;

/// Maximum number of bytes of all texts of a list whose words are compared.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

/// Minimum number of letters of a word that is looked for as a part of other words.
const MIN_PART: usize = 3;

/// Maximum number of different words of a list that are remembered.
const MAX_KNOWN: usize = 50_000;

/// Maximum number of positions of a word in a result that are compared.
const MAX_POSITIONS: usize = 64;

/// Title and text of a result.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListedText<'a> {
    /// Title of the result.
    pub title: Option<&'a str>,
    /// The text or a passage of it.
    pub text: Option<&'a str>,
}

/// Orders a list of results by the words of a query if its order says nothing about them. Results with equal scores keep the
/// order that they have.
#[must_use]
pub fn order_by_words<T>(query: &str, list: Vec<T>, text_of: impl Fn(&T) -> ListedText<'_>) -> Vec<T> {
    let texts: Vec<ListedText<'_>> = list.iter().map(text_of).collect();
    let Some(scores) = scores_of_unordered(query, &texts) else { return list };
    let mut scored: Vec<(f32, T)> = scores.into_iter().zip(list).collect();
    scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    scored.into_iter().map(|(_, item)| item).collect()
}

/// Returns the score of each result of a list that was selected by words and is in no order of them; `None` for other lists.
fn scores_of_unordered(query: &str, list: &[ListedText<'_>]) -> Option<Vec<f32>> {
    if list.len() < MIN_ORDERED {
        return None;
    }
    let terms = QueryTerms::new(&SearchText::plain(query));
    let counted = CountedList::new(&terms, list);
    if !counted.is_selected_by_words(&terms, list) {
        return None;
    }
    let scores = counted.scores(&terms);
    (!has_best_first(&scores)).then_some(scores)
}

/// Returns true if a result at the beginning of a list has a higher score than another one in three of four pairs.
fn has_best_first(scores: &[f32]) -> bool {
    let (first, others) = scores.split_at(FIRST.min(scores.len()));
    let points = |one: f32| -> usize {
        let points = others.iter().map(|other| match one.total_cmp(other) {
            Ordering::Greater => 2,
            Ordering::Equal => 1,
            Ordering::Less => 0,
        });
        points.sum()
    };
    let points: usize = first.iter().map(|score| points(*score)).sum();
    // Each pair has two points.
    points * 4 >= first.len() * others.len() * 2 * 3
}

/// Occurrences of a word of the query in a result.
#[derive(Debug, Clone, Default)]
struct Occurrences {
    itself: u32,
    forms: u32,
    is_in_title: bool,
    form_is_in_title: bool,
    positions: Vec<u32>,
}

/// Words of the query in a result.
#[derive(Debug, Default)]
struct CountedText {
    /// Occurrences of each word of the query.
    words: Vec<Occurrences>,
    title_words: u32,
    length: u32,
}

/// Words of the query in a list of results.
#[derive(Debug)]
struct CountedList {
    texts: Vec<CountedText>,
}

/// Words of texts that stand for words of a query, each looked up once.
struct KnownWords {
    forms: QueryForms,
    /// Words of the query that a word stands for.
    known: HashMap<String, Vec<FoundWord>>,
    /// Those of a word that is not remembered.
    latest: Vec<FoundWord>,
}

impl KnownWords {
    fn new(terms: &QueryTerms) -> Self {
        let forms = QueryForms::new(terms.slots.iter().take(MAX_WORDS));
        let known = forms.words().map(|word| (word.to_owned(), forms.found(word))).collect();
        Self { forms, known, latest: Vec::new() }
    }

    /// Returns the words of the query that a folded word stands for.
    fn found(&mut self, word: &str) -> &[FoundWord] {
        if !self.forms.may_have_folded(word) {
            return &[];
        }
        if !self.known.contains_key(word) {
            let all = self.forms.found(word);
            if self.known.len() >= MAX_KNOWN {
                self.latest = all;
                return &self.latest;
            }
            self.known.insert(word.to_owned(), all);
        }
        self.known.get(word).map_or(&[], Vec::as_slice)
    }
}

impl CountedList {
    fn new(terms: &QueryTerms, list: &[ListedText<'_>]) -> Self {
        let max_bytes = MAX_TEXT_BYTES.min(MAX_LIST_BYTES / list.len().max(1));
        let mut known = KnownWords::new(terms);
        let texts = list.iter().map(|item| {
            let mut counted = CountedText::default();
            counted.words.resize(known.forms.len(), Occurrences::default());
            counted.add(&mut known, first_bytes(item.title.unwrap_or_default(), max_bytes), true);
            counted.title_words = counted.length;
            counted.add(&mut known, first_bytes(item.text.unwrap_or_default(), max_bytes), false);
            counted
        });
        Self { texts: texts.collect() }
    }

    /// Returns true if nearly all results have a word that the query is about, be it as a part of another word. Function words
    /// are in most texts.
    fn is_selected_by_words(&self, terms: &QueryTerms, list: &[ListedText<'_>]) -> bool {
        let max_bytes = MAX_TEXT_BYTES.min(MAX_LIST_BYTES / list.len().max(1));
        let slots = terms.slots.iter().take(MAX_WORDS).enumerate();
        let selecting: Vec<(usize, &Slot)> = slots.filter(|(_, slot)| !is_listed(&slot.text)).collect();
        let has_word = |counted: &CountedText| {
            let occurs =
                |number: usize| counted.words.get(number).is_some_and(|word| !word.positions.is_empty());
            selecting.iter().any(|(number, _)| occurs(*number))
        };
        let has_part = |text: Option<&str>| {
            let text = first_bytes(text.unwrap_or_default(), max_bytes).to_lowercase();
            let mut parts = selecting.iter().filter(|(_, slot)| slot.text.chars().count() >= MIN_PART);
            parts.any(|(_, slot)| text.contains(&slot.text))
        };
        let results = self.texts.iter().zip(list);
        let without = results
            .filter(|(counted, item)| !has_word(counted) && !has_part(item.title) && !has_part(item.text));
        without.count() * 10 <= list.len()
    }

    fn scores(self, terms: &QueryTerms) -> Vec<f32> {
        let Self { texts } = self;
        let records = texts.len() as u64;
        let frequency = |has: &dyn Fn(&Occurrences) -> bool, number: usize| {
            let having = texts.iter().filter(|text| text.words.get(number).is_some_and(has));
            having.count() as u64
        };
        let mut lookups =
            Lookups { words: Vec::with_capacity(terms.slots.len()), records, ..Lookups::default() };
        let mut form_quality = Vec::with_capacity(terms.slots.len());
        for (number, slot) in terms.slots.iter().enumerate() {
            let itself = frequency(&|word| word.itself > 0, number);
            let any = if itself > 0 { itself } else { frequency(&|word| word.forms > 0, number) };
            let weight = if any > 0 { lookups.rarity(any) * importance(slot) } else { 0.0 };
            lookups.words.push(Lookup::new(slot, Vec::new(), weight));
            form_quality.push(if itself > 0 { FORM_QUALITY } else { ONLY_FORM_QUALITY });
        }
        let lengths: f32 = texts.iter().map(|text| to_float(text.length)).sum();
        let average = (lengths / to_float(saturated(texts.len()))).max(1.0);
        let evidence = texts.into_iter().zip(0..).map(|(text, row)| Evidence {
            row,
            stream: 0,
            time: None,
            likeness: None,
            record: text.into_record(average, &form_quality),
        });
        let mut scores = vec![0.0; saturated(records)];
        for candidate in score(terms, &lookups, evidence.collect(), &[]) {
            if let Some(known) = usize::try_from(candidate.row).ok().and_then(|row| scores.get_mut(row)) {
                *known = candidate.score;
            }
        }
        scores
    }
}

impl CountedText {
    fn add(&mut self, known: &mut KnownWords, text: &str, is_title: bool) {
        let start = self.length;
        let mut folded = String::new();
        for word in words(text) {
            let position = start.saturating_add(saturated(word.position));
            self.length = self.length.max(position.saturating_add(1));
            if !known.forms.may_have(text, &word) {
                continue;
            }
            folded.clear();
            fold_into(text.get(word.range.clone()).unwrap_or_default(), &mut folded);
            for FoundWord { number, is_itself } in known.found(&folded).iter().copied() {
                let Some(found) = self.words.get_mut(number) else { continue };
                if is_itself {
                    found.itself += 1;
                    found.is_in_title |= is_title;
                } else {
                    found.forms += 1;
                    found.form_is_in_title |= is_title;
                }
                if found.positions.len() < MAX_POSITIONS && found.positions.last() != Some(&position) {
                    found.positions.push(position);
                }
            }
        }
    }

    fn into_record(self, average: f32, form_quality: &[f32]) -> RankedRecord {
        let matches = self.words.into_iter().zip(form_quality).map(|(word, form)| {
            let quality = |itself: bool, other: bool| match (itself, other) {
                (true, _) => 1.0,
                (false, true) => *form,
                (false, false) => 0.0,
            };
            WordMatches {
                frequency: to_float(word.itself) + form * to_float(word.forms),
                quality: quality(word.itself > 0, word.forms > 0),
                title_quality: quality(word.is_in_title, word.form_is_in_title),
                positions: word.positions,
            }
        });
        RankedRecord {
            matches: matches.collect(),
            relative_length: to_float(self.length) / average,
            title_words: self.title_words,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of words")]
fn to_float(count: u32) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result of a list: its id and its text. The title is the part before a colon.
    type Row = (usize, String);

    fn text_of(row: &Row) -> ListedText<'_> {
        let (title, text) =
            row.1.split_once(": ").map_or((None, row.1.as_str()), |(title, text)| (Some(title), text));
        ListedText { title, text: Some(text) }
    }

    /// Orders rows and returns their numbers.
    fn ordered(query: &str, rows: impl IntoIterator<Item = String>) -> Vec<usize> {
        let rows: Vec<Row> = rows.into_iter().enumerate().collect();
        order_by_words(query, rows, text_of).into_iter().map(|(number, _)| number).collect()
    }

    /// Returns rows of a text, of which one is another.
    fn rows(count: usize, text: &str, other: &str, at: usize) -> Vec<String> {
        (0..count).map(|number| if number == at { other.to_owned() } else { text.to_owned() }).collect()
    }

    #[test]
    fn answer_of_an_unordered_list_comes_first_and_the_rest_stays() {
        for (query, text, other) in [
            ("unpaid invoice", "An invoice of March", "An unpaid invoice of April"),
            ("unpaid invoice", "The invoice of March", "Unpaid invoices: of April"),
            // A form of a word of which no result has the word itself.
            ("paying rent", "They rent a boat", "They paid rent, and pay rent"),
            ("the invoice number", "The number of the page", "The number of an invoice"),
            ("東京 地図", "東京の本", "東京の地図"),
            // Words as parts of other words, as a search of texts finds them.
            ("log error", "a catalogue", "a log of an error"),
        ] {
            for count in [MIN_ORDERED, 45] {
                for at in [FIRST, count - 1] {
                    let order = ordered(query, rows(count, text, other, at));
                    let others = (0..count).filter(|number| *number != at);
                    assert_eq!(
                        order,
                        std::iter::once(at).chain(others).collect::<Vec<_>>(),
                        "{query} {other}"
                    );
                }
            }
        }
    }

    #[test]
    fn order_of_a_server_is_kept_where_it_tells_something() {
        let (loose, exact) = ("An invoice of March", "An unpaid invoice");
        let ranked = |count: usize| (0..count).map(|at| if at < 12 { exact } else { loose }.to_owned());
        let by_meaning = (0..40).map(|at| if at % 3 == 0 { loose } else { "A bill of April" }.to_owned());
        for (case, list) in [
            ("all of it is read at once", rows(MIN_ORDERED - 1, loose, exact, MIN_ORDERED - 2)),
            ("the first results are the best", ranked(40).collect()),
            ("results have none of the words", by_meaning.chain([exact.to_owned()]).collect()),
            ("equal results", rows(40, loose, loose, 0)),
            ("empty texts", rows(40, "", exact, 30)),
            ("no results", Vec::new()),
        ] {
            assert_eq!(
                ordered("unpaid invoice", list.clone()),
                (0..list.len()).collect::<Vec<_>>(),
                "{case}"
            );
        }
        // Function words say nothing about how a list was selected.
        let sentence = "dogs that help in a park";
        let list = rows(40, "In a town that is far", "A park for dogs that help in a town", 30);
        assert_eq!(ordered(sentence, list), (0..40).collect::<Vec<_>>());
        for query in ["", "***"] {
            let list = rows(40, loose, exact, 30);
            assert_eq!(ordered(query, list), (0..40).collect::<Vec<_>>(), "{query}");
        }
    }

    #[test]
    fn long_queries_and_texts_are_compared_by_their_beginning() {
        let query = (0..1_000).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ");
        let text = "word1 ".repeat(MAX_TEXT_BYTES / 6 + 1);
        let order = ordered(&query, rows(25, &text, &format!("{text} word2"), 15));
        assert_eq!(order, (0..25).collect::<Vec<_>>());
        let order = ordered(&query, rows(25, &text, &format!("word2 {text}"), 15));
        assert_eq!((order[0], order.len()), (15, 25));
    }
}
