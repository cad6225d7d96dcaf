//! Divides the text of a search into words.
//!
//! A text has slots, which are its different words, and places, which are the slots in the order of the text. Words
//! that stand together without white space (`user_123`, a path, a text in a script without spaces) or within quotes
//! are a unit: a record that has them in sequence ranks higher.
//!
//! Words of a request and of a date have a share of the importance of others (`understanding`).
//!
//! * `joined`: slots that stand for several words, such as `wifi` for `wi-fi`

mod joined;

use std::collections::HashMap;
use std::ops::Range;

use fetchwell_source::{SearchDate, SearchField, SearchText};

use super::understanding::request_words::{QueryWord, Shares, WHOLE, WordRole, asks, is_listed, shares_of};
use super::understanding::{RecordKind, TimeWindow, word_share};
use super::words::{Word, WordKind, words};

/// Maximum number of places of a text that are looked at. Later words are ignored.
const MAX_PLACES: usize = 400;

/// Maximum number of times that records are raised for. Candidates of each are selected.
const MAX_WINDOWS: usize = 4;

/// Maximum number of units that are looked up as a whole, and of the words of one.
const MAX_UNITS: usize = 4;
const MAX_UNIT_WORDS: usize = 8;

/// Different word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Folded text of the word.
    pub text: String,
    pub(crate) kind: WordKind,
    /// Importance beside a word of the matter, in percent.
    share: u8,
}

impl Slot {
    /// Returns true for a word that the query is about, and not one of a request or date.
    pub(crate) fn is_matter(&self) -> bool {
        self.share >= WHOLE
    }

    /// Returns the importance of the word beside one of the matter, in percent.
    pub(crate) fn percent(&self) -> u8 {
        self.share
    }

    /// Returns the importance of the word beside one of the matter, 0 to 1.
    pub(crate) fn share(&self) -> f32 {
        share_of(self.share)
    }
}

/// Returns the share of a number of percent.
pub(crate) fn share_of(percent: u8) -> f32 {
    f32::from(percent) / f32::from(WHOLE)
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

/// Slot for several words of the query as one, such as `wifi` for `wi-fi` or `set up` as `setup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JoinedSlot {
    /// Number of the slot.
    pub(crate) slot: usize,
    /// Slots of the words that it stands for, in order.
    pub(crate) parts: Vec<usize>,
    /// Distance of each of these words from the first one.
    pub(crate) offsets: Vec<usize>,
    /// True if a record that has the words as one hardly means anything else.
    pub(crate) is_certain: bool,
    /// Slot of the underscores between the words, if the query has them there.
    pub(crate) underscore: Option<usize>,
}

/// Word of a piece of a query with its slot.
#[derive(Debug)]
struct WrittenWord {
    range: Range<usize>,
    kind: WordKind,
    slot: usize,
    position: usize,
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
    /// Slots that stand for several words.
    pub(crate) joined: Vec<JoinedSlot>,
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
    /// Words that the text must contain, because the names of attachments must.
    pub filename: Vec<String>,
    /// Times that records are raised for.
    pub dates: Vec<TimeWindow>,
    /// Kinds of records that the query asks for.
    pub kinds: Vec<RecordKind>,
    /// True if the query is about more than a time.
    pub has_matter: bool,
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
        let mut terms = Self { has_matter: true, ..Self::default() };
        let mut slots: HashMap<String, usize> = HashMap::new();
        let mut roles = Vec::new();
        for piece in pieces(&text.words) {
            let written = text.words.get(piece.place.clone()).unwrap_or_default();
            terms.add_whole_unit(written, &mut slots);
            roles.resize(terms.places.len(), piece.role(written, text));
            if terms.is_cut {
                break;
            }
        }
        terms.weigh(&roles);
        terms.add_adjacent(&mut slots);
        for phrase in &text.phrases {
            terms.add_unit(phrase, &mut slots);
            terms.required.extend(Phrase::new(phrase));
        }
        terms.excluded.extend(text.excluded.iter().filter_map(|phrase| Phrase::new(phrase)));
        for field in &text.fields {
            for piece in pieces(&field.text) {
                terms.add_whole_unit(field.text.get(piece.place).unwrap_or_default(), &mut slots);
            }
            let words = field_words(&field.text);
            match field.field {
                SearchField::Title => terms.title.extend(words),
                SearchField::From => terms.from.extend(words),
                SearchField::Filename => terms.filename.extend(words),
            }
        }
        // Words of phrases and fields are the matter also where a request has them.
        let first = roles.len();
        for place in terms.places.iter().skip(first) {
            if let Some(slot) = terms.slots.get_mut(place.slot) {
                slot.share = WHOLE;
            }
        }
        terms.has_matter |= terms.places.len() > first;
        terms.dates = text.dates.iter().take(MAX_WINDOWS).map(TimeWindow::new).collect();
        terms
    }

    /// Returns true if the query is about a word of a text, which is not only one of its request or date.
    #[must_use]
    pub fn are_about(&self, text: &str) -> bool {
        let is_matter = |word: &str| self.slots.iter().any(|slot| slot.is_matter() && slot.text == word);
        words(text).any(|word| is_matter(&word.folded(text)))
    }

    /// Returns true if each word is in a phrase that a record must contain.
    #[must_use]
    pub fn are_required(&self) -> bool {
        let is_required = |slot: &Slot| {
            let mut words = self.required.iter().flat_map(|Phrase(words)| words);
            words.any(|word| word.text == slot.text)
        };
        !self.slots.is_empty() && self.slots.iter().filter(|slot| !slot.is_joined()).all(is_required)
    }

    /// Gives each word its share. A word that is there twice has the greater one.
    fn weigh(&mut self, roles: &[WordRole]) {
        let words = self.places.iter().zip(roles).filter_map(|(place, role)| {
            let slot = self.slots.get(place.slot)?;
            let role = if slot.kind == WordKind::Spaced || *role != WordRole::Plain {
                *role
            } else {
                WordRole::Matter
            };
            Some(QueryWord { text: &slot.text, role })
        });
        let Shares { shares, kinds, has_matter } = shares_of(&words.collect::<Vec<_>>());
        self.slots.iter_mut().for_each(|slot| slot.share = 0);
        for (place, share) in self.places.iter().zip(shares) {
            if let Some(slot) = self.slots.get_mut(place.slot) {
                slot.share = slot.share.max(share);
            }
        }
        self.weigh_joined();
        (self.kinds, self.has_matter) = (kinds, has_matter);
    }

    /// Returns true if there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
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
        let mut parts: Vec<WrittenWord> = Vec::new();
        for word in query_words(piece) {
            if self.places.len() == MAX_PLACES {
                self.is_cut = true;
                return;
            }
            let slot = self.slot(word.folded(piece), word.kind, WHOLE, slots);
            self.places.push(Place { slot, position: start + word.position, unit });
            if matches!(word.kind, WordKind::Spaced | WordKind::Part) {
                parts.push(WrittenWord { range: word.range, kind: word.kind, slot, position: word.position });
            }
        }
        self.add_written(piece, &parts, slots);
    }
}

