//! Words that each record of a list must have: a condition, where a search ranks.
//!
//! A record passes if it has every piece of the text: a word or another form of it, or the words of an identifier or quotation
//! one after the other. There are no replacements of words that no record has, so that a count is exact. The condition is
//! evaluated by an index, which looks up the spellings of each piece among its words, and by the texts of one record, whose
//! words then are the ones to look among: both give the same.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use fetchwell_core::record::{RecordData, own_title};
use fetchwell_source::{QueryFault, SearchOperator, SearchText, SourceError};

use super::content::texts;
use super::spelling::{Spelling, looked_up_parts, spellings};
use super::stems::Inflection;
use super::terms::{Phrase, pieces};
use super::words::{PossibleWords, UNDERSCORE, WordKind, fold_into, words};

/// Maximum number of words and phrases of a filter.
const MAX_PIECES: usize = 50;

/// Words among which those of a filter are looked up.
pub trait WordList {
    /// Error of a lookup.
    type Error;

    /// Returns true if a record has a word.
    ///
    /// # Errors
    ///
    /// The words cannot be read.
    fn has_word(&self, word: &str) -> Result<bool, Self::Error>;

    /// Returns all words that begin with a text and are accepted.
    ///
    /// # Errors
    ///
    /// The words cannot be read.
    fn beginning_with(
        &self,
        prefix: &str,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>, Self::Error>;
}

/// Condition on the words of records.
pub struct WordFilter {
    /// Forms of each piece of which a record must have one.
    required: Vec<Vec<PieceForm>>,
    /// Forms of each piece that a record must not have.
    excluded: Vec<Vec<PieceForm>>,
    wanted: WantedWords,
}

/// Form in which a record can have a piece of the text.
enum PieceForm {
    /// A word or another form of it.
    Word { text: String, inflection: Option<Inflection> },
    /// Words one after the other.
    Phrase(Phrase),
}

/// Part of a text that each record of a list must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredPiece<'a> {
    /// Text between white space, or a form of it.
    Word(&'a str),
    /// Text of a quotation.
    Phrase(&'a str),
}

/// Returns the parts of a text that each record must have. Some may have no word.
pub fn required_pieces(text: &SearchText) -> impl Iterator<Item = RequiredPiece<'_>> {
    let written = pieces(&text.words).into_iter().map(|piece| {
        let written = text.words.get(piece.place).unwrap_or_default();
        if piece.is_quoted { RequiredPiece::Phrase(written) } else { RequiredPiece::Word(written) }
    });
    written.chain(text.phrases.iter().map(|phrase| RequiredPiece::Phrase(phrase)))
}

/// Spellings of the pieces of a filter in the words of an index.
#[derive(Debug, PartialEq, Eq)]
pub struct FilterSpellings {
    /// Spellings of each piece of which a record must have one.
    pub required: Vec<Vec<Spelling>>,
    /// Spellings of which a record must have none.
    pub excluded: Vec<Vec<Spelling>>,
}

impl std::fmt::Debug for WordFilter {
    /// Writes no text of the query.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordFilter").field("required", &self.required.len()).finish_non_exhaustive()
    }
}

