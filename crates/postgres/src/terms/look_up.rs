//! The numbers of words, as a search reads them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use fetchwell_source::SourceError;

use super::lines::{find, lines, numbers};
use crate::tables::{PostgresTables, text};

/// Number of records that have a word: of all streams, and of those in scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) all: i64,
    pub(crate) in_scope: i64,
}

impl Numbers {
    /// Adds numbers as they are written. `streams` are those in scope; `None` for all.
    fn add(&mut self, written: &str, streams: Option<&[i64]>) {
        for (stream, records) in numbers(written) {
            self.all += records;
            if streams.is_none_or(|streams| streams.contains(&stream)) {
                self.in_scope += records;
            }
        }
    }
}

/// Returns the numbers of words. A word without records has none.
pub(crate) fn numbers_of(
    tables: &PostgresTables<'_>,
    words: &[&str],
    streams: Option<&[i64]>,
) -> Result<HashMap<String, Numbers>, SourceError> {
    let sql = "SELECT w.place, b.terms FROM unnest($1::text[]) WITH ORDINALITY AS w (word, place)
         CROSS JOIN fetchwell.term_runs r CROSS JOIN LATERAL (
             SELECT terms FROM fetchwell.term_blocks WHERE run = r.id AND first_word <= w.word
             ORDER BY first_word DESC LIMIT 1
         ) b";
    let mut found: HashMap<String, Numbers> = HashMap::new();
    for row in tables.queries.query(sql, &[&words])? {
        let place: i64 = row.try_get(0).unwrap_or_default();
        let Some(word) = usize::try_from(place - 1).ok().and_then(|at| words.get(at)) else { continue };
        if let Some(written) = find(text(&row, 1), word) {
            found.entry((*word).to_owned()).or_default().add(written, streams);
        }
    }
    found.retain(|_, numbers| numbers.all > 0);
    Ok(found)
}

/// Returns the first `limit` words that begin with a text, have records, and of which `is_read` is true, with their numbers.
pub(crate) fn numbers_beginning_with(
    tables: &PostgresTables<'_>,
    prefix: &str,
    streams: Option<&[i64]>,
    limit: usize,
    is_read: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, Numbers>, SourceError> {
    // No character is as great as this one.
    let end = format!("{prefix}{}", char::MAX);
    // Places are sorted without their texts, which are read one after the other until there are enough words.
    let sql = "SELECT k.first_word,
             (SELECT terms FROM fetchwell.term_blocks WHERE run = k.run AND first_word = k.first_word)
         FROM (
             SELECT b.run, b.first_word FROM fetchwell.term_runs r CROSS JOIN LATERAL (
                 (SELECT run, first_word FROM fetchwell.term_blocks WHERE run = r.id AND first_word <= $1
                  ORDER BY first_word DESC LIMIT 1)
                 UNION ALL
                 SELECT run, first_word FROM fetchwell.term_blocks
                 WHERE run = r.id AND first_word > $1 AND first_word < $2
             ) b ORDER BY b.first_word OFFSET 0
         ) k";
    let mut found: BTreeMap<String, Numbers> = BTreeMap::new();
    tables.queries.batches(sql, &[&prefix, &end], &mut |row| {
        // Words before those of this block have all of their numbers.
        if found.len() >= limit {
            let before = found.range::<str, _>((Bound::Unbounded, Bound::Excluded(text(row, 0))));
            if before.filter(|(_, numbers)| numbers.all > 0).count() >= limit {
                return Ok(false);
            }
        }
        let block = text(row, 1);
        for (word, written) in lines(block).filter(|(word, _)| word.starts_with(prefix) && is_read(word)) {
            match found.get_mut(word) {
                Some(known) => known.add(written, streams),
                None => found.entry(word.to_owned()).or_default().add(written, streams),
            }
        }
        Ok(true)
    })?;
    Ok(found.into_iter().filter(|(_, numbers)| numbers.all > 0).take(limit).collect())
}
