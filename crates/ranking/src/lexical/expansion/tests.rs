//! Words that queries look up in an index.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::convert::Infallible;

use fetchwell_source::SearchText;

use super::*;

/// Vocabulary that notes the words that are looked up.
#[derive(Default)]
struct NotedWords {
    frequencies: BTreeMap<&'static str, u64>,
    looked_up: RefCell<BTreeSet<String>>,
}

impl Vocabulary for NotedWords {
    type Error = Infallible;

    fn records(&self) -> u64 {
        1_000
    }

    fn frequency(&self, word: &str) -> Result<u64, Infallible> {
        self.looked_up.borrow_mut().insert(word.to_owned());
        Ok(self.frequencies.get(word).copied().unwrap_or(0))
    }

    fn is_in_scope(&self, word: &str) -> Result<bool, Infallible> {
        Ok(self.frequency(word)? > 0)
    }

    fn beginning_with(
        &self,
        prefix: &str,
        _lengths: std::ops::RangeInclusive<usize>,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, u64>, Infallible> {
        let known = self.frequencies.iter();
        let found = known.filter(|(word, _)| word.starts_with(prefix) && accepts(word));
        Ok(found.map(|(word, frequency)| ((*word).to_owned(), *frequency)).collect())
    }

    fn prepare_lookups(&self, _words: &[String]) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Looks up a query in an index that has some words. Returns what was found, and the words that were looked up.
fn looked_up(query: &str, known: &[&'static str]) -> (Lookups, Vec<String>) {
    let frequencies = known.iter().map(|word| (*word, 10)).collect();
    let words = NotedWords { frequencies, ..NotedWords::default() };
    let Ok(lookups) = look_up(&words, &QueryTerms::new(&SearchText::plain(query)));
    (lookups, words.looked_up.into_inner().into_iter().collect())
}

#[test]
fn queries_without_joined_or_separated_words_look_up_their_words_alone() {
    for query in
        ["harbour lease contract", "the house of the rising sun", "configuration", "東京都 map", "find mails"]
    {
        let words: BTreeSet<String> =
            QueryTerms::new(&SearchText::plain(query)).slots.into_iter().map(|slot| slot.text).collect();
        let known: Vec<&'static str> = words.iter().map(|word| &*word.clone().leak()).collect();
        let (lookups, found) = looked_up(query, &known);
        assert_eq!(found, words.into_iter().collect::<Vec<_>>(), "{query}");
        assert!(lookups.sequences.is_empty());
    }
    let (_, found) = looked_up("harbour lease contract", &["harbour", "lease", "contract"]);
    assert_eq!(found, ["contract", "harbour", "lease"]);
}

#[test]
fn other_spellings_are_looked_up() {
    let known = ["set", "up", "setup", "wi", "fi", "555", "123", "4567", "rfc", "2119", "in", "voice"];
    for (query, expect) in [
        ("setup", &["set up"][..]),
        ("rfc2119", &["rfc 2119"]),
        ("wifi", &["wi fi"]),
        ("5551234567", &["555 123 4567"]),
        ("set up", &[]),
        ("invoice", &["in voice"]),
    ] {
        let (lookups, _) = looked_up(query, &known);
        let found: Vec<String> = lookups.sequences.iter().map(|found| found.words.join(" ")).collect();
        assert_eq!(found, expect, "{query}");
    }
    let (lookups, _) = looked_up("set up", &known);
    let ranked: Vec<bool> = lookups.words.iter().map(|word| word.ranked_weight() > 0.0).collect();
    assert_eq!((lookups.words.len(), ranked), (3, vec![true, true, false]));
}

/// Returns the coverage of a query of equally rare words by a record with some of them.
fn coverage(query: &str, words: &[&str]) -> f32 {
    let slots = QueryTerms::new(&SearchText::plain(query)).slots;
    let found = |slot: &Slot| WordMatches {
        quality: if words.contains(&slot.text.as_str()) { 1.0 } else { 0.0 },
        ..WordMatches::default()
    };
    let matches: Vec<WordMatches> = slots.iter().map(found).collect();
    let words = slots.iter().map(|slot| Lookup::new(slot, Vec::new(), importance(slot))).collect();
    Lookups { words, records: 1, ..Lookups::default() }.coverage(&matches)
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
