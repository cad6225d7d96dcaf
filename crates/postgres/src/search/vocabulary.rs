//! The words of all records with their numbers. Each word is looked up once in a search.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use fetchwell_ranking::lexical::vocabulary::Vocabulary;
use fetchwell_source::SourceError;

use super::super::tables::PostgresTables;
use super::scope::Scope;
use crate::terms::{Numbers, numbers_beginning_with, numbers_of};

/// Maximum number of words that begin with a text and are examined.
const MAX_EXAMINED: usize = 20_000;

/// Vocabulary of one search.
pub(super) struct Terms<'a> {
    tables: &'a PostgresTables<'a>,
    scope: &'a Scope,
    known: RefCell<HashMap<String, Numbers>>,
}

impl<'a> Terms<'a> {
    pub(super) fn new(tables: &'a PostgresTables<'a>, scope: &'a Scope) -> Self {
        Self { tables, scope, known: RefCell::default() }
    }

    /// Looks up some words together.
    pub(super) fn load<'w>(&self, words: impl Iterator<Item = &'w str>) -> Result<(), SourceError> {
        let unknown: Vec<&str> = words.filter(|word| !self.known.borrow().contains_key(*word)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let numbers = numbers_of(self.tables, &unknown, self.scope.streams.as_deref())?;
        let mut known = self.known.borrow_mut();
        known.extend(unknown.iter().map(|word| ((*word).to_owned(), Numbers::default())));
        known.extend(numbers);
        Ok(())
    }

    fn numbers(&self, word: &str) -> Result<Numbers, SourceError> {
        self.load(std::iter::once(word))?;
        Ok(self.known.borrow().get(word).copied().unwrap_or_default())
    }

    /// Returns the number of records in scope that have a word.
    pub(super) fn frequency_in_scope(&self, word: &str) -> Result<u64, SourceError> {
        Ok(count(self.numbers(word)?.in_scope))
    }
}

/// Returns a number of records, which is not negative in a whole store.
fn count(records: i64) -> u64 {
    u64::try_from(records).unwrap_or_default()
}

impl Vocabulary for Terms<'_> {
    type Error = SourceError;

    fn records(&self) -> u64 {
        self.scope.records
    }

    fn frequency(&self, word: &str) -> Result<u64, SourceError> {
        Ok(count(self.numbers(word)?.all))
    }

    fn is_in_scope(&self, word: &str) -> Result<bool, SourceError> {
        Ok(self.numbers(word)?.in_scope > 0)
    }

    fn beginning_with(
        &self,
        prefix: &str,
        lengths: RangeInclusive<usize>,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, u64>, SourceError> {
        let streams = self.scope.streams.as_deref();
        let is_read = |word: &str| lengths.contains(&word.len());
        let mut found = numbers_beginning_with(self.tables, prefix, streams, MAX_EXAMINED, is_read)?;
        found.retain(|word, _| accepts(word));
        self.known.borrow_mut().extend(found.iter().map(|(word, numbers)| (word.clone(), *numbers)));
        Ok(found.into_iter().map(|(word, numbers)| (word, count(numbers.all))).collect())
    }

    fn prepare_lookups(&self, words: &[String]) -> Result<(), SourceError> {
        self.load(words.iter().map(String::as_str))
    }
}
