//! Full-text search over the store: runs a query on the index, applies its filter and reads the hits from SQLite.
//!
//! Any word is enough for a hit; better matches come first. Hits by meaning are placed among them. A damaged index is
//! rebuilt and the search repeated.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use fetchwell_ranking::lexical::explanation::SearchTrace;
use fetchwell_ranking::lexical::hits::excerpt_terms;
use fetchwell_ranking::lexical::matching::ExcerptTerms;
use fetchwell_ranking::lexical::question::{is_lexical_instead, lists_records, page_without_words};
use fetchwell_ranking::lexical::ranking::WEIGHTS;
use fetchwell_ranking::lexical::selection::{Copies, Match};
use fetchwell_ranking::lexical::terms::QueryTerms;
use fetchwell_ranking::meaning::{MAX_PLACED, NearestHit, Placement, Placements, place_all, place_among};
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_source::contract::StoreError;
use fetchwell_source::{Count, SearchPage, SearchPosition, SearchQuery, SourceError};
use tantivy::TantivyError;

use super::columns::IndexColumns;
use super::hits::{compared_texts, read_hits};
use super::index::{CurrentIndex, IndexFault, Snapshot, folder_of, guard};
use super::meaning::{NearestError, QueryMeaning, nearest_records};
use super::pace::SearchPace;
use super::post_filter::{MatchPage, PostFilter};
use super::ranked_list::{CopySource, ListRecords, RANKED, RankedList};
use super::row_query::RowQuery;
use super::scope::{Scope, streams_of_kinds};
use crate::blocking::ReadLength;
use crate::database::Database;

/// Maximum number of retries after a damaged index file.
const MAX_RETRIES: usize = 2;

/// First piece of a position in an index of the current layout. Positions of earlier rankings begin otherwise.
const CURRENT: &str = "r3";

/// First piece of a position in an index of a previous layout.
const PREVIOUS: &str = "r0";

/// Piece of a position in a list with hits by meaning among hits by words. A list of words alone has none.
const AMONG_WORDS: &str = "h";

/// The same piece in a list of hits by meaning alone.
const ALONE: &str = "m";

/// Piece of a position before the records among which the search was made.
const WITHIN: &str = "w";

/// Search index of one store, with its queries.
#[derive(Debug)]
pub(crate) struct SqliteSearch {
    pub(crate) index: CurrentIndex,
    /// Number of the store in this process, for caches that all stores share.
    number: u64,
    pace: SearchPace,
}

impl Default for SqliteSearch {
    fn default() -> Self {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        Self { index: CurrentIndex::default(), number, pace: SearchPace::default() }
    }
}

/// Validated search query.
#[derive(Debug)]
struct Question<'a> {
    pub query: &'a SearchQuery,
    terms: QueryTerms,
    scope: Scope,
    /// Ids of the streams of the kinds that the query asks for.
    kind_streams: Vec<u64>,
    post_filter: Option<PostFilter<'a>>,
    meaning: Option<QueryMeaning<'a>>,
    trace: RefCell<SearchTrace>,
}

/// Position of the next page: version and layout of the index, number of matches that earlier pages have consumed, near-copies
/// among the first candidates, places of hits by meaning, and the records that may pass a filter, if they are few.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Position {
    version: i64,
    is_previous: bool,
    offset: usize,
    copies: Copies,
    meaning: Option<PlacedMeaning>,
    /// Records among which the search was made, because few pass its filter.
    within: Option<Scope>,
}

/// Hits by meaning, placed in the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct PlacedMeaning {
    placements: Placements,
    /// True if the list has no hits by words.
    is_alone: bool,
    /// True if there may be more hits by meaning.
    is_cut: bool,
}

/// Passage of each near record that is nearest to the query, in bytes of the record's text.
type NearestPassages = HashMap<i64, Range<usize>>;

