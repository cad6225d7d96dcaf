//! Full-text search over the store.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tantivy::collector::TopDocs;
use tantivy::query::Query;
use tantivy::{Searcher, TantivyError};

use super::clauses::Mode;
use super::database::{Database, FileIdentity};
use super::index::{Fields, IndexEditor, IndexView, changes_since, folder_of};
use super::matching::excerpt;
use super::read::{RECORD_COLUMNS, RECORD_TABLES, identity, record_of};
use super::scope::Scope;
use super::sieve::{Found, Sieve};
use super::terms::{Phrase, phrases, term_set};
use super::write_lock::WriteLock;
use super::{Store, StoreError};
use crate::record::{Hit, HitId, Record, authored_at, fallback_title, own_link, own_title};
use crate::source::{QueryFault, SearchMode, SearchPage, SearchPosition, SearchQuery, SourceError};

/// Changes that a search adds to the index itself before it answers. More are added beside it.
const CATCH_UP_AT_ONCE: i64 = 5_000;

/// Earlier states of the index that pages can still be read from.
const REMEMBERED_STATES: usize = 4;

/// The open index, and the states of it that searches are paging through.
#[derive(Debug, Default)]
pub(super) struct Searching {
    /// Held while the index is opened or brought up to date, never while it is searched.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The store that the others are of, and its file.
    of: Option<(String, FileIdentity)>,
    view: Option<IndexView>,
    recent: VecDeque<Snapshot>,
    /// The thread that completes the index beside the searches, if there was need of one.
    beside: Option<JoinHandle<()>>,
}

/// How complete the index of a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// It reflects every record.
    Complete,
    /// It reflects every record now, and lacked so many.
    Completed(i64),
    /// Another process is writing to it, and it lacks so many records.
    BeingWritten(i64),
}

/// The index as it was at one version. Paging through a snapshot loses and repeats nothing, whatever
/// is imported meanwhile.
#[derive(Clone)]
struct Snapshot {
    version: i64,
    fields: Fields,
    searcher: Searcher,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Where a search goes on: in which state of the index, by which rule, after how many hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    version: i64,
    mode: Mode,
    /// How many matches were looked at.
    offset: usize,
}

impl Store {
    /// Adds to the index what it lacks, however long that takes. For a program that searches once and ends:
    /// nobody would be there to complete the index after it answered.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or its index cannot be written.
    pub fn complete_index(&self) -> Result<IndexState, StoreError> {
        let database = &self.inner.database;
        let (uuid, newest) = database.read(identity)?;
        let version = IndexView::open(database.path(), &uuid).map_or(0, |view| view.version);
        if version == newest {
            return Ok(IndexState::Complete);
        }
        let Some(_lock) = WriteLock::try_take(database.path())? else {
            return Ok(IndexState::BeingWritten(changes_since(database, version)?));
        };
        let mut editor = IndexEditor::open(database)?;
        let behind = editor.behind(database)?;
        editor.catch_up(database, &|_| {})?;
        editor.finish()?;
        Ok(IndexState::Completed(behind))
    }
}

impl Searching {
    pub(super) fn search(&self, database: &Database, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let phrases = phrases(&query.text);
        if phrases.is_empty() {
            let notes = vec!["the query has no letters or digits to search for".to_owned()];
            return Ok(SearchPage { notes, ..SearchPage::default() });
        }
        if query.mode != SearchMode::Lexical {
            return Err(SourceError::CorrectQuery {
                fault: QueryFault::NotSupported,
                problem: "this store finds words and has no search by meaning".to_owned(),
                hint: "Search with `mode` lexical, or leave it out.".to_owned(),
            });
        }
        let sieve = Sieve::of(database, query)?;
        let scope = Scope::of(database, query.connection.as_ref(), &query.streams)?;
        let at = query
            .position
            .as_ref()
            .map(|position| Position::read(position).ok_or(SourceError::RestartSearch));
        let at = at.transpose()?;
        let (snapshot, mut notes) = match at {
            Some(at) => (self.remembered(database, at.version)?, Vec::new()),
            None => self.newest(database)?,
        };
        // One more than asked tells whether there is a next page.
        let run = |mode, offset| {
            let matching = snapshot.fields.query(&phrases, mode, &scope);
            let matches = |offset, limit| {
                snapshot.matches(&*matching, offset, limit).map_err(|error| StoreError::Index {
                    path: folder_of(database.path()),
                    problem: error.to_string(),
                })
            };
            match &sieve {
                None => matches(offset, query.limit + 1).map(|rows| Found::all(rows, query.limit)),
                Some(sieve) => sieve.pass(database, offset, query.limit, matches),
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
        let hits = database.read(|sqlite| hits(sqlite, &found.rows, &phrases))?;
        Ok(SearchPage { hits, next: found.more.then(|| next.write()), notes, ..SearchPage::default() })
    }

    /// The state that a page was read from.
    fn remembered(&self, database: &Database, version: i64) -> Result<Snapshot, SourceError> {
        let find = |state: &State| state.recent.iter().find(|recent| recent.version == version).cloned();
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.forget_others(database)?;
            if let Some(snapshot) = find(&state) {
                return Ok(snapshot);
            }
        }
        // After a restart the newest state may well be the one asked for.
        let (newest, _) = self.newest(database)?;
        if newest.version == version { Ok(newest) } else { Err(SourceError::RestartSearch) }
    }

    /// The newest state, brought up to date where that is quick; else with a note.
    fn newest(&self, database: &Database) -> Result<(Snapshot, Vec<String>), SourceError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (uuid, newest) = state.forget_others(database)?;
        let path = database.path();
        let mut view = current(state.view.take(), path, &uuid, newest);
        if view.as_ref().is_some_and(|view| view.version > newest) {
            // Another process wrote since the store was asked, or the index is of a later state than its store, which
            // was replaced by an earlier copy: then it is made anew.
            let newest = database.read(identity)?.1;
            view = view.filter(|view| view.version <= newest);
        }
        let mut notes = Vec::new();
        if view.as_ref().is_none_or(|view| view.version < newest) {
            notes = state.bring_up_to_date(database, view.as_ref().map_or(0, |view| view.version))?;
            view = current(view, path, &uuid, newest);
        }
        let Some(view) = view else {
            // Nothing was ever indexed and somebody else is indexing: there is nothing to show yet.
            return Err(StoreError::Building(path.to_owned()).into());
        };
        let snapshot = Snapshot { version: view.version, fields: view.fields, searcher: view.searcher() };
        state.view = Some(view);
        if state.recent.front().is_none_or(|recent| recent.version != snapshot.version) {
            state.recent.push_front(snapshot.clone());
            state.recent.truncate(REMEMBERED_STATES);
        }
        Ok((snapshot, notes))
    }
}

