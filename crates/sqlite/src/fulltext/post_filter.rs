//! Filters over search results.
//!
//! The index ranks, and the filter reads the records of its matches. Matches are examined in rank order until the
//! page is full or a maximum is reached; the next page continues after the last one examined. If the first matches do not fill
//! the page, the columns of fields tell which of the other records pass. If these are few, the search is repeated among them.

use std::cell::OnceCell;
use std::collections::HashSet;

use fetchwell_ranking::lexical::selection::Match;
use fetchwell_ranking::record_filter::{CHUNK, MAX_EXAMINED, PassingRows, RecordFilter};
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_source::contract::StoreError;
use fetchwell_source::{SearchQuery, SourceError};

use super::columns::IndexColumns;
use crate::database::Database;
use crate::read::rows::length_at;
use crate::read::tables::{ColumnSelection, OpenColumns, streams_of};

/// Matches of one page.
#[derive(Debug)]
pub(super) struct MatchPage {
    pub(super) rows: Vec<Match>,
    /// Number of matches that were examined for this page.
    pub(super) consumed: usize,
    pub(super) more: bool,
}

impl MatchPage {
    /// Creates a page from rows of which one more than `limit` was requested.
    pub(super) fn from_lookahead(mut rows: Vec<Match>, limit: usize) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        Self { consumed: rows.len(), rows, more }
    }
}

/// Filter applied to search results after ranking.
#[derive(Debug)]
pub(super) struct PostFilter<'a> {
    database: &'a Database,
    allowance: &'a Allowance,
    filter: RecordFilter,
    columns: IndexColumns<'a>,
    /// Records that pass by their columns, once they were needed.
    passing: OnceCell<Option<PassingRows>>,
}

impl<'a> PostFilter<'a> {
    /// Compiles the filter of a search; returns `None` if it has none.
    pub(super) fn for_query(
        database: &'a Database,
        columns: IndexColumns<'a>,
        query: &SearchQuery,
        allowance: &'a Allowance,
    ) -> Result<Option<Self>, SourceError> {
        let streams = |stream: &_| streams_of(database, stream, query.connection.as_ref());
        let filter = RecordFilter::for_query(query, streams)?;
        let passing = OnceCell::new();
        Ok(filter.map(|filter| Self { database, allowance, filter, columns, passing }))
    }

    /// Returns true if the record of a row passes. `examined` is the number of matches before it.
    fn passes(&self, row: i64, examined: usize) -> Result<bool, StoreError> {
        let known = (examined >= CHUNK).then(|| self.passing_by_columns()).flatten();
        if let Some(passes) = known.and_then(|passing| passing.contains(row)) {
            return Ok(passes);
        }
        self.database.read(|sqlite| {
            let mut statement =
                sqlite.prepare_cached("SELECT data, octet_length(data) FROM records WHERE id = ?1")?;
            let mut rows = statement.query([row])?;
            let Some(row) = rows.next()? else { return Ok(false) };
            // The read exceeded its memory limit, so its result is discarded.
            if !self.allowance.has_room_for(length_at(row, 1)?) {
                return Ok(false);
            }
            Ok(self.filter.passes(row.get_ref(0)?.as_str_or_null()?.unwrap_or_default()))
        })
    }

    /// Returns the records that pass by their columns, which are asked once; `None` if there are no columns.
    fn passing_by_columns(&self) -> Option<&PassingRows> {
        self.passing.get_or_init(|| self.passing_rows()).as_ref()
    }

    fn passing_rows(&self) -> Option<PassingRows> {
        let read = self.database.read(|sqlite| {
            let transaction = sqlite.unchecked_transaction()?;
            self.filter.passing_rows(|stream, fields| {
                self.columns.open(&transaction, ColumnSelection { stream, fields, words: None })
            })
        });
        read.ok().flatten()
    }

    /// Returns the rows of all records that may pass, ascending, if columns were asked and have few of them.
    pub(super) fn few(&self) -> Option<Vec<i64>> {
        self.passing.get().and_then(Option::as_ref).and_then(PassingRows::few)
    }

    /// Returns the rows of the first `limit` of some matches that pass the filter.
    pub(super) fn passing(&self, matches: &[Match], limit: usize) -> Result<HashSet<i64>, StoreError> {
        let page = |offset, limit| Ok(matches.iter().skip(offset).take(limit).copied().collect());
        Ok(self.pass(0, limit, false, page)?.rows.iter().map(|found| found.row).collect())
    }

    /// Returns the first `limit` matches after `offset` that pass the filter. Ends early if `may_select` is true and
    /// [`Self::few`] has the records among which the search is to be made.
    pub(super) fn pass(
        &self,
        offset: usize,
        limit: usize,
        may_select: bool,
        matches: impl Fn(usize, usize) -> Result<Vec<Match>, StoreError>,
    ) -> Result<MatchPage, StoreError> {
        let mut found = MatchPage { rows: Vec::new(), consumed: 0, more: true };
        while found.consumed < MAX_EXAMINED {
            let rows = matches(offset + found.consumed, CHUNK)?;
            for row in &rows {
                let passes = self.passes(row.row, found.consumed)?;
                if passes {
                    // This match starts the next page.
                    if found.rows.len() == limit {
                        return Ok(found);
                    }
                    // Copies were counted before the filter.
                    found.rows.push(Match { copies: 0, ..*row });
                }
                found.consumed += 1;
            }
            if rows.len() < CHUNK {
                found.more = false;
                break;
            }
            if may_select && self.passing_by_columns().and_then(PassingRows::few).is_some() {
                break;
            }
        }
        Ok(found)
    }
}
