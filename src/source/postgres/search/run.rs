//! Runs a search, from its query to its hits, in one transaction.

use super::super::tables::{PostgresTables, length, optional_text, record_columns, text_columns};
use super::candidates::{Candidates, Conditions};
use super::list::List;
use super::position::{Place, Position, Rest};
use super::scope::Scope;
use super::tsquery::constraints;
use super::vocabulary::Terms;
use crate::record::{Excerpt, Hit, RecordData};
use crate::source::lexical::expansion::look_up;
use crate::source::lexical::hits::{excerpt_terms, hit_of};
use crate::source::lexical::matching::{ExcerptTerms, ScanAllowance};
use crate::source::lexical::question::{is_lexical_instead, lists_records, page_without_words};
use crate::source::lexical::record_filter::{CHUNK, MAX_EXAMINED, RecordFilter};
use crate::source::lexical::scoring::score;
use crate::source::lexical::selection::{Copies, LikeHit, Match, arrange};
use crate::source::lexical::terms::QueryTerms;
use crate::source::relational::interrupt::ReadBounds;
use crate::source::relational::streams::stream_rows;
use crate::source::relational::tables::RecordKey;
use crate::source::{Count, SearchPage, SearchQuery, SourceError};

/// Settings of a search. A statement is planned for its values, the index is preferred to reading all records, and the
/// records that it selects are remembered one by one.
const SETTINGS: &str = "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL random_page_cost = 1.1;
    SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL work_mem = '32MB'";

/// Note of a search while words of records are missing.
const INCOMPLETE: &str =
    "records that an earlier release imported are found after the next `fetchwell import` into this store";

/// Matches of one page.
struct MatchPage {
    rows: Vec<Match>,
    /// Place of the next page.
    next: Option<Place>,
}

/// Runs a search.
pub(in crate::source::postgres) fn search(
    tables: &PostgresTables<'_>,
    query: &SearchQuery,
    bounds: ReadBounds<'_>,
) -> Result<SearchPage, SourceError> {
    let terms = QueryTerms::new(&query.text);
    if terms.is_empty() && !lists_records(query) {
        return Ok(page_without_words(query));
    }
    let position = query.position.as_ref();
    let position =
        position.map(|position| Position::read(position).ok_or(SourceError::InvalidCursor)).transpose()?;
    tables.execute(SETTINGS)?;
    let filter =
        RecordFilter::for_query(query, |stream| stream_rows(tables, stream, query.connection.as_ref()))?;
    let scope = Scope::resolve(tables, query)?;
    let vocabulary = Terms::new(tables, &scope);
    vocabulary.load(terms.slots.iter().map(|slot| slot.text.as_str()))?;
    let lookups = look_up(&vocabulary, &terms)?;
    let conditions = Conditions {
        constraints: constraints(&terms, &scope, &vocabulary)?,
        after: query.text.after.map(jiff::Timestamp::as_second),
        before: query.text.before.map(jiff::Timestamp::as_second),
    };
    let candidates = Candidates::new(tables, &vocabulary, &lookups, &scope, &conditions)?;
    let Position { place, ranked, count } = match position {
        Some(position) => position,
        None if terms.is_empty() => {
            let rest = Rest::Times { before: (i64::MAX, i64::MAX) };
            Position { place: Place { ranked: 0, rest }, ranked: Vec::new(), count: None }
        }
        None => {
            let selected = candidates.select()?;
            let rest = if selected.is_complete { Rest::Nothing } else { Rest::Words { before: i64::MAX } };
            let scored = score(&terms, &lookups, selected.evidence);
            let like: Vec<LikeHit> = scored.iter().map(LikeHit::from).collect();
            let ranked = arrange(scored, &Copies::by_likeness(&like));
            let found = ranked.len() as u64;
            let is_plain = query.text.is_plain();
            let count = match rest {
                Rest::Nothing => Count::exact(found),
                _ if is_plain && candidates.is_one_word() => Count::exact(candidates.min_matches()),
                _ if is_plain => Count::exact(candidates.min_matches().max(found)).at_least(),
                _ => Count::exact(found).at_least(),
            };
            Position { place: Place { ranked: 0, rest }, ranked, count: Some(count) }
        }
    };
    let (any, max_matches) = (candidates.any(), candidates.max_matches());
    let list = List { tables, conditions: &conditions, any, max_matches, ranked };
    let found = page_of(&list, place, query.limit, filter.as_ref(), bounds)?;
    let hits = read_hits(tables, &found.rows, &excerpt_terms(&lookups), bounds)?;
    let count = count.unwrap_or_else(|| {
        let shown = Count::exact(found.rows.len() as u64);
        if found.next.is_some() { shown.at_least() } else { shown }
    });
    let next = found.next.map(|place| Position { place, ranked: list.ranked, count: Some(count) }.write());
    Ok(SearchPage {
        hits,
        next,
        count: filter.is_none().then_some(count),
        notes: scope
            .is_incomplete
            .then(|| INCOMPLETE.to_owned())
            .into_iter()
            .chain(terms.cut_note())
            .collect(),
        lexical_instead: is_lexical_instead(query),
        ..SearchPage::default()
    })
}

