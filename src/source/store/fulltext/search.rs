//! Full-text search over the store: runs a query on the index, applies its filter and reads the hits from SQLite.
//!
//! All words are required first; if nothing matches, a record with some of them is a hit too. A damaged index is
//! rebuilt and the search repeated.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::Connection;
use tantivy::collector::TopDocs;
use tantivy::columnar::Column;
use tantivy::query::Query;
use tantivy::{DocAddress, SegmentOrdinal, TantivyError};

use super::clauses::Mode;
use super::index::{CurrentIndex, IndexFault, Snapshot, folder_of, guard};
use super::matching::{MatchLocation, locate_match};
use super::post_filter::{Match, MatchPage, PostFilter};
use super::scope::Scope;
use super::terms::{Phrase, phrases, term_set};
use crate::record::{Evidence, Hit, HitId, Record, Score, authored_at, fallback_title, own_link, own_title};
use crate::source::store::database::Database;
use crate::source::store::error::StoreError;
use crate::source::store::read::allowance::Allowance;
use crate::source::store::read::rows::{RECORD_COLUMNS, RECORD_TABLES, record_of};
use crate::source::{SearchMode, SearchPage, SearchPosition, SearchQuery, SourceError};

/// Maximum number of retries after a damaged index file.
const MAX_RETRIES: usize = 2;

/// Search index of one store, with its queries.
#[derive(Debug, Default)]
pub(in crate::source::store) struct StoreSearch {
    pub(in crate::source::store) index: CurrentIndex,
}

/// Validated search query.
#[derive(Debug)]
struct Question<'a> {
    query: &'a SearchQuery,
    phrases: Vec<Phrase>,
    scope: Scope,
    post_filter: Option<PostFilter<'a>>,
    allowance: &'a Allowance,
}

/// Position of the next page: version of the index, match mode and number of matches already seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    version: i64,
    mode: Mode,
    /// Number of matches that earlier pages have consumed.
    offset: usize,
}

impl StoreSearch {
    pub(in crate::source::store) fn search(
        &self,
        database: &Database,
        query: &SearchQuery,
        allowance: &Allowance,
    ) -> Result<SearchPage, SourceError> {
        let phrases = phrases(&query.text.words);
        if phrases.is_empty() {
            let notes = vec!["the query has no letters or digits to search for".to_owned()];
            return Ok(SearchPage {
                notes,
                lexical_instead: is_lexical_instead(query),
                ..SearchPage::default()
            });
        }
        let post_filter = PostFilter::for_query(database, query, allowance)?;
        let scope = Scope::resolve(database, query.connection.as_ref(), &query.streams)?;
        let at = query
            .position
            .as_ref()
            .map(|position| Position::read(position).ok_or(SourceError::InvalidCursor));
        let at = at.transpose()?;
        let question = Question { query, phrases, scope, post_filter, allowance };
        let mut retries = 0;
        loop {
            let fault = RefCell::default();
            match self.answer(database, &question, at, &fault) {
                // The next try rebuilds the damaged index or opens it again.
                Err(_)
                    if retries < MAX_RETRIES
                        && let Some(IndexFault::Damaged(problem)) = &*fault.borrow() =>
                {
                    retries += 1;
                    self.index.note_damage(database, problem, retries == MAX_RETRIES);
                }
                answer => return answer,
            }
        }
    }

    /// Runs the query on one snapshot of the index. Stores the reason in `fault` if the index fails.
    fn answer(
        &self,
        database: &Database,
        question: &Question<'_>,
        at: Option<Position>,
        fault: &RefCell<Option<IndexFault>>,
    ) -> Result<SearchPage, SourceError> {
        let Question { query, phrases, scope, post_filter, allowance } = question;
        let (snapshot, mut notes) = match at {
            Some(at) => (self.index.remembered(database, at.version)?, Vec::new()),
            None => self.index.newest(database)?,
        };
        // One match more than the limit is requested, to know whether there is a next page.
        let run = |mode, offset| {
            let matching = snapshot.fields.query(phrases, mode, scope);
            let matches = |offset, limit| {
                guard(|| snapshot.matches(&*matching, offset, limit)).map_err(|error| {
                    *fault.borrow_mut() = Some(IndexFault::from_tantivy(&error));
                    StoreError::Index { path: folder_of(database.path()), problem: error.to_string() }
                })
            };
            match post_filter {
                None => {
                    matches(offset, query.limit + 1).map(|rows| MatchPage::from_lookahead(rows, query.limit))
                }
                Some(post_filter) => post_filter.pass(offset, query.limit, matches),
            }
        };
        let (mode, offset) = at.map_or((Mode::All, 0), |at| (at.mode, at.offset));
        let mut found = run(mode, offset)?;
        let mut mode = mode;
        if found.rows.is_empty() && !found.more && at.is_none() && phrases.len() > 1 {
            mode = Mode::Any;
            found = run(mode, 0)?;
            if !found.rows.is_empty() {
                notes.push("no record has all the words; these have some of them".to_owned());
            }
        }
        let next = Position { version: snapshot.version, mode, offset: offset + found.consumed };
        let hits = database.read(|sqlite| hits(sqlite, &found.rows, phrases, allowance))?;
        let next = found.more.then(|| next.write());
        let lexical_instead = is_lexical_instead(query);
        Ok(SearchPage { hits, next, notes, lexical_instead, ..SearchPage::default() })
    }
}