impl WordFilter {
    /// Creates the condition of a text.
    ///
    /// # Errors
    ///
    /// The text has no words, too many of them, or operators other than phrases and exclusions.
    pub fn new(text: &SearchText) -> Result<Self, SourceError> {
        let refused = |problem: String, hint: &str| SourceError::InvalidQuery {
            fault: QueryFault::InvalidArgument,
            problem,
            hint: hint.to_owned(),
        };
        let is_known = |operator: &SearchOperator| {
            matches!(operator, SearchOperator::Phrase | SearchOperator::Exclusion)
        };
        if let Some(operator) = text.operators().iter().find(|operator| !is_known(operator)) {
            let operator = match operator {
                SearchOperator::Time => "`since:`, `after:` or `before:`".to_owned(),
                other => format!("`{}`", other.as_str()),
            };
            let problem = format!("{operator} is an operator of `search`, not of a list");
            return Err(refused(problem, "Use `filter` on a field of the stream."));
        }
        let forms = |piece: RequiredPiece<'_>| match piece {
            RequiredPiece::Word(word) => piece_forms(word),
            RequiredPiece::Phrase(phrase) => phrase_forms(phrase),
        };
        let has_words = |forms: &Vec<PieceForm>| !forms.is_empty();
        let required: Vec<_> = required_pieces(text).map(forms).filter(has_words).collect();
        let excluded = text.excluded.iter().map(|excluded| exclusion_forms(excluded));
        let excluded: Vec<_> = excluded.filter(has_words).collect();
        if required.is_empty() {
            return Err(refused(
                "there is no word that records must have".to_owned(),
                "Give words or numbers, or leave them out.",
            ));
        }
        if required.len() + excluded.len() > MAX_PIECES {
            return Err(refused(
                format!("there are more than {MAX_PIECES} words and phrases"),
                "Give the words that matter; `search` takes longer texts.",
            ));
        }
        let wanted = WantedWords::new(required.iter().chain(&excluded).flatten());
        Ok(Self { required, excluded, wanted })
    }

    /// Returns the words that [`Self::spellings_in`] looks up, for a list that looks up many at once.
    pub fn exact_words(&self) -> impl Iterator<Item = &str> {
        self.wanted.exact.iter().map(String::as_str)
    }

    /// Returns the spellings of the pieces among the words of an index. A piece without spellings is in no record.
    ///
    /// # Errors
    ///
    /// The words cannot be read.
    pub fn spellings_in<L: WordList>(&self, list: &L) -> Result<FilterSpellings, L::Error> {
        let spellings = |forms: &Vec<PieceForm>| {
            let mut spellings = Vec::new();
            forms.iter().try_for_each(|form| form.add_spellings(list, &mut spellings))?;
            Ok(spellings)
        };
        let required = self.required.iter().map(spellings).collect::<Result<_, _>>()?;
        Ok(FilterSpellings {
            required,
            excluded: self.excluded.iter().map(spellings).collect::<Result<_, _>>()?,
        })
    }

    /// Returns true if a record passes, by its key and its JSON text. One that cannot be parsed does not.
    pub fn passes(&self, key: &str, data: &str) -> bool {
        let Ok(data) = serde_json::from_str::<RecordData>(data) else { return false };
        let places = WordPlaces::new(&self.wanted, key, &data);
        let FilterSpellings { required, excluded } = match self.spellings_in(&places) {
            Ok(spellings) => spellings,
            Err(never) => match never {},
        };
        let has_any = |spellings: &Vec<Spelling>| spellings.iter().any(|spelling| places.has(spelling));
        required.iter().all(has_any) && !excluded.iter().any(has_any)
    }
}

impl PieceForm {
    fn word(text: String) -> Self {
        Self::Word { inflection: Inflection::new(&text), text }
    }

    fn add_spellings<L: WordList>(&self, list: &L, found: &mut Vec<Spelling>) -> Result<(), L::Error> {
        match self {
            Self::Phrase(phrase) => found.extend(spellings(phrase, &|word| list.has_word(word))?),
            Self::Word { text, inflection } => {
                if list.has_word(text)? {
                    found.push(vec![(0, text.clone())]);
                }
                if let Some(inflection) = inflection {
                    let forms = list.beginning_with(inflection.prefix(), &|word| inflection.is_form(word))?;
                    found.extend(forms.into_iter().map(|form| vec![(0, form)]));
                }
            }
        }
        Ok(())
    }
}

/// Returns the form of a quotation: its words as they are, one after the other.
fn phrase_forms(text: &str) -> Vec<PieceForm> {
    let Some(phrase) = Phrase::new(text) else { return Vec::new() };
    match (phrase.0.len(), joined_words(text).next()) {
        (1, Some(signed)) => vec![PieceForm::Word { text: signed, inflection: None }],
        _ => vec![PieceForm::Phrase(phrase)],
    }
}

/// Returns the forms of words to exclude, as they are.
fn exclusion_forms(text: &str) -> Vec<PieceForm> {
    if text.contains(char::is_whitespace) {
        return phrase_forms(text);
    }
    let as_written = |form| match form {
        PieceForm::Word { text, .. } => PieceForm::Word { text, inflection: None },
        PieceForm::Phrase(phrase) => PieceForm::Phrase(phrase),
    };
    piece_forms(text).into_iter().map(as_written).collect()
}

