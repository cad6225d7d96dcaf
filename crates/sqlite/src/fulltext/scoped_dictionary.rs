//! The dictionary of the index as the vocabulary of a search.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use fetchwell_ranking::lexical::vocabulary::{Alternative, Vocabulary};
use tantivy::{TantivyError, Term};

use super::dictionary::Dictionary;
use super::index::Fields;
use super::known_forms::KnownForms;
use super::scope::Scope;

/// Dictionary as the vocabulary of a search in a scope.
pub(super) struct ScopedDictionary<'a> {
    pub(super) dictionary: &'a Dictionary<'a>,
    pub(super) fields: Fields,
    pub(super) scope: &'a Scope,
    pub(super) known: &'a KnownForms,
}

impl Vocabulary for ScopedDictionary<'_> {
    type Error = TantivyError;

    fn records(&self) -> u64 {
        self.dictionary.searcher.num_docs()
    }

    fn frequency(&self, word: &str) -> Result<u64, TantivyError> {
        self.dictionary.frequency(&Term::from_field_text(self.fields.text, word))
    }

    fn is_in_scope(&self, word: &str) -> Result<bool, TantivyError> {
        self.scope.has_word(self.dictionary, self.fields, word)
    }

    fn beginning_with(
        &self,
        prefix: &str,
        _lengths: RangeInclusive<usize>,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, u64>, TantivyError> {
        self.dictionary.beginning_with(prefix, accepts)
    }

    fn prepare_lookups(&self, words: &[String]) -> Result<(), TantivyError> {
        self.dictionary.prepare_lookups(words.len())
    }

    fn known_or(
        &self,
        word: &str,
        max_forms: usize,
        find: impl FnOnce() -> Result<Vec<Alternative>, TantivyError>,
    ) -> Result<Vec<Alternative>, TantivyError> {
        self.known.get_or_find(word, max_forms, self.scope.rows(self.fields), find)
    }
}