/// Ranked records of one page, and everything that reading their hits needs.
#[derive(Debug, Default)]
struct RankedPage {
    rows: Vec<Match>,
    words: ExcerptTerms,
    placed: Placements,
    /// Passages of the nearest records, also of those that their words placed.
    passages: NearestPassages,
    /// The page without its hits.
    page: SearchPage,
    trace: SearchTrace,
}

/// A record that a search ranked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankedRecord {
    pub(crate) row: i64,
    /// Score of the record's words, 0 to 1; `None` for a record that was found by meaning.
    pub(crate) score: Option<f32>,
    /// Passage that is nearest to the query, in bytes of the record's text.
    pub(crate) passage: Option<Range<usize>>,
}

/// The best records of a search.
#[derive(Debug, Default)]
pub(crate) struct RankedRecords {
    /// Records, the best first.
    pub(crate) records: Vec<RankedRecord>,
    /// Words to find in them.
    pub(crate) words: ExcerptTerms,
    /// Reasons why the search was by words alone.
    pub(crate) problems: BTreeSet<String>,
    /// Reasons why records may be missing.
    pub(crate) notes: Vec<String>,
}

impl SqliteSearch {
    pub(crate) fn search(
        &self,
        database: &Database,
        query: &SearchQuery,
        meaning: Option<QueryMeaning<'_>>,
        allowance: &Allowance,
    ) -> Result<SearchPage, SourceError> {
        let timer = self.pace.start();
        let RankedPage { rows, words, placed, page, mut trace, .. } =
            self.rank(database, query, meaning, allowance)?;
        let breakdown = trace.breakdown.as_ref();
        let hits = database
            .read(|sqlite| read_hits(sqlite, self.number, &rows, &words, &placed, breakdown, allowance))?;
        trace.clock.end("hits");
        timer.stop();
        Ok(SearchPage { hits, stages: trace.clock.into_stages(), ..page })
    }

    /// Returns the expected duration of a search without vectors.
    pub(crate) fn expected_length(&self, query: &SearchQuery) -> ReadLength {
        let is_short = query.filter.is_empty() && query.position.is_none() && self.pace.is_short();
        if is_short { ReadLength::Short } else { ReadLength::Any }
    }

    /// Returns the best records of a search without reading them.
    pub(crate) fn ranked_records(
        &self,
        database: &Database,
        query: &SearchQuery,
        meaning: Option<QueryMeaning<'_>>,
        allowance: &Allowance,
    ) -> Result<RankedRecords, SourceError> {
        let RankedPage { rows, words, passages, page, .. } =
            self.rank(database, query, meaning, allowance)?;
        let max_score = WEIGHTS.max_score();
        let record = |found: &Match| RankedRecord {
            row: found.row,
            score: found.score.is_finite().then(|| (found.score / max_score).clamp(0.0, 1.0)),
            passage: passages.get(&found.row).cloned(),
        };
        let records = rows.iter().map(record).collect();
        Ok(RankedRecords { records, words, problems: page.meaning_problems, notes: page.notes })
    }

