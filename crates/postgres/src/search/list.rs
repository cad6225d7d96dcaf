//! The records of a search in their order, read as far as a page needs them.

use fetchwell_core::saturate::saturated;
use fetchwell_ranking::lexical::selection::Match;
use fetchwell_source::SourceError;
use tokio_postgres::types::ToSql;

use super::super::tables::PostgresTables;
use super::candidates::Conditions;
use super::position::{Place, Rest};
use super::tsquery::TextQuery;

/// Number of matches up to which all of them are selected by the index before they are ordered. The server would read
/// many records to find few.
const MAX_SELECTED: u64 = 50_000;

/// List of one search.
pub(super) struct List<'a> {
    pub(super) tables: &'a PostgresTables<'a>,
    pub(super) conditions: &'a Conditions,
    /// Query for records with any word.
    pub(super) any: Option<TextQuery>,
    /// Upper bound of the number of matches.
    pub(super) max_matches: u64,
    pub(super) ranked: Vec<Match>,
}

/// Match with the place behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) found: Match,
    pub(super) behind: Place,
}

impl List<'_> {
    /// Returns at most `limit` matches from a place on; fewer only at the end.
    pub(super) fn read(&self, from: Place, limit: usize) -> Result<Vec<Step>, SourceError> {
        let ranked = self.ranked.iter().zip(1..).skip(from.ranked).take(limit);
        let step =
            |(found, ranked): (&Match, usize)| Step { found: *found, behind: Place { ranked, ..from } };
        let mut steps: Vec<Step> = ranked.map(step).collect();
        let missing = limit - steps.len();
        if missing > 0 {
            let ranked = self.ranked.len();
            let rest = match from.rest {
                Rest::Nothing => Vec::new(),
                Rest::Words { before } => self.by_row(before, missing)?,
                Rest::Times { before } => self.by_time(before, missing)?,
            };
            let step = |(row, rest)| Step { found: Match::new(row, 0.0), behind: Place { ranked, rest } };
            steps.extend(rest.into_iter().map(step));
        }
        Ok(steps)
    }

    /// Reads records with any word that are not ranked.
    fn by_row(&self, before: i64, limit: usize) -> Result<Vec<(i64, Rest)>, SourceError> {
        let query = TextQuery::all(self.any.clone().into_iter().chain(self.conditions.constraints.clone()));
        let Some(TextQuery(query)) = query else { return Ok(Vec::new()) };
        let ranked: Vec<i64> = self.ranked.iter().map(|found| found.row).collect();
        let fence = if self.max_matches <= MAX_SELECTED { "OFFSET 0" } else { "" };
        let Conditions { after, before: until, .. } = self.conditions;
        let limit = bound(limit);
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&query, &before, &ranked, &limit, after, until];
        let within = self.conditions.within(&mut values);
        let sql = format!(
            "SELECT id FROM (
                 SELECT t.id FROM fetchwell.texts t
                 WHERE t.words @@ CAST($1::text AS tsquery) AND t.id < $2 AND t.id <> ALL ($3){}{within} {fence}
             ) m ORDER BY id DESC LIMIT $4",
            self.conditions.sql(4)
        );
        let rows = self.tables.queries.query(&sql, &values)?;
        let row = |row: &tokio_postgres::Row| {
            let row = row.try_get(0).unwrap_or_default();
            (row, Rest::Words { before: row })
        };
        Ok(rows.iter().map(row).collect())
    }

    /// Reads the records that were written last.
    fn by_time(&self, before: (i64, i64), limit: usize) -> Result<Vec<(i64, Rest)>, SourceError> {
        let (second, row) = before;
        let query = self.conditions.constraints.as_ref().map(|TextQuery(query)| query);
        let limit = bound(limit);
        let Conditions { after, before: until, .. } = self.conditions;
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&second, &row, &limit, after, until];
        let mut condition = self.conditions.sql(3);
        if let Some(query) = &query {
            values.push(query);
            condition.push_str(" AND t.words @@ CAST($6::text AS tsquery)");
        }
        condition.push_str(&self.conditions.within(&mut values));
        let sql = format!(
            "SELECT t.id, t.time FROM fetchwell.texts t WHERE (t.time, t.id) < ($1, $2){condition}
             ORDER BY t.time DESC, t.id DESC LIMIT $3"
        );
        let rows = self.tables.queries.query(&sql, &values)?;
        let row = |row: &tokio_postgres::Row| {
            let (id, time) = (row.try_get(0).unwrap_or_default(), row.try_get(1).unwrap_or_default());
            (id, Rest::Times { before: (time, id) })
        };
        Ok(rows.iter().map(row).collect())
    }
}

fn bound(limit: usize) -> i64 {
    saturated::<i64>(limit)
}
