//! Runs a search, from its query to its hits, in one transaction.

use std::collections::HashSet;

use fetchwell_core::record::{Hit, RecordData};
use fetchwell_ranking::lexical::expansion::{Lookups, look_up};
use fetchwell_ranking::lexical::explanation::{RankingBreakdown, SearchTrace};
use fetchwell_ranking::lexical::hits::{excerpt_terms, hit_of};
use fetchwell_ranking::lexical::matching::{ExcerptTerms, ScanAllowance};
use fetchwell_ranking::lexical::question::{is_lexical_instead, lists_records, page_without_words};
use fetchwell_ranking::lexical::scoring::score_noting;
use fetchwell_ranking::lexical::selection::{Copies, LikeHit, Match, ScoredCandidate, arrange};
use fetchwell_ranking::lexical::terms::QueryTerms;
use fetchwell_ranking::meaning::{NearestRecords, Placement, Placements, passage_of, place_all, place_among};
use fetchwell_ranking::record_filter::RecordFilter;
use fetchwell_ranking::relational::interrupt::ReadBounds;
use fetchwell_ranking::relational::streams::stream_rows;
use fetchwell_source::{Count, SearchPage, SearchQuery, SourceError};

use super::super::tables::{PostgresTables, record_columns};
use super::candidates::{Candidates, Conditions};
use super::filtered::{FilteredPage, MATCHES, PageFilter, page_of, passing, passing_hits};
use super::list::List;
use super::position::{Place, Position, Rest};
use super::scope::Scope;
use super::tsquery::constraints;
use super::vocabulary::Terms;

/// Settings of a search. A statement is planned for its values, the index is preferred to reading all records, and the
/// records that it selects are remembered one by one.
pub(crate) const SETTINGS: &str =
    "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL random_page_cost = 1.1;
    SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL work_mem = '32MB'";

/// Note of a search while words of records are missing.
const INCOMPLETE: &str =
    "records that an earlier release imported are found after the next `fetchwell import` into this store";

/// Reader of the records that are nearest to the query of one search.
pub(crate) trait NearestReader {
    /// Returns true if records are found by meaning alone, and not by words.
    fn is_alone(&self) -> bool;

    /// Returns the nearest records in scope that meet the conditions.
    fn nearest(
        &self,
        tables: &PostgresTables<'_>,
        scope: &Scope,
        conditions: &Conditions,
    ) -> Result<NearestRecords, SourceError>;
}

/// Ranked records of one page, and everything that reading their hits needs.
#[derive(Debug, Default)]
pub(crate) struct RankedPage {
    pub(crate) rows: Vec<Match>,
    pub(crate) words: ExcerptTerms,
    /// Records that their meaning placed; none on later pages.
    placed: Placements,
    /// The page without its hits.
    pub(crate) page: SearchPage,
    trace: SearchTrace,
}

/// Runs a search.
pub(crate) fn search(
    tables: &PostgresTables<'_>,
    query: &SearchQuery,
    nearest: Option<&dyn NearestReader>,
    bounds: ReadBounds<'_>,
) -> Result<SearchPage, SourceError> {
    let mut ranked = rank(tables, query, nearest, bounds)?;
    let hits = read_hits(tables, &ranked, bounds)?;
    ranked.trace.clock.end("hits");
    Ok(SearchPage { hits, stages: ranked.trace.clock.into_stages(), ..ranked.page })
}

