//! Compares the texts of two records: whether one says everything that the other says.
//!
//! Pure. Dates, addresses, ids and labels do not count, so a message that was sent again, or a reply that quotes one, is a
//! near-copy. Numbers and words of the query do: invoices with different numbers, or texts of which one has more of the
//! query, are never near-copies.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use fetchwell_core::record::{RecordData, is_author_field, is_same_name, is_time_field};
use serde_json::Value;

use super::super::text_cache::TextForm;
use super::super::words::{WordKind, fold_into, words};
use super::dates::without_dates;

/// Number of words of a sequence.
const SEQUENCE: usize = 3;

/// Minimum number of different sequences of a text that is compared by them. Shorter texts are copies if they are equal.
const MIN_SEQUENCES: usize = 10;

/// Minimum share of its sequences that the shorter text has in common with the longer one, in percent.
const MIN_SHARE_OF_SHORTER: usize = 90;

/// Minimum share of its sequences that the longer text has in common with the shorter one, in percent.
const MIN_SHARE_OF_LONGER: usize = 60;

/// Names of fields that say who a record is for, which record it is, or where it is kept.
const UNCOMPARED: [&str; 25] = [
    "to",
    "cc",
    "bcc",
    "reply_to",
    "recipients",
    "participants",
    "id",
    "uid",
    "uuid",
    "guid",
    "etag",
    "message_id",
    "in_reply_to",
    "references",
    "thread_id",
    "conversation_id",
    "labels",
    "label",
    "folder",
    "folders",
    "mailbox",
    "tags",
    "flags",
    "categories",
    "category",
];

/// Text of a record as it is compared with others, whatever the query.
#[derive(Debug, Default, PartialEq)]
pub struct NearText {
    /// Hashes of the compared words, sorted.
    words: Box<[ShortHash]>,
    /// Hashes of sequences of compared words, sorted.
    sequences: Box<[ShortHash]>,
    /// Hashes of compared numbers and words with digits, sorted.
    numbers: Box<[u64]>,
    /// Hashes of the words and numbers of all fields, sorted.
    present: Box<[ShortHash]>,
    /// Hash of all compared fields, dates included.
    whole: u64,
}

/// Hash of a word or sequence. A word is taken for one of another text's `n` words once in 2^32 / n comparisons.
type ShortHash = u32;

/// Words of texts that stand for words of a query, as hashes.
#[derive(Debug)]
pub(super) struct AskedWords(Vec<ShortHash>);

impl<'a> FromIterator<&'a String> for AskedWords {
    /// Takes folded words.
    fn from_iter<Words: IntoIterator<Item = &'a String>>(words: Words) -> Self {
        Self(words.into_iter().map(|word| short(hash(word))).collect())
    }
}

impl NearText {
    /// Reads the text of a record.
    pub(crate) fn new(data: &RecordData) -> Self {
        let mut text = TextInProgress::default();
        data.iter().for_each(|(name, value)| text.add(name, value, true));
        let TextInProgress { words, sequences, numbers, present, whole, .. } = text;
        let [words, sequences, present] = [words, sequences, present].map(sorted);
        Self { words, sequences, numbers: sorted(numbers), present, whole }
    }

    /// Returns true for each word of a query that any field has.
    pub(super) fn asked(&self, words: &AskedWords) -> Vec<bool> {
        words.0.iter().map(|word| self.present.binary_search(word).is_ok()).collect()
    }

    /// Returns true if the texts say the same, apart from dates, or if one quotes all of the other and adds little. Both must
    /// have the same words of the query.
    pub(super) fn is_near(&self, other: &Self) -> bool {
        if self.numbers != other.numbers {
            return false;
        }
        let (shorter, longer) =
            if self.sequences.len() <= other.sequences.len() { (self, other) } else { (other, self) };
        if shorter.sequences.len() < MIN_SEQUENCES {
            return self.whole == other.whole;
        }
        let has_share = |common: usize, text: &Self, percent| common * 100 >= text.sequences.len() * percent;
        if !has_share(shorter.sequences.len(), longer, MIN_SHARE_OF_LONGER)
            || common(&shorter.words, &longer.words) < shorter.words.len()
        {
            return false;
        }
        let shared = common(&shorter.sequences, &longer.sequences);
        has_share(shared, shorter, MIN_SHARE_OF_SHORTER) && has_share(shared, longer, MIN_SHARE_OF_LONGER)
    }
}

impl TextForm for NearText {
    fn from_record(data: &RecordData) -> Self {
        Self::new(data)
    }

    fn heap_bytes(&self) -> usize {
        let Self { words, sequences, numbers, present, .. } = self;
        let short: usize =
            [words, sequences, present].iter().map(|hashes| size_of::<ShortHash>() * hashes.len()).sum();
        short + size_of::<u64>() * numbers.len()
    }
}

