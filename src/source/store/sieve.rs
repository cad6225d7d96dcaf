//! A filter over search results.
//!
//! The index ranks, the records are asked. Matches are looked at in their order until the page is full or
//! enough were looked at; the next page goes on after the last one that was.

use super::StoreError;
use super::allowance::Allowance;
use super::database::Database;
use super::pick::Picker;
use super::predicate::{Predicate, check};
use super::read::length_at;
use super::streams::stream_rows;
use crate::source::{QueryFault, SearchQuery, SourceError};

/// Matches looked at together.
const CHUNK: usize = 200;

/// Matches looked at for one page, at most.
const LOOKED_AT_MOST: usize = 10_000;

/// A record that the index found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    pub(super) row: i64,
    pub(super) score: f32,
}

/// Matches of one page.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) rows: Vec<Match>,
    /// How many matches were looked at for them.
    pub(super) consumed: usize,
    pub(super) more: bool,
}

impl Found {
    /// Of rows of which one more than `limit` was asked.
    pub(super) fn all(mut rows: Vec<Match>, limit: usize) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        Self { consumed: rows.len(), rows, more }
    }
}

/// A filter made ready.
#[derive(Debug)]
pub(super) struct Sieve {
    picker: Picker,
    predicate: Predicate,
}

impl Sieve {
    /// The sieve of a search, if it has a filter.
    pub(super) fn of(database: &Database, query: &SearchQuery) -> Result<Option<Self>, SourceError> {
        if query.filter.is_empty() {
            return Ok(None);
        }
        let [stream] = query.streams.as_slice() else {
            return Err(SourceError::CorrectQuery {
                fault: QueryFault::InvalidFilter,
                problem: "a filter is about the fields of one stream, and the search names none or several"
                    .to_owned(),
                hint: "Set `streams` to the one stream that has these fields.".to_owned(),
            });
        };
        for stream in stream_rows(database, stream, query.connection.as_ref())? {
            check(&query.filter, &stream.detail)?;
        }
        let mut picker = Picker::default();
        let predicate = Predicate::new(&query.filter, &mut picker);
        Ok(Some(Self { picker, predicate }))
    }

    /// The first `limit` matches after `offset` that pass.
    pub(super) fn pass(
        &self,
        (database, allowance): (&Database, &Allowance),
        offset: usize,
        limit: usize,
        matches: impl Fn(usize, usize) -> Result<Vec<Match>, StoreError>,
    ) -> Result<Found, StoreError> {
        let mut found = Found { rows: Vec::new(), consumed: 0, more: true };
        let mut picked = Vec::new();
        while found.consumed < LOOKED_AT_MOST {
            let rows = matches(offset + found.consumed, CHUNK)?;
            for row in &rows {
                let passes = database.read(|sqlite| {
                    let mut statement = sqlite
                        .prepare_cached("SELECT data, octet_length(data) FROM records WHERE id = ?1")?;
                    let mut rows = statement.query([row.row])?;
                    let Some(row) = rows.next()? else { return Ok(false) };
                    // The answer is not used.
                    if !allowance.has_room_for(length_at(row, 1)?) {
                        return Ok(false);
                    }
                    self.picker.pick(row.get_ref(0)?.as_str_or_null()?.unwrap_or_default(), &mut picked);
                    Ok(self.predicate.passes(&picked))
                })?;
                match passes {
                    // It begins the next page.
                    true if found.rows.len() == limit => return Ok(found),
                    true => found.rows.push(*row),
                    false => {}
                }
                found.consumed += 1;
            }
            if rows.len() < CHUNK {
                found.more = false;
                break;
            }
        }
        Ok(found)
    }
}