/// Returns the words of a text that are joined by signs, such as `c++`, or one letter long with signs.
fn joined_words(text: &str) -> impl Iterator<Item = String> {
    let joined = words(text).filter(|word| word.kind == WordKind::Joined && word.range.len() > 1);
    joined.map(|word| word.folded(text)).filter(|word| word != UNDERSCORE)
}

/// Returns the forms of a piece between white space.
fn piece_forms(piece: &str) -> Vec<PieceForm> {
    let Some(phrase) = Phrase::new(piece) else { return Vec::new() };
    let joined: Vec<String> = joined_words(piece).collect();
    match (phrase.0.as_slice(), joined.first()) {
        // The word with its signs, such as `C++`.
        ([_], Some(signed)) => vec![PieceForm::Word { text: signed.clone(), inflection: None }],
        ([word], None) => {
            let mut forms = vec![PieceForm::word(word.text.clone())];
            if !word.parts.is_empty() {
                forms.extend(phrase_forms(&word.parts.join(" ")));
            }
            forms
        }
        // The words of a piece, and these as one if they are joined by a hyphen.
        _ => {
            let whole = |word: &String| is_whole(piece, word);
            let joined = joined.iter().find(|word| whole(word)).cloned().map(PieceForm::word);
            joined.into_iter().chain([PieceForm::Phrase(phrase)]).collect()
        }
    }
}

/// Returns true if a joined form has all letters and digits of a piece.
fn is_whole(piece: &str, joined: &str) -> bool {
    let mut letters = String::new();
    words(piece)
        .filter(|word| matches!(word.kind, WordKind::Spaced))
        .for_each(|word| fold_into(piece.get(word.range).unwrap_or_default(), &mut letters));
    letters == joined
}

/// Words of records that matter to a filter. Most words of a text are none of them.
#[derive(Default)]
struct WantedWords {
    exact: HashSet<String>,
    /// Beginnings of other forms of words.
    beginnings: Vec<String>,
    possible: PossibleWords,
}

impl WantedWords {
    fn new<'a>(forms: impl Iterator<Item = &'a PieceForm>) -> Self {
        let mut wanted = Self::default();
        for form in forms {
            match form {
                PieceForm::Phrase(phrase) => wanted.add_phrase(phrase),
                PieceForm::Word { text, inflection } => {
                    wanted.add(text);
                    if let Some(inflection) = inflection {
                        wanted.possible.add_beginning(inflection.prefix());
                        wanted.beginnings.push(inflection.prefix().to_owned());
                    }
                }
            }
        }
        wanted
    }

    fn add_phrase(&mut self, phrase: &Phrase) {
        let parts = looked_up_parts(phrase);
        let written = phrase.0.iter().flat_map(|word| word.parts.iter().chain([&word.text]));
        parts.chain(written.map(String::as_str)).for_each(|word| self.add(word));
    }

    fn add(&mut self, word: &str) {
        self.possible.add(word);
        self.exact.insert(word.to_owned());
    }

    fn has(&self, word: &str) -> bool {
        self.exact.contains(word) || self.beginnings.iter().any(|beginning| word.starts_with(beginning))
    }
}

/// Places of the words of one record that matter to a filter.
struct WordPlaces(HashMap<String, Vec<usize>>);

impl WordPlaces {
    fn new(wanted: &WantedWords, key: &str, data: &RecordData) -> Self {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        let (mut start, mut folded) = (0, String::new());
        for text in texts(key, data, own_title(data), |_| ()) {
            let mut end = start;
            for word in words(&text) {
                let place = start + word.position;
                end = place + 1;
                if !wanted.possible.may_have(&text, &word) {
                    continue;
                }
                folded.clear();
                fold_into(text.get(word.range).unwrap_or_default(), &mut folded);
                if let Some(known) = places.get_mut(&folded) {
                    known.push(place);
                } else if wanted.has(&folded) {
                    places.insert(folded.clone(), vec![place]);
                }
            }
            // No phrase goes from one text to the next.
            start = end + 1;
        }
        places.values_mut().for_each(|places| places.sort_unstable());
        Self(places)
    }