/// Ranks the records of one page.
pub(crate) fn rank(
    tables: &PostgresTables<'_>,
    query: &SearchQuery,
    nearest: Option<&dyn NearestReader>,
    bounds: ReadBounds<'_>,
) -> Result<RankedPage, SourceError> {
    let terms = QueryTerms::new(&query.text);
    if terms.is_empty() && !lists_records(query) {
        return Ok(RankedPage { page: page_without_words(query), ..RankedPage::default() });
    }
    let position = query.position.as_ref();
    let position =
        position.map(|position| Position::read(position).ok_or(SourceError::InvalidCursor)).transpose()?;
    let mut trace = SearchTrace::start(query);
    tables.queries.execute(SETTINGS)?;
    let filter =
        RecordFilter::for_query(query, |stream| stream_rows(tables, stream, query.connection.as_ref()))?;
    let scope = Scope::resolve(tables, query)?;
    trace.clock.end("scope");
    let vocabulary = Terms::new(tables, &scope);
    vocabulary.load(terms.slots.iter().map(|slot| slot.text.as_str()))?;
    let lookups = look_up(&vocabulary, &terms)?;
    let search = RankedSearch {
        tables,
        query,
        terms: &terms,
        filter: filter.as_ref(),
        scope: &scope,
        vocabulary: &vocabulary,
        lookups: &lookups,
        bounds,
    };
    let mut within = position.as_ref().and_then(|position| position.within.clone());
    let mut position = position;
    loop {
        match search.page(position.take(), within.take(), nearest, &mut trace)? {
            RankedRecords::Page(page) => return Ok(RankedPage { trace, ..*page }),
            RankedRecords::Few(ids) => within = Some(ids),
        }
    }
}

/// Search of which the records are ranked.
struct RankedSearch<'a> {
    tables: &'a PostgresTables<'a>,
    query: &'a SearchQuery,
    terms: &'a QueryTerms,
    filter: Option<&'a RecordFilter>,
    scope: &'a Scope,
    vocabulary: &'a Terms<'a>,
    lookups: &'a Lookups,
    bounds: ReadBounds<'a>,
}

/// Ranked records of a page, or the only records that may pass the filter.
enum RankedRecords {
    Page(Box<RankedPage>),
    Few(Vec<i64>),
}

impl RankedSearch<'_> {
    /// Ranks the records of a page, of the whole scope or of some ids. Returns the ids among which a first page is to be ranked
    /// if few records pass the filter.
    fn page(
        &self,
        position: Option<Position>,
        within: Option<Vec<i64>>,
        nearest: Option<&dyn NearestReader>,
        trace: &mut SearchTrace,
    ) -> Result<RankedRecords, SourceError> {
        let Self { tables, query, terms, filter, scope, vocabulary, lookups, bounds } = *self;
        let conditions = Conditions {
            constraints: constraints(terms, scope, vocabulary)?,
            have_all_words: terms.are_required(),
            after: query.text.after.map(jiff::Timestamp::as_second),
            before: query.text.before.map(jiff::Timestamp::as_second),
            within,
        };
        let candidates = Candidates::new(tables, terms, vocabulary, lookups, scope, &conditions)?;
        trace.clock.end("words");
        let is_first = position.is_none();
        let selection = Selection { query, terms, lookups, scope, candidates: &candidates };
        let found = selection.position(position, trace)?;
        trace.clock.end("score");
        let nearest = nearest.filter(|_| is_first && !terms.is_empty());
        let is_by_words = nearest.is_none();
        let is_alone = nearest.is_some_and(NearestReader::is_alone);
        let (Position { place, ranked, count, .. }, placed) = match nearest {
            Some(reader) => {
                let mut near = reader.nearest(tables, scope, &conditions)?;
                trace.clock.end("meaning");
                if let Some(filter) = filter {
                    near.hits = passing_hits(tables, near.hits, filter, bounds)?;
                }
                // Without hits by words there are none to place among.
                let filter = filter.filter(|_| !is_alone);
                let passing = passing(tables, &found.ranked, filter, bounds)?;
                let placed =
                    Near { near, is_alone }.place(found, &passing, lookups, trace.breakdown.as_mut());
                trace.clock.end("placement");
                placed
            }
            None => (found, Placements::default()),
        };
        let (any, max_matches) = (candidates.any(), candidates.max_matches());
        let list = List { tables, conditions: &conditions, any, max_matches, ranked };
        let may_select = is_first && conditions.within.is_none();
        let found = match page_of(&list, place, query.limit, PageFilter { filter, may_select }, bounds)? {
            FilteredPage::Few(ids) => return Ok(RankedRecords::Few(ids)),
            FilteredPage::Matches(found) => found,
        };
        trace.clock.end("page");
        let count = count.unwrap_or_else(|| {
            let shown = Count::exact(found.rows.len() as u64);
            if found.next.is_some() { shown.at_least() } else { shown }
        });
        let within = conditions.within.clone();
        let position = |place| Position { place, ranked: list.ranked, count: Some(count), within };
        let next = found.next.map(|place| position(place).write());
        let page = SearchPage {
            next,
            count: filter.is_none().then_some(count),
            notes: notes(scope, terms),
            lexical_instead: is_by_words && is_lexical_instead(query),
            has_raised_dates: !terms.dates.is_empty() && !is_alone,
            ..SearchPage::default()
        };
        let words = excerpt_terms(lookups);
        let page = RankedPage { rows: found.rows, words, placed, page, trace: SearchTrace::default() };
        Ok(RankedRecords::Page(Box::new(page)))
    }
}