/// Reads matches from a place on until the page is full, and those that pass the filter if there is one.
fn page_of(
    list: &List<'_>,
    from: Place,
    limit: usize,
    filter: Option<&RecordFilter>,
    bounds: ReadBounds<'_>,
) -> Result<MatchPage, SourceError> {
    let (mut place, mut rows, mut examined) = (from, Vec::new(), 0);
    // One match more than the limit is requested, to know whether there is a next page.
    let wanted = if filter.is_some() { CHUNK } else { limit.saturating_add(1) };
    while examined < MAX_EXAMINED {
        bounds.interrupt.check()?;
        let steps = list.read(place, wanted)?;
        let found: Vec<Match> = steps.iter().map(|step| step.found).collect();
        let passing = match filter {
            Some(filter) => passing(list.tables, &found, filter, bounds)?,
            None => vec![true; found.len()],
        };
        for (step, passes) in steps.iter().zip(passing) {
            if passes && rows.len() == limit {
                return Ok(MatchPage { rows, next: Some(place) });
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
            return Ok(MatchPage { rows, next: None });
        }
    }
    Ok(MatchPage { rows, next: Some(place) })
}

/// Rows of matches in their order, joined with their records.
const MATCHES: &str = "FROM unnest($1::bigint[]) WITH ORDINALITY AS m (id, place)
    CROSS JOIN LATERAL (SELECT * FROM fetchwell.texts WHERE id = m.id LIMIT 1) t
    CROSS JOIN LATERAL (SELECT * FROM fetchwell.records WHERE stream = t.stream AND key = t.key LIMIT 1) r";

/// Returns for each match whether its record passes a filter.
fn passing(
    tables: &PostgresTables<'_>,
    matches: &[Match],
    filter: &RecordFilter,
    bounds: ReadBounds<'_>,
) -> Result<Vec<bool>, SourceError> {
    let ids: Vec<i64> = matches.iter().map(|found| found.row).collect();
    let mut passing = vec![false; matches.len()];
    let sql = format!("SELECT m.place, r.stream, r.key, {} {MATCHES} ORDER BY m.place", text_columns());
    tables.batches(&sql, &[&ids], &mut |row| {
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

/// Reads the hits of some matches, in their order. A record that was deleted in the meantime is left out.
fn read_hits(
    tables: &PostgresTables<'_>,
    matches: &[Match],
    terms: &ExcerptTerms,
    bounds: ReadBounds<'_>,
) -> Result<Vec<Hit>, SourceError> {
    let ids: Vec<i64> = matches.iter().map(|found| found.row).collect();
    let sql = format!(
        "SELECT m.place, {} {MATCHES} JOIN fetchwell.streams s ON s.id = r.stream
         JOIN fetchwell.connections c ON c.id = s.connection ORDER BY m.place",
        record_columns()
    );
    let mut hits = Vec::with_capacity(matches.len());
    let mut scan = ScanAllowance::default();
    tables.batches(&sql, &[&ids], &mut |row| {
        bounds.interrupt.check()?;
        // Only the hit is kept, and the record is dropped.
        bounds.allowance.clear();
        let place = usize::try_from(row.try_get::<_, i64>(0).unwrap_or_default()).unwrap_or_default();
        let found = matches.get(place.saturating_sub(1));
        let record = tables.record(row, 1, bounds.allowance)?.record;
        if let (Some(found), Some(record)) = (found, record) {
            let passage: Option<fn(&RecordData) -> Option<Excerpt>> = None;
            hits.push(hit_of(record, found, terms, &mut scan, passage));
        }
        Ok(true)
    })?;
    Ok(hits)
}