fn current(view: Option<IndexView>, path: &Path, uuid: &str, newest: i64) -> Option<IndexView> {
    match view {
        Some(view) if view.version == newest => Some(view),
        Some(view) => view.refresh(uuid),
        None => None,
    }
    .or_else(|| IndexView::open(path, uuid))
}

impl State {
    /// The store's identity and version now. What is remembered of another file, which somebody replaced, is forgotten:
    /// its versions say nothing of this one.
    fn forget_others(&mut self, database: &Database) -> Result<(String, i64), StoreError> {
        let file = database.file()?;
        let (uuid, newest) = database.read(identity)?;
        let of = Some((uuid.clone(), file));
        if self.of != of {
            (self.view, self.recent, self.of) = (None, VecDeque::new(), of);
        }
        Ok((uuid, newest))
    }

    /// Adds what the index lacks: at once when it is little, else on a thread beside the searches. Says
    /// what a reader should know meanwhile.
    fn bring_up_to_date(&mut self, database: &Database, version: i64) -> Result<Vec<String>, StoreError> {
        if self.beside.as_ref().is_some_and(|beside| !beside.is_finished()) {
            return Ok(vec![being_completed(changes_since(database, version)?)]);
        }
        let Some(lock) = WriteLock::try_take(database.path())? else {
            let behind = changes_since(database, version)?;
            return Ok(vec![format!(
                "another process is writing to the store; {behind} records are not searchable yet"
            )]);
        };
        let mut editor = IndexEditor::open(database)?;
        let behind = editor.behind(database)?;
        if behind <= CATCH_UP_AT_ONCE {
            editor.catch_up(database, &|_| {})?;
            editor.finish()?;
            return Ok(Vec::new());
        }
        let beside = Database::open(database.path())?;
        let catch_up = move || {
            let caught_up = editor.catch_up(&beside, &|_| {}).and_then(|()| editor.finish());
            drop(lock);
            if let Err(error) = caught_up {
                tracing::error!(%error, "the search index could not be brought up to date");
            }
        };
        match std::thread::Builder::new().name("index".to_owned()).spawn(catch_up) {
            Ok(thread) => self.beside = Some(thread),
            Err(error) => tracing::error!(%error, "no thread for the search index"),
        }
        Ok(vec![being_completed(behind)])
    }
}

fn being_completed(behind: i64) -> String {
    format!("the search index is being completed; {behind} records are not searchable yet")
}

impl Snapshot {
    /// The rows of the best matches after the first `offset`, best first.
    fn matches(&self, query: &dyn Query, offset: usize, limit: usize) -> Result<Vec<i64>, TantivyError> {
        let best = TopDocs::with_limit(limit).and_offset(offset).order_by_score();
        let best = self.searcher.search(query, &best)?;
        let row = |address: tantivy::DocAddress| {
            let column = self.searcher.segment_reader(address.segment_ord).fast_fields().u64("record")?;
            Ok(column.first(address.doc_id).and_then(|row| i64::try_from(row).ok()))
        };
        best.into_iter().filter_map(|(_, address)| row(address).transpose()).collect()
    }
}

/// The hits of some rows, in their order. A record that was deleted since is left out.
fn hits(sqlite: &Connection, rows: &[i64], phrases: &[Phrase]) -> Result<Vec<Hit>, rusqlite::Error> {
    let terms = term_set(phrases);
    let mut statement =
        sqlite.prepare_cached(&format!("SELECT {RECORD_COLUMNS} FROM {RECORD_TABLES} WHERE r.id = ?1"))?;
    let mut hits = Vec::with_capacity(rows.len());
    for row in rows {
        let record = statement.query_map([row], record_of)?.next().transpose()?.flatten();
        if let Some(Record { address, data, emitted_at, display_name, .. }) = record {
            let when = authored_at(&data).or(emitted_at.as_deref());
            let fallback = || fallback_title(display_name.as_deref(), Some(address.stream.as_str()), when);
            hits.push(Hit {
                title: own_title(&data).map_or_else(fallback, str::to_owned),
                link: own_link(&data),
                excerpt: excerpt(&data, &terms),
                time: when.map(str::to_owned),
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