/// Returns the notes of a search.
fn notes(scope: &Scope, terms: &QueryTerms) -> Vec<String> {
    scope.is_incomplete.then(|| INCOMPLETE.to_owned()).into_iter().chain(terms.cut_note()).collect()
}

/// Candidates of a search, and what they are scored by.
struct Selection<'a, 'c> {
    query: &'a SearchQuery,
    terms: &'a QueryTerms,
    lookups: &'a Lookups,
    scope: &'a Scope,
    candidates: &'a Candidates<'c>,
}

impl Selection<'_, '_> {
    /// Returns the position of a page. That of the first page has the scored records.
    fn position(&self, at: Option<Position>, trace: &mut SearchTrace) -> Result<Position, SourceError> {
        match at {
            Some(position) => {
                // A position has scores, and not what they are made of.
                if trace.breakdown.is_some() && !self.terms.is_empty() {
                    self.scored(trace)?;
                }
                Ok(position)
            }
            None if self.terms.is_empty() => {
                let rest = Rest::Times { before: (i64::MAX, i64::MAX) };
                let place = Place { ranked: 0, rest };
                Ok(Position { place, ranked: Vec::new(), count: None, within: None })
            }
            None => {
                let (scored, is_complete) = self.scored(trace)?;
                Ok(first_position(self.candidates, scored, is_complete, self.query))
            }
        }
    }

    /// Returns the candidates with their scores, and true if they are all that match.
    fn scored(&self, trace: &mut SearchTrace) -> Result<(Vec<ScoredCandidate>, bool), SourceError> {
        let selected = self.candidates.select()?;
        trace.clock.end("candidates");
        let kinds = self.scope.streams_of_kinds(&self.terms.kinds);
        let breakdown = trace.breakdown.as_mut();
        let scored = score_noting(self.terms, self.lookups, selected.evidence, &kinds, breakdown);
        Ok((scored, selected.is_complete))
    }
}

/// Returns the position of the first page of scored records. They are all that match if `is_complete` is true.
fn first_position(
    candidates: &Candidates<'_>,
    scored: Vec<ScoredCandidate>,
    is_complete: bool,
    query: &SearchQuery,
) -> Position {
    let rest = if is_complete { Rest::Nothing } else { Rest::Words { before: i64::MAX } };
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
    Position { place: Place { ranked: 0, rest }, ranked, count: Some(count), within: None }
}

/// Records that are near to the query of a first page.
struct Near {
    near: NearestRecords,
    /// True if records are found by meaning alone.
    is_alone: bool,
}