/// Returns true if the query asks for another mode than lexical. The store has no embeddings, so every search is
/// lexical.
fn is_lexical_instead(query: &SearchQuery) -> bool {
    query.mode != SearchMode::Lexical
}

impl Snapshot {
    /// Returns the best matches after the first `offset`, best first.
    fn matches(&self, query: &dyn Query, offset: usize, limit: usize) -> Result<Vec<Match>, TantivyError> {
        let best = TopDocs::with_limit(limit).and_offset(offset).order_by_score();
        let best = self.searcher.search(query, &best)?;
        // Reading a column loads all of it, so it is read once per segment.
        let mut columns: HashMap<SegmentOrdinal, Column<u64>> = HashMap::new();
        let mut row = |address: DocAddress| -> Result<Option<i64>, TantivyError> {
            let column = match columns.entry(address.segment_ord) {
                Entry::Occupied(column) => column.into_mut(),
                Entry::Vacant(vacant) => {
                    let segment = self.searcher.segment_reader(address.segment_ord);
                    vacant.insert(segment.fast_fields().u64("record")?)
                }
            };
            Ok(column.first(address.doc_id).and_then(|row| i64::try_from(row).ok()))
        };
        let mut found = |(score, address)| -> Result<Option<Match>, TantivyError> {
            Ok(row(address)?.map(|row| Match { row, score }))
        };
        best.into_iter().filter_map(|best| found(best).transpose()).collect()
    }
}

/// Reads the hits of some rows, in their order. A record that was deleted in the meantime is left out.
fn hits(
    sqlite: &Connection,
    rows: &[Match],
    phrases: &[Phrase],
    allowance: &Allowance,
) -> Result<Vec<Hit>, rusqlite::Error> {
    let terms = term_set(phrases);
    let mut statement =
        sqlite.prepare_cached(&format!("SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE r.id = ?1"))?;
    let mut hits = Vec::with_capacity(rows.len());
    for Match { row, score } in rows {
        // Only the hit is kept, and the record is dropped.
        allowance.clear();
        let record =
            statement.query_map([row], |row| record_of(row, allowance))?.next().transpose()?.flatten();
        if let Some(Record { address, data, emitted_at, display_name, .. }) = record {
            let when = authored_at(&data).or(emitted_at.as_deref());
            let fallback = || fallback_title(display_name.as_deref(), Some(address.stream.as_str()), when);
            let MatchLocation { excerpt, field, fields, title_match } = locate_match(&data, &terms);
            let time = when.map(str::to_owned);
            let title = own_title(&data).map_or_else(fallback, str::to_owned);
            hits.push(Hit {
                evidence: Evidence {
                    emitted_at,
                    matched_fields: fields,
                    excerpt_field: field,
                    title_match,
                    score: Score::new(*score),
                },
                title,
                link: own_link(&data),
                excerpt,
                time,
                id: HitId::Record(address),
            });
        }
    }
    Ok(hits)
}

impl Position {
    fn write(self) -> SearchPosition {
        let mode = match self.mode {
            Mode::All => "all",
            Mode::Any => "any",
        };
        SearchPosition(format!("{}.{mode}.{}", self.version, self.offset))
    }

    fn read(position: &SearchPosition) -> Option<Self> {
        let mut pieces = position.0.split('.');
        let version = pieces.next()?.parse().ok()?;
        let mode = match pieces.next()? {
            "all" => Mode::All,
            "any" => Mode::Any,
            _ => return None,
        };
        let offset = pieces.next()?.parse().ok()?;
        pieces.next().is_none().then_some(Self { version, mode, offset })
    }
}
