//! Compares the texts of two records: whether one says everything that the other says.
//!
//! Pure. Dates, addresses, ids and labels do not count, so a message that was sent again, or a reply that quotes one, is a
//! near-copy. Numbers and words of the query do: invoices with different numbers, or texts of which one has more of the
//! query, are never near-copies.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use fetchwell_core::record::{RecordData, is_author_field, is_same_name, is_time_field};
use serde_json::Value;

use super::super::words::{PossibleWords, WordKind, fold_into, words};
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

/// Words of texts that stand for words of a query.
#[derive(Debug)]
pub(super) struct AskedWords<'a> {
    words: &'a HashSet<String>,
    possible: PossibleWords,
}

impl<'a> AskedWords<'a> {
    /// Takes folded words.
    pub(super) fn new(words: &'a HashSet<String>) -> Self {
        let mut possible = PossibleWords::default();
        words.iter().for_each(|word| possible.add(word));
        Self { words, possible }
    }
}

/// Text of a record as it is compared with others.
#[derive(Debug, Default)]
pub(super) struct NearText {
    /// Hashes of the words, sorted.
    words: Vec<u64>,
    /// Hashes of sequences of words, sorted.
    sequences: Vec<u64>,
    /// Hashes of numbers and words with digits.
    numbers: BTreeSet<u64>,
    /// Words of the query that any field has.
    asked: BTreeSet<String>,
    /// Hash of all compared fields, dates included.
    whole: u64,
}

impl NearText {
    /// Reads the text of a record. `asked` has the words that stand for those of the query.
    pub(super) fn new(data: &RecordData, asked: &AskedWords<'_>) -> Self {
        let mut text = Self::default();
        let mut folded = String::new();
        for (name, value) in data {
            text.add(name, value, true, asked, &mut folded);
        }
        for hashes in [&mut text.words, &mut text.sequences] {
            hashes.sort_unstable();
            hashes.dedup();
        }
        text
    }

    /// Returns true if the texts say the same, apart from dates, or if one quotes all of the other and adds little.
    pub(super) fn is_near(&self, other: &Self) -> bool {
        if self.asked != other.asked || self.numbers != other.numbers {
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

    fn add(
        &mut self,
        name: &str,
        value: &Value,
        is_compared: bool,
        asked: &AskedWords<'_>,
        folded: &mut String,
    ) {
        let is_compared = is_compared && is_field_compared(name);
        match value {
            Value::String(text) => self.add_text(text, is_compared, asked, folded),
            Value::Array(items) => {
                items.iter().for_each(|item| self.add(name, item, is_compared, asked, folded));
            }
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| self.add(name, value, is_compared, asked, folded));
            }
            Value::Number(number) => {
                let number = number.to_string();
                self.note_asked(&number, asked);
                if is_compared {
                    self.numbers.insert(hash((name, &number)));
                    self.whole = hash((self.whole, name, &number));
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn add_text(&mut self, text: &str, is_compared: bool, asked: &AskedWords<'_>, folded: &mut String) {
        for word in words(text).filter(|word| asked.possible.may_have(text, word)) {
            folded.clear();
            fold_into(text.get(word.range).unwrap_or_default(), folded);
            self.note_asked(folded, asked);
        }
        if !is_compared {
            return;
        }
        self.whole = hash((self.whole, text));
        let start = self.words.len();
        for piece in without_dates(text) {
            let is_word = |kind| matches!(kind, WordKind::Spaced | WordKind::Single);
            for word in words(piece).filter(|word| is_word(word.kind)) {
                folded.clear();
                fold_into(piece.get(word.range).unwrap_or_default(), folded);
                let word = hash(&*folded);
                if folded.contains(char::is_numeric) {
                    self.numbers.insert(word);
                }
                self.words.push(word);
            }
        }
        let added = self.words.get(start..).unwrap_or_default();
        self.sequences.extend(added.windows(SEQUENCE).map(hash));
    }

    fn note_asked(&mut self, word: &str, asked: &AskedWords<'_>) {
        if asked.words.contains(word) && !self.asked.contains(word) {
            self.asked.insert(word.to_owned());
        }
    }
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

/// Returns the number of values that two sorted lists have in common.
fn common(one: &[u64], other: &[u64]) -> usize {
    let mut left = other.iter().peekable();
    let is_common = |value: &&u64| {
        while left.next_if(|other| other < value).is_some() {}
        left.peek() == Some(value)
    };
    one.iter().filter(is_common).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BODY: &str = "Dear all, the office is closed while the heating is repaired. Please take your plants home \
                        and leave the windows shut. The porter keeps a key for urgent cases.";

    #[track_caller]
    fn check(one: &Value, other: &Value, query: &str, expect: bool) {
        let asked: HashSet<String> = query.split(' ').map(str::to_owned).collect();
        let text = |value: &Value| NearText::new(value.as_object().unwrap(), &AskedWords::new(&asked));
        let (one_text, other_text) = (text(one), text(other));
        assert_eq!(one_text.is_near(&other_text), expect, "{query}: {one} {other}");
        assert_eq!(other_text.is_near(&one_text), expect, "{query}: {other} {one}");
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
}
