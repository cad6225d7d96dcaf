//! Filters over the ranked records of a search.
//!
//! Records are examined in their order until a page is full. If the first ones do not fill it and few records pass by their
//! columns, the search is made among these.

use fetchwell_ranking::lexical::selection::Match;
use fetchwell_ranking::meaning::NearestHit;
use fetchwell_ranking::record_filter::{CHUNK, MAX_EXAMINED, RecordFilter};
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_ranking::relational::tables::{RecordKey, Tables as _};
use fetchwell_source::SourceError;

use super::super::tables::{PostgresTables, length, optional_text, text_columns};
use super::list::List;
use super::position::Place;

/// Matches of one page.
pub(super) struct MatchPage {
    pub(super) rows: Vec<Match>,
    /// Place of the next page.
    pub(super) next: Option<Place>,
}

/// Returns the near records that pass a filter.
pub(super) fn passing_hits(
    tables: &PostgresTables<'_>,
    hits: Vec<NearestHit>,
    filter: &RecordFilter,
    bounds: ReadBounds<'_>,
) -> Result<Vec<NearestHit>, SourceError> {
    let matches: Vec<Match> = hits.iter().map(|near| Match::new(near.hit.record, 0.0)).collect();
    let passing = passing(tables, &matches, Some(filter), bounds)?;
    Ok(hits.into_iter().zip(passing).filter(|(_, passes)| *passes).map(|(near, _)| near).collect())
}

/// Filter of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageFilter<'a> {
    pub(super) filter: Option<&'a RecordFilter>,
    /// True if few records that pass may be selected before they are ranked.
    pub(super) may_select: bool,
}

/// Matches of a page, or the ids of the few records that may pass its filter.
pub(super) enum FilteredPage {
    Matches(MatchPage),
    Few(Vec<i64>),
}

/// Reads matches from a place on until the page is full, and those that pass the filter if there is one.
pub(super) fn page_of(
    list: &List<'_>,
    from: Place,
    limit: usize,
    filter: PageFilter<'_>,
    bounds: ReadBounds<'_>,
) -> Result<FilteredPage, SourceError> {
    let PageFilter { filter, mut may_select } = filter;
    let (mut place, mut rows, mut examined) = (from, Vec::new(), 0);
    // One match more than the limit is requested, to know whether there is a next page.
    let wanted = if filter.is_some() { CHUNK } else { limit.saturating_add(1) };
    while examined < MAX_EXAMINED {
        bounds.interrupt.check()?;
        let steps = list.read(place, wanted)?;
        let found: Vec<Match> = steps.iter().map(|step| step.found).collect();
        let passing = passing(list.tables, &found, filter, bounds)?;
        for (step, passes) in steps.iter().zip(passing) {
            if passes && rows.len() == limit {
                return Ok(FilteredPage::Matches(MatchPage { rows, next: Some(place) }));
            }
            if passes {
                // Copies were counted before the filter.
                let copies = if filter.is_some() { 0 } else { step.found.copies };
                rows.push(Match { copies, ..step.found });
            }
            place = step.behind;
            examined += 1;
        }
        if steps.len() < wanted {
            return Ok(FilteredPage::Matches(MatchPage { rows, next: None }));
        }
        if let Some(filter) = filter.filter(|_| std::mem::take(&mut may_select))
            && let Some(ids) = few_passing(list.tables, filter)?
        {
            return Ok(FilteredPage::Few(ids));
        }
    }
    Ok(FilteredPage::Matches(MatchPage { rows, next: Some(place) }))
}

/// Returns the ids of all records that may pass a filter, if columns have few of them.
fn few_passing(tables: &PostgresTables<'_>, filter: &RecordFilter) -> Result<Option<Vec<i64>>, SourceError> {
    let passing = filter.passing_rows(|stream, fields| tables.columns(stream, fields, None))?;
    let Some(versions) = passing.and_then(|passing| passing.few()) else { return Ok(None) };
    let sql =
        "SELECT t.id FROM unnest($1::bigint[]) AS s (stream) CROSS JOIN unnest($2::bigint[]) AS v (version)
         JOIN fetchwell.records r ON r.stream = s.stream AND r.version = v.version
         JOIN fetchwell.texts t ON t.stream = r.stream AND t.key = r.key ORDER BY t.id";
    let rows = tables.queries.query(sql, &[&filter.streams(), &versions])?;
    Ok(Some(rows.iter().filter_map(|row| row.try_get(0).ok()).collect()))
}

/// Rows of matches in their order, joined with their records.
pub(super) const MATCHES: &str = "FROM unnest($1::bigint[]) WITH ORDINALITY AS m (id, place)
    CROSS JOIN LATERAL (SELECT * FROM fetchwell.texts WHERE id = m.id LIMIT 1) t
    CROSS JOIN LATERAL (SELECT * FROM fetchwell.records WHERE stream = t.stream AND key = t.key LIMIT 1) r";

/// Returns for each match whether its record passes a filter. Without one, all pass.
pub(super) fn passing(
    tables: &PostgresTables<'_>,
    matches: &[Match],
    filter: Option<&RecordFilter>,
    bounds: ReadBounds<'_>,
) -> Result<Vec<bool>, SourceError> {
    let Some(filter) = filter else { return Ok(vec![true; matches.len()]) };
    let ids: Vec<i64> = matches.iter().map(|found| found.row).collect();
    let mut passing = vec![false; matches.len()];
    let sql = format!("SELECT m.place, r.stream, r.key, {} {MATCHES} ORDER BY m.place", text_columns());
    tables.queries.batches(&sql, &[&ids], &mut |row| {
        bounds.interrupt.check()?;
        // The read exceeded its memory limit, so its result is discarded.
        if !bounds.allowance.has_room_for(usize::try_from(length(row, 3)).unwrap_or_default()) {
            return Ok(false);
        }
        let place = usize::try_from(row.try_get::<_, i64>(0).unwrap_or_default()).unwrap_or_default();
        let key = RecordKey {
            stream: row.try_get(1).unwrap_or_default(),
            key: optional_text(row, 2).unwrap_or_default(),
        };
        let passes = tables.with_text(row, 3, key, |data| filter.passes(data))?;
        if let Some(slot) = passing.get_mut(place.saturating_sub(1)) {
            *slot = passes;
        }
        Ok(true)
    })?;
    Ok(passing)
}
