//! Full-text search over the store: runs a query on the index, applies its filter and reads the hits from SQLite.
//!
//! Any word is enough for a hit; better matches come first. A damaged index is rebuilt and the search repeated.

use std::cell::RefCell;

use tantivy::TantivyError;

use super::hits::{excerpt_terms, read_hits};
use super::index::{CurrentIndex, IndexFault, folder_of, guard};
use super::post_filter::{MatchPage, PostFilter};
use super::ranked_list::RankedList;
use super::scope::Scope;
use super::terms::QueryTerms;
use crate::source::store::database::Database;
use crate::source::store::error::StoreError;
use crate::source::store::read::allowance::Allowance;
use crate::source::{SearchMode, SearchPage, SearchPosition, SearchQuery, SourceError};

/// Maximum number of retries after a damaged index file.
const MAX_RETRIES: usize = 2;

/// First piece of a position in an index of the current layout. Positions of earlier rankings begin otherwise.
const CURRENT: &str = "r1";

/// First piece of a position in an index of the previous layout.
const PREVIOUS: &str = "r0";

/// Search index of one store, with its queries.
#[derive(Debug, Default)]
pub(in crate::source::store) struct StoreSearch {
    pub(in crate::source::store) index: CurrentIndex,
}

/// Validated search query.
#[derive(Debug)]
struct Question<'a> {
    query: &'a SearchQuery,
    terms: QueryTerms,
    scope: Scope,
    post_filter: Option<PostFilter<'a>>,
    allowance: &'a Allowance,
}

/// Position of the next page: version and layout of the index, and number of matches that earlier pages have consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    version: i64,
    is_previous: bool,
    offset: usize,
}

impl StoreSearch {
    pub(in crate::source::store) fn search(
        &self,
        database: &Database,
        query: &SearchQuery,
        allowance: &Allowance,
    ) -> Result<SearchPage, SourceError> {
        let terms = QueryTerms::new(&query.text);
        if terms.is_empty() && !lists_records(query) {
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
        let question = Question { query, terms, scope, post_filter, allowance };
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
        let Question { query, terms, scope, post_filter, allowance } = question;
        let (snapshot, notes) = match at {
            Some(at) => (self.index.remembered(database, at.version, at.is_previous)?, Vec::new()),
            None => self.index.newest(database)?,
        };
        let failed = |error: TantivyError| {
            *fault.borrow_mut() = Some(IndexFault::from_tantivy(&error));
            StoreError::Index { path: folder_of(database.path()), problem: error.to_string() }
        };
        let list = guard(|| RankedList::new(&snapshot, terms, &query.text, scope)).map_err(failed)?;
        let matches = |offset, limit| list.matches(offset, limit).map_err(failed);
        let offset = at.map_or(0, |at| at.offset);
        // One match more than the limit is requested, to know whether there is a next page.
        let found = match post_filter {
            None => matches(offset, query.limit.saturating_add(1))
                .map(|rows| MatchPage::from_lookahead(rows, query.limit))?,
            Some(post_filter) => post_filter.pass(offset, query.limit, matches)?,
        };
        let next = Position {
            version: snapshot.version,
            is_previous: snapshot.is_previous,
            offset: offset.saturating_add(found.consumed),
        };
        let words = excerpt_terms(&list.lookups);
        let hits = database.read(|sqlite| read_hits(sqlite, &found.rows, &words, allowance))?;
        let next = found.more.then(|| next.write());
        let count = post_filter.is_none().then(|| list.count());
        let lexical_instead = is_lexical_instead(query);
        Ok(SearchPage { hits, next, notes, count, lexical_instead, ..SearchPage::default() })
    }
}

/// Returns true for a query that has no words and selects records by operators, a connection or streams.
fn lists_records(query: &SearchQuery) -> bool {
    let is_limited = !query.text.is_plain() || query.connection.is_some() || !query.streams.is_empty();
    is_limited && query.text.words.trim().is_empty()
}

/// Returns true if the query asks for another mode than lexical. The store has no embeddings, so every search is
/// lexical.
fn is_lexical_instead(query: &SearchQuery) -> bool {
    query.mode != SearchMode::Lexical
}

impl Position {
    fn write(self) -> SearchPosition {
        let kind = if self.is_previous { PREVIOUS } else { CURRENT };
        SearchPosition(format!("{kind}.{}.{}", self.version, self.offset))
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
        pieces.next().is_none().then_some(Self { version, is_previous, offset })
    }
}