    /// Ranks the records of one page.
    fn rank(
        &self,
        database: &Database,
        query: &SearchQuery,
        meaning: Option<QueryMeaning<'_>>,
        allowance: &Allowance,
    ) -> Result<RankedPage, SourceError> {
        let terms = QueryTerms::new(&query.text);
        if terms.is_empty() && !lists_records(query) {
            return Ok(RankedPage { page: page_without_words(query), ..RankedPage::default() });
        }
        let mut trace = SearchTrace::start(query);
        let columns = IndexColumns::new(database, &self.index);
        let post_filter = PostFilter::for_query(database, columns, query, allowance)?;
        let scope = Scope::resolve(database, query.connection.as_ref(), &query.streams)?;
        let kind_streams = streams_of_kinds(database, &terms.kinds)?;
        let at = query
            .position
            .as_ref()
            .map(|position| Position::read(position).ok_or(SourceError::InvalidCursor));
        let at = at.transpose()?;
        let meaning = meaning.filter(|_| !terms.is_empty() && at.is_none());
        trace.clock.end("scope");
        let trace = RefCell::new(trace);
        let question = Question { query, terms, scope, kind_streams, post_filter, meaning, trace };
        let mut retries = 0;
        let mut within = at.as_ref().and_then(|at| at.within.clone());
        loop {
            let fault = RefCell::default();
            let answer = self.answer(database, &question, at.as_ref(), within.as_ref(), &fault);
            if at.is_none()
                && within.is_none()
                && answer.is_ok()
                && let Some(few) = question.few_pass()
            {
                within = Some(few);
                continue;
            }
            match answer {
                // The next try rebuilds the damaged index or opens it again.
                Err(_)
                    if retries < MAX_RETRIES
                        && let Some(IndexFault::Damaged(problem)) = &*fault.borrow() =>
                {
                    retries += 1;
                    self.index.note_damage(database, problem, retries == MAX_RETRIES);
                }
                answer => {
                    return answer.map(|page| RankedPage { trace: question.trace.into_inner(), ..page });
                }
            }
        }
    }

    /// Runs the query on one snapshot of the index. Stores the reason in `fault` if the index fails.
    fn answer(
        &self,
        database: &Database,
        question: &Question<'_>,
        at: Option<&Position>,
        within: Option<&Scope>,
        fault: &RefCell<Option<IndexFault>>,
    ) -> Result<RankedPage, SourceError> {
        let Question { query, terms, scope, kind_streams, post_filter, trace, .. } = question;
        let (snapshot, mut notes) = match at {
            Some(at) => (self.index.remembered(database, at.version, at.is_previous)?, Vec::new()),
            None => self.index.newest(database)?,
        };
        question.end_stage("index");
        let failed = |error: TantivyError| {
            *fault.borrow_mut() = Some(IndexFault::from_tantivy(&error));
            StoreError::Index { path: folder_of(database.path()), problem: error.to_string() }
        };
        // Without texts, hashes alone tell which records are near-copies.
        let texts = |rows: &[i64]| {
            database.read(|sqlite| compared_texts(sqlite, self.number, rows)).unwrap_or_default()
        };
        let copies = at.map_or(CopySource::Texts(&texts), |at| CopySource::Known(at.copies.clone()));
        let records = ListRecords { scope, within, kind_streams };
        let list = guard(|| RankedList::new(&snapshot, terms, &query.text, records, copies, trace));
        let list = list.map_err(failed)?;
        let mut problem = None;
        let mut passages = NearestPassages::new();
        let meaning = match at {
            Some(at) => at.meaning.clone(),
            None => {
                let placed = place(&snapshot, question, &list, within, &mut passages);
                placed.or_else(|error| without_vectors(error, failed, &mut problem))?
            }
        };
        let placed = meaning.as_ref().map(|meaning| &meaning.placements).cloned().unwrap_or_default();
        let is_alone = meaning.as_ref().is_some_and(|meaning| meaning.is_alone);
        let matches = |offset, limit| {
            let words =
                |count| if is_alone { Ok(Vec::new()) } else { list.matches(0, count).map_err(failed) };
            if placed.is_empty() && !is_alone {
                list.matches(offset, limit).map_err(failed)
            } else {
                placed.merge(offset, limit, words, |found: &Match| found.row, placed_match)
            }
        };
        let offset = at.map_or(0, |at| at.offset);
        // One match more than the limit is requested, to know whether there is a next page.
        let found = match post_filter {
            None => matches(offset, query.limit.saturating_add(1))
                .map(|rows| MatchPage::from_lookahead(rows, query.limit))?,
            Some(filter) => filter.pass(offset, query.limit, at.is_none() && within.is_none(), matches)?,
        };
        question.end_stage("page");
        let next = Position {
            version: snapshot.version,
            is_previous: snapshot.is_previous,
            offset: offset.saturating_add(found.consumed),
            copies: list.copies(),
            meaning,
            within: within.cloned(),
        };
        notes.extend(terms.cut_note());
        let words = excerpt_terms(&list.lookups);
        let count = post_filter.is_none().then(|| counted(&list, next.meaning.as_ref()));
        let windowed = next.meaning.as_ref().is_some_and(|meaning| meaning.is_alone && meaning.is_cut);
        let lexical_instead = next.meaning.is_none() && is_lexical_instead(query);
        let page = SearchPage {
            next: found.more.then(|| next.write()),
            notes,
            count,
            windowed,
            lexical_instead,
            has_raised_dates: !terms.dates.is_empty() && snapshot.fields.has_columns() && !is_alone,
            meaning_problems: BTreeSet::from_iter(problem),
            ..SearchPage::default()
        };
        Ok(RankedPage { rows: found.rows, words, placed, passages, page, ..RankedPage::default() })
    }
}

