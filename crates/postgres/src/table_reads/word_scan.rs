//! The records of a stream that have some words.
//!
//! The index of the server selects records with all of the words. Where words must follow each other, the texts of these records
//! are compared, because a vector has no places of later words.

use std::collections::HashSet;

use fetchwell_ranking::lexical::spelling::Spelling;
use fetchwell_ranking::lexical::word_filter::{FilterSpellings, WordFilter, WordList};
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_ranking::relational::tables::{EachRow, Scan, Tables, WordScan, pass_with_words};
use fetchwell_source::SourceError;

use super::super::search::run::SETTINGS;
use super::super::search::tsquery::TextQuery;
use super::super::tables::{PostgresTables, RowsOfStream, scan_columns};
use super::super::terms::{numbers_beginning_with, numbers_of};
use super::super::words::{WORDS_VERSION, stream_word};

/// Words of the records of a stream.
struct StreamWords<'a> {
    tables: &'a PostgresTables<'a>,
    stream: i64,
    /// Words of the filter that records of the stream have.
    known: HashSet<String>,
}

impl<'a> StreamWords<'a> {
    fn new(tables: &'a PostgresTables<'a>, stream: i64, words: &WordFilter) -> Result<Self, SourceError> {
        let exact: Vec<&str> = words.exact_words().collect();
        let numbers = numbers_of(tables, &exact, Some(&[stream]))?;
        let known = numbers.into_iter().filter(|(_, numbers)| numbers.in_scope > 0);
        Ok(Self { tables, stream, known: known.map(|(word, _)| word).collect() })
    }
}

impl WordList for StreamWords<'_> {
    type Error = SourceError;

    fn has_word(&self, word: &str) -> Result<bool, SourceError> {
        Ok(self.known.contains(word))
    }

    fn beginning_with(
        &self,
        prefix: &str,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>, SourceError> {
        // Without one of the forms, records would be missing.
        let found = numbers_beginning_with(self.tables, prefix, Some(&[self.stream]), usize::MAX, accepts)?;
        let in_stream = found.into_iter().filter(|(_, numbers)| numbers.in_scope > 0);
        Ok(in_stream.map(|(word, _)| word).collect())
    }
}

/// Passes all records of a stream that have some words to `each`, in any order.
pub(super) fn scan_with_words(
    tables: &PostgresTables<'_>,
    scan: &WordScan<'_>,
    bounds: ReadBounds<'_>,
    each: EachRow<'_, SourceError>,
) -> Result<(), SourceError> {
    let WordScan { stream, words, wants_data } = *scan;
    if tables.columns.min_records().is_none() || !has_words(tables, stream)? {
        let all = Scan::all_texts(stream, None);
        return tables.scan(&all, bounds, &mut |row| pass_with_words(words, row, each));
    }
    let Some(WordQuery { query: TextQuery(query), is_exact }) = WordQuery::new(tables, stream, words)? else {
        return Ok(());
    };
    tables.queries.execute(SETTINGS)?;
    let wants_data = wants_data || !is_exact;
    let sql = format!(
        "SELECT {} FROM fetchwell.texts t JOIN fetchwell.records r ON r.stream = t.stream AND r.key = t.key
         WHERE t.words @@ CAST($2::text AS tsquery) AND t.stream = $1 AND r.data IS NOT NULL",
        scan_columns(wants_data)
    );
    let rows = RowsOfStream { stream, sql: &sql, values: &[&stream, &query], wants_data };
    if is_exact {
        return tables.scan_rows(&rows, bounds, each);
    }
    tables.scan_rows(&rows, bounds, &mut |row| pass_with_words(words, row, each))
}

/// Returns true if all records of a stream have their words in the newest form.
fn has_words(tables: &PostgresTables<'_>, stream: i64) -> Result<bool, SourceError> {
    let rows = tables.queries.query("SELECT indexed FROM fetchwell.streams WHERE id = $1", &[&stream])?;
    let version = rows.first().and_then(|row| row.try_get::<_, i32>(0).ok());
    Ok(version.is_some_and(|version| version >= WORDS_VERSION))
}

/// Query of the index of the server.
struct WordQuery {
    query: TextQuery,
    /// True if it selects no other records.
    is_exact: bool,
}

impl WordQuery {
    /// Looks up the words of a filter; returns `None` if no record of the stream has all of them.
    fn new(
        tables: &PostgresTables<'_>,
        stream: i64,
        words: &WordFilter,
    ) -> Result<Option<Self>, SourceError> {
        let FilterSpellings { required, excluded } =
            words.spellings_in(&StreamWords::new(tables, stream, words)?)?;
        let is_word = |spellings: &Vec<Spelling>| spellings.iter().all(|spelling| spelling.len() == 1);
        let is_exact = required.iter().chain(&excluded).all(is_word);
        let mut parts = vec![TextQuery::word(&stream_word(stream))];
        for spellings in &required {
            let Some(any) = any_spelling(spellings) else { return Ok(None) };
            parts.push(any);
        }
        let excluded = excluded.iter().filter(|spellings| is_word(spellings));
        parts.extend(excluded.filter_map(|spellings| any_spelling(spellings)).map(TextQuery::not));
        Ok(TextQuery::all(parts).map(|query| Self { query, is_exact }))
    }
}

/// Returns the query for records that have all words of one of some spellings.
fn any_spelling(spellings: &[Spelling]) -> Option<TextQuery> {
    let all = |spelling: &Spelling| TextQuery::all(spelling.iter().map(|(_, word)| TextQuery::word(word)));
    TextQuery::any(spellings.iter().filter_map(all))
}
