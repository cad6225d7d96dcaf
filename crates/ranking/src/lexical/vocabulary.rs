//! The trait of an index that has words.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Word of the index that stands for a word of the query.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// Word to look up, folded.
    pub text: String,
    /// Quality of the match: 1 for the word itself.
    pub quality: f32,
    /// Number of records that have the word.
    pub frequency: u64,
}

/// Words of an index, as one search sees them.
pub trait Vocabulary {
    /// Error of a lookup.
    type Error;

    /// Returns the number of records in the index.
    fn records(&self) -> u64;

    /// Returns the number of records that have a word.
    fn frequency(&self, word: &str) -> Result<u64, Self::Error>;

    /// Returns true if a record in the scope of the search has a word. Words of other records must not change a search:
    /// they would take the place of words in scope, and show that they exist.
    fn is_in_scope(&self, word: &str) -> Result<bool, Self::Error>;

    /// Returns the words that begin with a text, have a length in bytes and are accepted, with the number of records of
    /// each. An index may pass words of other lengths to `accepts`.
    fn beginning_with(
        &self,
        prefix: &str,
        lengths: RangeInclusive<usize>,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, u64>, Self::Error>;

    /// Makes many lookups fast of which few words are in the index.
    fn prepare_lookups(&self, words: &[String]) -> Result<(), Self::Error>;

    /// Returns the words that stand for a word, at most `max_forms` of them other forms, which `find` finds. An index that does
    /// not change returns those that an earlier search of the same scope found.
    fn known_or(
        &self,
        _word: &str,
        _max_forms: usize,
        find: impl FnOnce() -> Result<Vec<Alternative>, Self::Error>,
    ) -> Result<Vec<Alternative>, Self::Error> {
        find()
    }
}