impl Question<'_> {
    /// Returns the records that may pass the filter, if they are few.
    fn few_pass(&self) -> Option<Scope> {
        self.post_filter.as_ref().and_then(PostFilter::few).map(|rows| Scope::Records(RowQuery::new(rows)))
    }

    fn end_stage(&self, name: &'static str) {
        self.trace.borrow_mut().clock.end(name);
    }
}

/// Returns no places by meaning if the vectors cannot be read, and stores why.
fn without_vectors<Placed>(
    error: NearestError,
    failed: impl FnOnce(TantivyError) -> StoreError,
    problem: &mut Option<String>,
) -> Result<Option<Placed>, SourceError> {
    match error {
        NearestError::Index(error) => Err(failed(error).into()),
        NearestError::Store(error) => Err(error.into()),
        NearestError::Vectors(error) => {
            *problem = Some(error.to_string());
            Ok(None)
        }
    }
}

/// Finds records by meaning and places them in the list; `None` for a search by words alone. Adds their passages.
fn place(
    snapshot: &Snapshot,
    question: &Question<'_>,
    list: &RankedList<'_>,
    within: Option<&Scope>,
    passages: &mut NearestPassages,
) -> Result<Option<PlacedMeaning>, NearestError> {
    let Question { query, terms, scope, post_filter, meaning, .. } = question;
    let Some(meaning) = meaning else { return Ok(None) };
    let is_deep = post_filter.is_some();
    let mut nearest =
        nearest_records(snapshot, terms, &query.text, within.unwrap_or(scope), meaning, is_deep)?;
    if let Some(post_filter) = post_filter {
        let near: Vec<Match> = nearest.hits.iter().map(|near| match_by_meaning(near.hit.record)).collect();
        let rows = post_filter.passing(&near, MAX_PLACED)?;
        nearest.hits.retain(|near| rows.contains(&near.hit.record));
    }
    question.end_stage("meaning");
    passages.extend(nearest.hits.iter().filter_map(|NearestHit { hit, .. }| {
        let byte = |byte: i64| usize::try_from(byte).ok();
        Some((hit.record, byte(hit.first_byte)?..byte(hit.end_byte)?))
    }));
    if meaning.is_alone {
        let placements = place_all(&nearest, question.trace.borrow_mut().breakdown.as_mut());
        return Ok(Some(PlacedMeaning { placements, is_alone: true, is_cut: nearest.is_cut }));
    }
    let near: HashSet<i64> = nearest.hits.iter().map(|near| near.hit.record).collect();
    // An original that does not pass the filter is no hit.
    let is_hit = |original: &i64| post_filter.is_none() || near.contains(original);
    let words = list.matches(0, RANKED)?;
    // Records that are not shown must not decide the places of others.
    let passing = post_filter.as_ref().map(|filter| filter.passing(&words, RANKED)).transpose()?;
    let passes = |row: i64| passing.as_ref().is_none_or(|passing| passing.contains(&row));
    let shown = words.iter().filter(|found| passes(found.row));
    let shown: Vec<Match> =
        shown.map(|found| Match { original: found.original.filter(is_hit), ..*found }).collect();
    let placements = {
        let mut trace = question.trace.borrow_mut();
        place_among(&shown, &nearest, &list.lookups, trace.breakdown.as_mut())
    };
    let placements = placements.with_filtered_out(words.iter().map(|found| found.row), passes);
    question.end_stage("placement");
    Ok(Some(PlacedMeaning { placements, is_alone: false, is_cut: nearest.is_cut }))
}