    /// Returns true if the record has the words of a spelling at their distances.
    fn has(&self, spelling: &Spelling) -> bool {
        let Some((first_at, first)) = spelling.first() else { return false };
        let Some(starts) = self.0.get(first) else { return false };
        let others: Option<Vec<(usize, &Vec<usize>)>> =
            spelling.iter().skip(1).map(|(at, word)| Some((at - first_at, self.0.get(word)?))).collect();
        let Some(others) = others else { return false };
        let has_rest = |start: &usize| {
            others.iter().all(|(distance, places)| places.binary_search(&(start + distance)).is_ok())
        };
        starts.iter().any(has_rest)
    }
}

impl WordList for WordPlaces {
    type Error = Infallible;

    fn has_word(&self, word: &str) -> Result<bool, Infallible> {
        Ok(self.0.contains_key(word))
    }

    fn beginning_with(
        &self,
        prefix: &str,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>, Infallible> {
        let words = self.0.keys().filter(|word| word.starts_with(prefix) && accepts(word));
        Ok(words.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Tests a filter on records with one text each.
    #[track_caller]
    fn check(text: &SearchText, expect: &[(&str, bool)]) {
        let filter = WordFilter::new(text).unwrap();
        for (body, passes) in expect {
            let data = json!({ "body": body, "n": 7 }).to_string();
            assert_eq!(filter.passes("key1", &data), *passes, "{text:?} {body}");
        }
    }

    #[test]
    fn a_record_passes_with_every_word_or_a_form_of_it() {
        check(
            &SearchText::plain("Invoice  acme"),
            &[("invoices of Acmé", true), ("ACME invoice", true), ("acme", false), ("invoiced ac me", false)],
        );
        check(&SearchText::plain("key1 7 x"), &[("x", true), ("y", false)]);
        check(&SearchText::plain("parseFile"), &[("parse file", true), ("ParseFile", true), ("file", false)]);
        check(&SearchText::plain("東京都"), &[("大東京都内", true), ("京都と東京", false)]);
        let plus = [("in C++.", true), ("in C", false), ("D", false)];
        check(&SearchText::plain("C++"), &plus);
        check(&SearchText { phrases: vec!["C++".to_owned()], ..SearchText::default() }, &plus);
        let without =
            |excluded: &str| SearchText { excluded: vec![excluded.to_owned()], ..SearchText::plain("in") };
        check(&without("C++"), &[("in C++.", false), ("in C", true)]);
        check(&without("wi-fi"), &[("in wifi", false), ("in wi fi", false), ("in fi", true)]);
    }

    #[test]
    fn words_of_an_identifier_or_quotation_follow_each_other() {
        check(
            &SearchText::plain("INV-2024-001"),
            &[("see inv 2024 001", true), ("INV-2024-0013", false), ("001 inv-2024", false)],
        );
        check(&SearchText::plain("wi-fi"), &[("wifi", true), ("Wi-Fi", true), ("wi and fi", false)]);
        check(&SearchText::plain("foo_bar"), &[("foo_bar", true), ("fooBar", true), ("bar foo", false)]);
        let phrases = vec!["github actions".to_owned()];
        let excluded = vec!["draft".to_owned(), "not this".to_owned()];
        let text = SearchText { phrases, excluded, ..SearchText::plain("x") };
        check(
            &text,
            &[
                ("x GitHub Actions", true),
                ("github x actions", false),
                ("x github action", false),
                ("x github actions drafts", true),
                ("x github actions draft", false),
                ("x github actions, not this", false),
            ],
        );
    }

    #[test]
    fn phrases_end_with_a_text() {
        let filter = WordFilter::new(&SearchText::plain("\"a b\"")).unwrap();
        assert!(filter.passes("k", &json!({"one": "b a", "two": "x a b"}).to_string()));
        assert!(!filter.passes("k", &json!({"one": "a", "two": "b"}).to_string()));
        assert!(!filter.passes("k", "{"));
    }

    #[test]
    fn other_operators_and_texts_without_words_are_refused() {
        let many: String = (0..=MAX_PIECES).map(|number| format!("w{number} ")).collect();
        for text in [
            SearchText::plain(" \"?\" *"),
            SearchText::plain(&many),
            SearchText { has_attachment: true, ..SearchText::plain("x") },
            SearchText { excluded: vec!["x".to_owned()], ..SearchText::default() },
        ] {
            assert!(WordFilter::new(&text).is_err(), "{text:?}");
        }
    }
}