/// Piece of a text between white space, or in quotes.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) place: Range<usize>,
    pub(crate) is_quoted: bool,
}

impl Piece {
    /// Returns the role of the words of the piece. Pieces of several words are identifiers, except with an apostrophe
    /// (`what's`) and those of words of requests (`est-ce`).
    fn role(&self, written: &str, text: &SearchText) -> WordRole {
        if self.is_quoted {
            return WordRole::Matter;
        }
        let is_in =
            |date: &&SearchDate| date.place.start < self.place.end && self.place.start < date.place.end;
        if let Some(date) = text.dates.iter().find(is_in) {
            return WordRole::Date(word_share(date.precision));
        }
        let plain = words(written).filter(|word| !word.is_joined());
        let folded: Vec<String> = plain.map(|word| word.folded(written)).collect();
        let is_request = folded.iter().all(|word| is_listed(word)) && folded.iter().any(|word| asks(word));
        let is_plain = folded.len() < 2 || written.contains(['\'', '’']) || is_request;
        if is_plain { WordRole::Plain } else { WordRole::Matter }
    }
}

/// Returns the pieces of a text: what stands within quotes, and what white space divides.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    while let Some((before, opened)) =
        text.get(start..).and_then(|rest| rest.split_once(['"', '“', '„', '«']))
    {
        let Some((quoted, after)) = opened.split_once(['"', '”', '“', '»']) else { break };
        add_pieces(before, start, &mut pieces);
        let inside = text.len() - opened.len();
        pieces.push(Piece { place: inside..inside + quoted.len(), is_quoted: true });
        start = text.len() - after.len();
    }
    add_pieces(text.get(start..).unwrap_or_default(), start, &mut pieces);
    pieces
}

/// Adds the pieces of a part of a text that begins at byte `start`.
fn add_pieces(part: &str, start: usize, pieces: &mut Vec<Piece>) {
    let mut at = start;
    for piece in part.split_inclusive(char::is_whitespace) {
        let written = piece.trim_end();
        if !written.is_empty() {
            pieces.push(Piece { place: at..at + written.len(), is_quoted: false });
        }
        at += piece.len();
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

/// Returns the words that a field must contain, as they are folded. A word in camel case need not have its parts:
/// `from:McDonald` finds `mcdonald`.
pub(crate) fn field_words(text: &str) -> Vec<String> {
    let whole = query_words(text).into_iter().filter(|word| word.kind != WordKind::Part);
    whole.map(|word| word.folded(text)).collect()
}

/// Returns the words of a text that are looked up. A character that belongs to a pair is looked up as that pair, which
/// is rarer.
fn query_words(text: &str) -> Vec<Word> {
    let mut kept = Vec::new();
    let mut paired = 0;
    let mut found = words(text).filter(|word| !word.is_joined()).peekable();
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

    /// Compares the shares of the words of a query in percent.
    #[track_caller]
    fn check_shares(text: &SearchText, expect: &[(&str, u8)]) {
        let terms = QueryTerms::new(text);
        let found: Vec<(&str, u8)> =
            terms.slots.iter().map(|slot| (slot.text.as_str(), slot.share)).collect();
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn words_of_requests_and_dates_have_shares() {
        check_shares(
            &SearchText::plain("what's in to_do"),
            &[("what", 8), ("s", 8), ("in", 8), ("to", 100), ("do", 100), ("_", 0), ("todo", 100)],
        );
        check_shares(
            &SearchText::plain("find \"me the\" me rye"),
            &[("find", 100), ("me", 100), ("the", 100), ("rye", 100)],
        );
        let phrases = vec!["the mail".to_owned()];
        let text = SearchText { phrases, ..SearchText::plain("show me the rye") };
        check_shares(&text, &[("show", 8), ("me", 8), ("the", 100), ("rye", 100), ("mail", 100)]);
        let date = SearchDate {
            start: jiff::Timestamp::UNIX_EPOCH,
            end: jiff::Timestamp::UNIX_EPOCH,
            precision: fetchwell_source::DatePrecision::Day,
            place: 4..14,
        };
        let text = SearchText { dates: vec![date], ..SearchText::plain("rye 1970-01-01") };
        check_shares(&text, &[("rye", 100), ("1970", 20), ("01", 20)]);
        assert_eq!(QueryTerms::new(&text).dates.len(), 1);
        assert!(QueryTerms::new(&text).has_matter);
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