/// Returns the match of a placed record, which the list of hits by words may have as well.
fn placed_match(placed: &Placement, of_words: Option<Match>) -> Match {
    let found = of_words.unwrap_or_else(|| match_by_meaning(placed.row));
    Match { copies: placed.copies, ..found }
}

/// Returns the match of a record by its meaning alone, which has no score of words.
fn match_by_meaning(row: i64) -> Match {
    Match::new(row, f32::NAN)
}

/// Returns the number of hits, as far as it is known.
fn counted(list: &RankedList<'_>, meaning: Option<&PlacedMeaning>) -> Count {
    let Some(PlacedMeaning { placements, is_alone, is_cut }) = meaning else { return list.count() };
    let placed = Count::exact(placements.len() as u64);
    if *is_alone {
        return if *is_cut { placed.at_least() } else { placed };
    }
    let of_words = list.count();
    if placements.is_empty() {
        return of_words;
    }
    // Hits by meaning may be among the hits by words that were not read.
    Count { value: of_words.value.max(placed.value), ..of_words }.at_least()
}

impl Position {
    fn write(&self) -> SearchPosition {
        let kind = if self.is_previous { PREVIOUS } else { CURRENT };
        let mut text = format!("{kind}.{}.{}.{}", self.version, self.offset, self.copies.write());
        if let Some(Scope::Records(records)) = &self.within {
            let steps =
                records.rows().iter().scan(0, |before, row| Some(row - std::mem::replace(before, *row)));
            let steps: Vec<String> = steps.map(|step| step.to_string()).collect();
            text.push_str(&format!(".{WITHIN}.{}", steps.join(",")));
        }
        if let Some(PlacedMeaning { placements, is_alone, is_cut }) = &self.meaning {
            let kind = if *is_alone { ALONE } else { AMONG_WORDS };
            text.push_str(&format!(".{kind}.{}.{}", u8::from(*is_cut), placements.write()));
        }
        SearchPosition(text)
    }

    fn read(position: &SearchPosition) -> Option<Self> {
        let mut pieces = position.0.split('.');
        let is_previous = match pieces.next()? {
            CURRENT => false,
            PREVIOUS => true,
            _ => return None,
        };
        let version = pieces.next()?.parse().ok()?;
        let offset = pieces.next()?.parse().ok()?;
        let copies = Copies::parse(pieces.next()?)?;
        let mut next = pieces.next();
        let mut within = None;
        if next == Some(WITHIN) {
            let steps = pieces.next()?.split(',').filter(|step| !step.is_empty());
            let row = |before: &mut i64, step: &str| {
                *before = before.checked_add(step.parse::<i64>().ok()?)?;
                Some(*before)
            };
            let rows: Option<Vec<i64>> = steps.scan(0, |before, step| Some(row(before, step))).collect();
            within = Some(Scope::Records(RowQuery::new(rows?)));
            next = pieces.next();
        }
        let meaning = match next {
            None => None,
            Some(kind) => {
                let is_alone = match kind {
                    AMONG_WORDS => false,
                    ALONE => true,
                    _ => return None,
                };
                let is_cut = pieces.next()? == "1";
                let placements = Placements::parse(pieces.next()?)?;
                Some(PlacedMeaning { placements, is_alone, is_cut })
            }
        };
        pieces.next().is_none().then_some(Self { version, is_previous, offset, copies, meaning, within })
    }
}