/// Parts of a [`NearText`] in the order of the record.
#[derive(Debug, Default)]
struct TextInProgress {
    words: Vec<ShortHash>,
    sequences: Vec<ShortHash>,
    numbers: Vec<u64>,
    present: Vec<ShortHash>,
    whole: u64,
    folded: String,
}

impl TextInProgress {
    fn add(&mut self, name: &str, value: &Value, is_compared: bool) {
        let is_compared = is_compared && is_field_compared(name);
        match value {
            Value::String(text) => self.add_text(text, is_compared),
            Value::Array(items) => items.iter().for_each(|item| self.add(name, item, is_compared)),
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| self.add(name, value, is_compared));
            }
            Value::Number(number) => {
                let number = number.to_string();
                self.present.push(short(hash(&number)));
                if is_compared {
                    self.numbers.push(hash((name, &number)));
                    self.whole = hash((self.whole, name, &number));
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn add_text(&mut self, text: &str, is_compared: bool) {
        let left = if is_compared { without_dates(text) } else { Vec::new() };
        // The words of pieces between white space are those of the text.
        let is_whole = is_compared && left.len() == text.split_whitespace().count();
        let start = self.words.len();
        self.add_words(text, true, is_whole);
        if !is_compared {
            return;
        }
        self.whole = hash((self.whole, text));
        if !is_whole {
            left.into_iter().for_each(|piece| self.add_words(piece, false, true));
        }
        let added = self.words.get(start..).unwrap_or_default();
        self.sequences.extend(added.windows(SEQUENCE).map(|words| short(hash(words))));
    }

    /// Adds the words of a text to those that are there, and to those that are compared.
    fn add_words(&mut self, text: &str, is_present: bool, is_compared: bool) {
        for word in words(text) {
            let is_compared = is_compared && matches!(word.kind, WordKind::Spaced | WordKind::Single);
            self.folded.clear();
            fold_into(text.get(word.range).unwrap_or_default(), &mut self.folded);
            let word = hash(&self.folded);
            if is_present {
                self.present.push(short(word));
            }
            if is_compared {
                if self.folded.contains(char::is_numeric) {
                    self.numbers.push(word);
                }
                self.words.push(short(word));
            }
        }
    }
}

/// Returns different hashes in ascending order.
fn sorted<Hash: Ord>(mut hashes: Vec<Hash>) -> Box<[Hash]> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into_boxed_slice()
}

/// Returns true if a field of this name is compared.
fn is_field_compared(name: &str) -> bool {
    let is_other = UNCOMPARED.iter().any(|other| is_same_name(name, other));
    !is_other && !is_author_field(name) && !is_time_field(name)
}

/// Hashes a value, equally in every process.
fn hash(value: impl std::hash::Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Returns the low half of a hash.
fn short(hash: u64) -> ShortHash {
    let [first, second, third, fourth, ..] = hash.to_le_bytes();
    ShortHash::from_le_bytes([first, second, third, fourth])
}

/// Returns the number of values that two sorted lists have in common.
fn common(one: &[ShortHash], other: &[ShortHash]) -> usize {
    let mut left = other.iter().peekable();
    let is_common = |value: &&ShortHash| {
        while left.next_if(|other| other < value).is_some() {}
        left.peek() == Some(value)
    };
    one.iter().filter(is_common).count()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::lexical::text_cache::{CachedText, TextCache};

    const BODY: &str = "Dear all, the office is closed while the heating is repaired. Please take your plants home \
                        and leave the windows shut. The porter keeps a key for urgent cases.";

    #[track_caller]
    fn check(one: &Value, other: &Value, query: &str, expect: bool) {
        let asked: Vec<String> = query.split(' ').map(str::to_owned).collect();
        let asked: AskedWords = asked.iter().collect();
        let text = |value: &Value| NearText::new(value.as_object().unwrap());
        let (one_text, other_text) = (text(one), text(other));
        let has_equal_words = one_text.asked(&asked) == other_text.asked(&asked);
        assert_eq!(has_equal_words && one_text.is_near(&other_text), expect, "{query}: {one} {other}");
        assert_eq!(has_equal_words && other_text.is_near(&one_text), expect, "{query}: {other} {one}");
    }

    fn mail(subject: &str, body: &str) -> Value {
        json!({"subject": subject, "from": "ann@x.test", "date": "2026-03-12T10:00:00Z", "message_id": "1@x", "body": body})
    }

    #[test]
    fn messages_sent_again_or_quoted_are_near_copies() {
        let first = mail("Heating", BODY);
        let again = json!({"subject": "Heating", "from": "ann@x.test", "date": "2026-04-01T10:00:00Z",
            "message_id": "2@x", "labels": ["Archive"], "body": BODY});
        check(&first, &again, "heating office", true);
        check(
            &mail("Heating", &format!("12 March 2026 {BODY}")),
            &mail("Heating", &format!("3 May 2026 {BODY}")),
            "heating",
            true,
        );
        let quoted = BODY.replace(". ", ".\n> ");
        let reply = format!("Thank you, noted.\n\nOn Thu, 12 Mar 2026 at 10:00, Ann wrote:\n> {quoted}");
        let reply =
            json!({"subject": "Re: Heating", "from": "bob@x.test", "to": "ann@x.test", "body": reply});
        check(&first, &reply, "heating office", true);
        // The query is not about words of the reply, and the reply is not longer than the quotation.
        check(&first, &reply, "heating noted", false);
        check(&first, &reply, "bob heating", false);
        let long: String =
            (0..40).map(|number| format!("other{} ", ["a", "b", "c"][number % 3].repeat(number))).collect();
        check(&first, &mail("Re: Heating", &format!("{long} {BODY}")), "heating", false);
    }

    #[test]
    fn records_that_differ_in_what_is_searched_are_not_near_copies() {
        let invoice = |number: &str, sum: u32| json!({"subject": format!("Invoice {number}"), "amount": sum, "body": format!("Invoice {number}. {BODY}")});
        check(&invoice("A-1001", 10), &invoice("A-1001", 10), "invoice", true);
        check(&invoice("A-1001", 10), &invoice("A-1002", 10), "invoice", false);
        check(&invoice("A-1001", 10), &invoice("A-1001", 20), "invoice", false);
        for (one, other) in [
            ("for John Smith", "for Jane Miller"),
            ("at 10:00", "at 11:00"),
            ("https://pay.test/7", "https://pay.test/8"),
            ("version 1.2.3", "version 1.2.4"),
        ] {
            check(
                &mail("Order", &format!("{BODY} {one}")),
                &mail("Order", &format!("{BODY} {other}")),
                "order",
                false,
            );
        }
        // A word of the query that one text has and the other lacks.
        check(&mail("Order", BODY), &mail("Order", &format!("{BODY} It is not approved.")), "order", true);
        check(
            &mail("Order", BODY),
            &mail("Order", &format!("{BODY} It is not approved.")),
            "order approved",
            false,
        );
        check(&mail("March 2026", BODY), &mail("April 2026", BODY), "office", true);
        check(&mail("March 2026", BODY), &mail("April 2026", BODY), "office march", false);
        // The words are equal, and their order is another.
        let sorted = {
            let mut words: Vec<&str> = BODY.split(' ').collect();
            words.sort_unstable();
            words.join(" ")
        };
        check(&mail("Order", BODY), &mail("Order", &sorted), "order", false);
    }

    #[test]
    fn short_texts_are_near_copies_if_they_are_equal() {
        let row = |id: u32, text: &str| json!({"id": id, "text": text});
        check(&row(1, "rent paid"), &row(2, "rent paid"), "rent", true);
        check(&row(1, "rent paid"), &row(2, "rent due"), "rent", false);
        check(&row(1, "rent 2026-03-01"), &row(2, "rent 2026-04-01"), "rent", false);
        check(&json!({"text": "rent", "sum": 1}), &json!({"text": "rent", "sum": 2}), "rent", false);
    }

    /// Returns the words of a text that are compared, each piece between white space on its own.
    fn words_of_pieces(text: &str) -> Vec<ShortHash> {
        let mut in_progress = TextInProgress::default();
        text.split_whitespace().for_each(|piece| in_progress.add_words(piece, false, true));
        in_progress.words
    }

    proptest! {
        #[test]
        fn words_of_a_text_are_those_of_its_pieces(text in "[aB1 _.+\\-\u{301}éが東ﾞ \u{a0}\n@ß]{0,40}|\\PC{0,30}") {
            let mut whole = TextInProgress::default();
            whole.add_words(&text, false, true);
            prop_assert_eq!(whole.words, words_of_pieces(&text));
        }

        #[test]
        fn cached_texts_are_those_that_are_read(
            reads in prop::collection::vec((0_i64..6, "[ab1é]{1,3}( [ab1é]{1,3}){0,12}", 0_u8..3), 1..80),
        ) {
            let cache: TextCache<NearText> = TextCache::new(8 * 1024);
            let mut asked = AskedWords(Vec::new());
            let mut texts: Vec<(Arc<CachedText<NearText>>, NearText)> = Vec::new();
            for (row, text, number) in reads {
                let data = json!({"body": text, "n": number, "to": "ab"});
                let cached = cache.get_or_read((0, row), &data.to_string()).unwrap();
                let read = NearText::new(data.as_object().unwrap());
                prop_assert_eq!(&cached.form, &read);
                asked.0.push(short(hash(text.split(' ').next().unwrap_or_default())));
                texts.push((cached, read));
                prop_assert!(cache.bytes() <= 8 * 1024);
            }
            for ((cached, read), (other_cached, other_read)) in texts.iter().zip(texts.iter().skip(1)) {
                prop_assert_eq!(cached.form.asked(&asked), read.asked(&asked));
                prop_assert_eq!(cached.form.is_near(&other_cached.form), read.is_near(other_read));
            }
        }
    }
}
