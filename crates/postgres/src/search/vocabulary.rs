//! The words of all records, from the table of terms. Each word is looked up once in a search.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use fetchwell_core::saturate::saturated;
use fetchwell_ranking::lexical::vocabulary::Vocabulary;
use fetchwell_source::SourceError;
use tokio_postgres::Row;

use super::super::tables::{PostgresTables, text};
use super::scope::Scope;

/// Maximum number of words that begin with a text and are examined.
const MAX_EXAMINED: i64 = 20_000;

/// Numbers of records that have a word.
#[derive(Debug, Clone, Copy, Default)]
struct Frequencies {
    all: u64,
    in_scope: u64,
}

/// Vocabulary of one search.
pub(super) struct Terms<'a> {
    tables: &'a PostgresTables<'a>,
    scope: &'a Scope,
    known: RefCell<HashMap<String, Frequencies>>,
}

/// Columns of the number of records in all streams and in those of `$1`.
const COUNTS: &str = "sum(records)::bigint,
    coalesce(sum(records) FILTER (WHERE $1::bigint[] IS NULL OR stream = ANY ($1)), 0)::bigint";

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
        // Without statistics the server would scan the table.
        let sql = format!(
            "SELECT w.word, t.* FROM unnest($2::text[]) AS w (word) CROSS JOIN LATERAL
                 (SELECT {COUNTS} FROM fetchwell.terms WHERE word = w.word AND records > 0 OFFSET 0) t
             WHERE t.sum IS NOT NULL"
        );
        let rows = self.tables.query(&sql, &[&self.scope.streams, &unknown])?;
        let mut known = self.known.borrow_mut();
        known.extend(unknown.iter().map(|word| ((*word).to_owned(), Frequencies::default())));
        known.extend(rows.iter().map(|row| (text(row, 0).to_owned(), frequencies(row))));
        Ok(())
    }

    fn frequencies(&self, word: &str) -> Result<Frequencies, SourceError> {
        self.load(std::iter::once(word))?;
        Ok(self.known.borrow().get(word).copied().unwrap_or_default())
    }

    /// Returns the number of records in scope that have a word.
    pub(super) fn frequency_in_scope(&self, word: &str) -> Result<u64, SourceError> {
        Ok(self.frequencies(word)?.in_scope)
    }
}

fn frequencies(row: &Row) -> Frequencies {
    let count = |column| u64::try_from(row.try_get::<_, i64>(column).unwrap_or_default()).unwrap_or_default();
    Frequencies { all: count(1), in_scope: count(2) }
}

impl Vocabulary for Terms<'_> {
    type Error = SourceError;

    fn records(&self) -> u64 {
        self.scope.records
    }

    fn frequency(&self, word: &str) -> Result<u64, SourceError> {
        Ok(self.frequencies(word)?.all)
    }

    fn is_in_scope(&self, word: &str) -> Result<bool, SourceError> {
        Ok(self.frequencies(word)?.in_scope > 0)
    }

    fn beginning_with(
        &self,
        prefix: &str,
        lengths: RangeInclusive<usize>,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, u64>, SourceError> {
        // No character is as great as this one.
        let end = format!("{prefix}{}", char::MAX);
        let bound = |length: usize| saturated::<i32>(length);
        let sql = format!(
            "SELECT word, {COUNTS} FROM fetchwell.terms
             WHERE word >= $2 AND word < $3 AND octet_length(word) BETWEEN $4 AND $5 AND records > 0
             GROUP BY word ORDER BY word LIMIT {MAX_EXAMINED}"
        );
        let (shortest, longest) = (bound(*lengths.start()), bound(*lengths.end()));
        let rows = self.tables.query(&sql, &[&self.scope.streams, &prefix, &end, &shortest, &longest])?;
        let mut known = self.known.borrow_mut();
        let mut found = BTreeMap::new();
        for row in rows.iter().filter(|row| accepts(text(row, 0))) {
            let frequencies = frequencies(row);
            known.insert(text(row, 0).to_owned(), frequencies);
            found.insert(text(row, 0).to_owned(), frequencies.all);
        }
        Ok(found)
    }

    fn prepare_lookups(&self, words: &[String]) -> Result<(), SourceError> {
        self.load(words.iter().map(String::as_str))
    }
}