impl Near {
    /// Places the records in the list of the words of a query. `passing` has for each of that list whether it passes the filter:
    /// those that are not shown must not decide the places of others.
    fn place(
        self,
        found: Position,
        passing: &[bool],
        lookups: &Lookups,
        breakdown: Option<&mut RankingBreakdown>,
    ) -> (Position, Placements) {
        let Self { near, is_alone } = self;
        let Position { place, ranked, count, within } = found;
        if is_alone {
            let placed = place_all(&near, breakdown);
            let ranked = merged(&placed, Vec::new());
            let count = Count::exact(ranked.len() as u64);
            let count = Some(if near.is_cut { count.at_least() } else { count });
            let place = Place { ranked: 0, rest: Rest::Nothing };
            return (Position { place, ranked, count, within }, placed);
        }
        let shown = ranked.iter().zip(passing).filter(|(_, passes)| **passes).map(|(found, _)| *found);
        let shown: Vec<Match> = shown.collect();
        let rows: HashSet<i64> = shown.iter().map(|found| found.row).collect();
        let placed = place_among(&shown, &near, lookups, breakdown);
        let placed =
            placed.with_filtered_out(ranked.iter().map(|found| found.row), |row| rows.contains(&row));
        let ranked = merged(&placed, ranked);
        // Hits by meaning may be among the hits by words that were not read.
        let at_least_ranked =
            |count: Count| Count { value: count.value.max(ranked.len() as u64), ..count }.at_least();
        let count = if placed.is_empty() { count } else { count.map(at_least_ranked) };
        (Position { place, ranked, count, within }, placed)
    }
}

/// Returns the ranked records with those that their meaning placed.
fn merged(placed: &Placements, ranked: Vec<Match>) -> Vec<Match> {
    let others = |_: usize| Ok::<_, std::convert::Infallible>(ranked);
    let row = |placed: &Placement, known: Option<Match>| {
        // A record that only its meaning found has no score of words.
        let found = known.unwrap_or_else(|| Match::new(placed.row, f32::NAN));
        Match { copies: placed.copies, ..found }
    };
    match placed.merge(0, usize::MAX, others, |found: &Match| found.row, row) {
        Ok(merged) => merged,
        Err(never) => match never {},
    }
}

/// Reads the hits of a page, in their order. A record that was deleted in the meantime is left out.
fn read_hits(
    tables: &PostgresTables<'_>,
    ranked: &RankedPage,
    bounds: ReadBounds<'_>,
) -> Result<Vec<Hit>, SourceError> {
    let RankedPage { rows: matches, words: terms, placed, trace, .. } = ranked;
    let ids: Vec<i64> = matches.iter().map(|found| found.row).collect();
    let sql = format!(
        "SELECT m.place, {} {MATCHES} JOIN fetchwell.streams s ON s.id = r.stream
         JOIN fetchwell.connections c ON c.id = s.connection ORDER BY m.place",
        record_columns()
    );
    let mut hits = Vec::with_capacity(matches.len());
    let mut scan = ScanAllowance::default();
    tables.queries.batches(&sql, &[&ids], &mut |row| {
        bounds.interrupt.check()?;
        // Only the hit is kept, and the record is dropped.
        bounds.allowance.clear();
        let place = usize::try_from(row.try_get::<_, i64>(0).unwrap_or_default()).unwrap_or_default();
        let found = matches.get(place.saturating_sub(1));
        let record = tables.record(row, 1, bounds.allowance)?.record;
        if let (Some(found), Some(record)) = (found, record) {
            let placement = placed.iter().find(|placed| placed.row == found.row).copied();
            let breakdown = trace.breakdown.as_ref();
            let explanation = breakdown
                .map(|known| Box::new(known.explain(found, &record.data, terms, placement.is_some())));
            let passage = placement.map(|placed| move |data: &RecordData| passage_of(data, &placed));
            hits.push(Hit { explanation, ..hit_of(record, None, found, terms, &mut scan, passage) });
        }
        Ok(true)
    })?;
    Ok(hits)
}
