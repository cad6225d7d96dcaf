//! Searches: pages of a server's results as pages of hits.
//!
//! A server answers with a list of its own length. A list in the order of a server's files is ordered by words. A page of it is
//! cached, so that the pages of a search are cut from one list, and a search that goes on after that asks again and checks that
//! the list is the same.

use std::sync::Arc;

use fetchwell_core::fit::first_bytes;
use fetchwell_core::handle::Handle;
use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::{
    Coverage, Excerpt, Hit, HitExplanation, HitId, ListedPlace, Record, RecordData,
};
use fetchwell_ranking::lexical::foreign::{ForeignTerms, ListedText, order_by_words};
use fetchwell_ranking::record_filter::RecordFilter;
use fetchwell_source::query::{filter_hits, has_words, page_without_words};
use fetchwell_source::unknown_place::unknown_place;
use fetchwell_source::{
    Count, SearchOperator, SearchPage, SearchPosition, SearchQuery, SourceError, StageClock,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::cache::PageKey;
use crate::fault::{Problem, refused, truncated};
use crate::reply::{NoResults, ResultItem, ResultsPage, read, results};
use crate::server::McpServer;
use crate::session::{ReadLimits, ToolCall};
use crate::stream::Address;
use crate::tools::Tools;

/// Number of results that are requested at once of a tool without pages, and of one with numbered pages.
const MAX_LIMIT: u64 = 100;
const NUMBERED_PAGE_LIMIT: u64 = 50;

/// Minimum number of results that are requested of a tool with positions. A server ranks a few at little cost, and each of many
/// has to be written and read.
const MIN_LIMIT: u64 = 10;

/// Number of results from which on a server that gets no limit may have left out others.
const USUAL_SERVER_LIMIT: usize = 10;

/// Maximum number of pages of a search.
const MAX_PAGES: usize = 1_000;

/// Length of the digest of a page that was returned, in hexadecimal digits. One of a thousand pages is taken for another one in
/// one of 500 million searches.
const VISITED_BYTES: usize = 12;

/// Place in the results of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Position {
    /// Position of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// Number of results of its page that were returned, and the digest of the page.
    #[serde(default)]
    skip: usize,
    #[serde(default)]
    digest: String,
    /// Pages before, by which a repeated page is noticed.
    #[serde(default, skip_serializing_if = "VisitedPages::is_empty")]
    visited: VisitedPages,
    /// Number of results that the server is asked for.
    #[serde(default)]
    asked: u64,
}

/// Digests of the pages of the server that were returned, one after the other. The detection of cycles in constant memory, as lists
/// are merged with, would return the results of a circle again before it notices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct VisitedPages(String);

impl VisitedPages {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of pages.
    fn count(&self) -> usize {
        self.0.len() / VISITED_BYTES
    }

    fn has(&self, page: &ResultsPage) -> bool {
        let mark = Self::mark(page);
        self.0.as_bytes().chunks_exact(VISITED_BYTES).any(|visited| visited == mark.as_bytes())
    }

    fn push(&mut self, page: &ResultsPage) {
        self.0.push_str(&Self::mark(page));
    }

    /// Returns a digest of the results, or else of the position after them: pages without results differ by that alone.
    fn mark(page: &ResultsPage) -> String {
        if !page.items.is_empty() {
            return first_bytes(&digest(page), VISITED_BYTES).to_owned();
        }
        let next = page.next.as_deref().unwrap_or_default();
        hexadecimal(Sha256::digest(next).iter().take(VISITED_BYTES / 2))
    }
}

/// Searches the server.
pub(crate) async fn search(
    server: &McpServer,
    query: &SearchQuery,
    limits: ReadLimits,
) -> Result<SearchPage, SourceError> {
    let schema = server.address.schema();
    for stream in query.streams.iter().map(Some).chain(query.streams.is_empty().then_some(None)) {
        if let Some(error) = unknown_place(&schema, query.connection.as_ref(), stream) {
            return Err(error);
        }
    }
    let filter = RecordFilter::for_stream(query, &server.address.detail())?;
    if !has_words(query) {
        return Ok(page_without_words(query));
    }
    let words = query.text.plain_words();
    let start = match &query.position {
        None => Position::default(),
        Some(SearchPosition(text)) => {
            serde_json::from_str(text).map_err(|_other| SourceError::InvalidCursor)?
        }
    };
    let is_first = query.position.is_none();
    let mut clock = StageClock::start(query.explains);
    let tools = server.tools(limits).await.map_err(|problem| server.error(problem))?;
    clock.end("tools");
    let asked = if is_first { result_limit(&tools, query.limit) } else { start.asked };
    let start = Position { asked, ..start };
    let page = results_page(server, &tools, PageQuery { words, start: &start }, limits).await?;
    clock.end("server");
    let has_limit = tools.search.limit.is_some();
    let (place, query) = (Arc::clone(&server.address), query.clone());
    let made = spawn_blocking(move || {
        let mut made = hits(&place, &query, &page, start, filter.as_ref(), has_limit);
        let is_whole =
            has_limit && is_first && made.next.is_none() && !made.windowed && made.unapplied.is_empty();
        made.count = is_whole.then(|| Count::exact(made.hits.len().try_into().unwrap_or(u64::MAX)));
        clock.end("hits");
        made.stages = clock.into_stages();
        made
    });
    made.await.map_err(|error| server.error(Problem::of_task(&error)))
}

/// Makes a page of hits of the results from a place on.
fn hits(
    place: &Address,
    query: &SearchQuery,
    page: &ResultsPage,
    start: Position,
    filter: Option<&RecordFilter>,
    has_limit: bool,
) -> SearchPage {
    let rest = page.items.get(start.skip..).unwrap_or_default();
    let taken = rest.get(..query.limit).unwrap_or(rest);
    let records: Vec<RecordData> = taken.iter().map(data).collect();
    let mut terms = ForeignTerms::new(&query.text, records.iter());
    let is_ordered_by_words = query.explains && !page.items.is_sorted_by_key(|item| item.rank);
    let mut found = Vec::with_capacity(taken.len());
    for (item, data) in taken.iter().zip(records) {
        let is_filtered =
            filter.is_some_and(|filter| !filter.passes(&Value::Object(data.clone()).to_string()));
        if is_filtered || !terms.passes(&data) {
            continue;
        }
        let words = query.explains.then(|| terms.explained_words(&data));
        let mut hit = hit(place, item, data, &mut terms);
        hit.explanation = words.map(|words| {
            let coverage_percent = hit.coverage.map(Coverage::percent);
            let list = ListedPlace { rank: item.rank, is_ordered_by_words, coverage_percent };
            Box::new(HitExplanation { words, list: Some(list), ..HitExplanation::default() })
        });
        found.push(hit);
    }
    let (skip, asked) = (start.skip + taken.len(), start.asked);
    let next = if skip < page.items.len() {
        Some(Position { skip, digest: digest(page), ..start })
    } else {
        page.next.clone().map(|cursor| {
            let mut visited = start.visited;
            visited.push(page);
            Position { cursor: Some(cursor), visited, asked, ..Position::default() }
        })
    };
    let at_limit = page.received >= usize::try_from(asked).unwrap_or(usize::MAX);
    let is_cut = page.next.is_none()
        && page.has_more.unwrap_or(if has_limit { at_limit } else { page.received >= USUAL_SERVER_LIMIT });
    let next = next.and_then(|next| serde_json::to_string(&next).ok()).map(SearchPosition);
    let mut answer = filter_hits(SearchPage { hits: found, next, ..SearchPage::default() }, query);
    // Words of titles are checked above, and excluded words as far as the text of a result goes.
    answer.unapplied.remove(&SearchOperator::Title);
    // A server that was asked for so many results may have more.
    answer.windowed = is_cut;
    answer
}

/// Returns the fields of a result.
fn data(item: &ResultItem) -> RecordData {
    let ResultItem { title, text, url, date, .. } = item;
    let fields = [("title", title), ("url", url), ("date", date), ("text", text)];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into()))).collect()
}

fn hit(place: &Address, item: &ResultItem, data: RecordData, terms: &mut ForeignTerms) -> Hit {
    let key = item.id.as_deref().and_then(|id| id.parse().ok());
    // An id that no handle can hold counts as omitted.
    let address = key.map(|key| place.address_of(key)).filter(|address| Handle::mint(address).is_some());
    let id = address.clone().map_or(HitId::Nameless, HitId::Record);
    let address = address.unwrap_or_else(|| place.address_of(place.no_record.clone()));
    let record = Record { display_name: place.label.clone(), ..Record::new(address, data) };
    let hit = terms.hit(record);
    let excerpt = if hit.excerpt.text().is_empty() { Excerpt::new(&hit.title, 0..0) } else { hit.excerpt };
    Hit { id, excerpt, ..hit }
}

/// Words of a search, and the place to go on from.
struct PageQuery<'a> {
    words: String,
    start: &'a Position,
}

impl PageQuery<'_> {
    fn key(&self, digest: String) -> PageKey {
        let Position { cursor, asked, .. } = self.start;
        PageKey { words: self.words.clone(), cursor: cursor.clone(), limit: *asked, digest }
    }

    /// Returns the number of the page, from 1, for a tool with numbered pages.
    fn number(&self, tools: &Tools) -> Result<u64, SourceError> {
        let cursor = self.start.cursor.as_deref().filter(|_| tools.search.page.is_some());
        cursor.map_or(Ok(1), str::parse::<u64>).map_err(|_other| SourceError::InvalidCursor)
    }

    /// Returns the call that searches.
    fn call(&self, tools: &Tools, number: u64) -> ToolCall {
        let search = &tools.search;
        let mut arguments = search.arguments.clone();
        arguments.extend(search.limit.clone().map(|argument| (argument, Value::from(self.start.asked))));
        arguments.extend(search.query.clone().map(|query| (query, Value::from(self.words.as_str()))));
        match &search.page {
            Some(page) => arguments.extend([(page.clone(), Value::from(number))]),
            None => arguments.extend(search.cursor.clone().zip(self.start.cursor.clone().map(Value::from))),
        }
        ToolCall { tool: search.tool.clone(), arguments }
    }
}

/// Returns a page of the server's results: the cached one that a position continues, or else a new answer.
async fn results_page(
    server: &McpServer,
    tools: &Tools,
    query: PageQuery<'_>,
    limits: ReadLimits,
) -> Result<Arc<ResultsPage>, SourceError> {
    let Position { cursor, digest: expected, visited, .. } = query.start;
    // A new search, or the next page of the server, asks the server.
    if !expected.is_empty()
        && let Some(page) = server.pages.get(&query.key(expected.clone()))
    {
        return Ok(page);
    }
    let number = query.number(tools)?;
    let mut answer = server.sessions.call(&query.call(tools, number), limits).await;
    let mut search = tools.search.clone();
    // The tools are listed again once if the server has changed them without a notice.
    if let Err(Problem::UnknownTool(_)) = answer {
        let tools = server.tools(limits).await.map_err(|problem| server.error(problem))?;
        answer = server.sessions.call(&query.call(&tools, number), limits).await;
        search = tools.search;
    }
    let answer = answer.map_err(|problem| server.error(problem))?;
    let (mapping, searched) = (search.clone(), query.words.clone());
    let read = move || {
        let content = read(answer).map_err(NoResults::Error)?;
        results(&content, &mapping).map(|page| ordered(page, &searched))
    };
    let page = spawn_blocking(read).await.map_err(|error| server.error(Problem::of_task(&error)))?;
    let mut page = page.map_err(|fault| no_results(server, fault))?;
    // A server that does not know the argument for the position sends its first page again. Positions of others lead in a circle.
    let repeats = visited.has(&page);
    if repeats {
        (page.items, page.next) = (Vec::new(), None);
    }
    let is_last = repeats || visited.count() + 1 >= MAX_PAGES;
    if search.page.is_some() {
        let goes_on = page.has_more.unwrap_or(!page.items.is_empty()) && !is_last;
        page.next = goes_on.then(|| (number + 1).to_string());
    } else if search.cursor.is_none() && page.next.take().is_some() {
        // The position cannot be sent.
        page.has_more = Some(true);
    } else if page.next == *cursor || is_last {
        page.next = None;
    }
    let digest = digest(&page);
    if !expected.is_empty() && *expected != digest {
        return Err(SourceError::InvalidCursor);
    }
    let page = Arc::new(page);
    server.pages.insert(query.key(digest), Arc::clone(&page));
    Ok(page)
}

/// Puts the results of a server that selects by words into their order, before pages of hits are cut from them. The order
/// depends only on the results and the words, so that a list that is read again is recognized.
fn ordered(mut page: ResultsPage, words: &str) -> ResultsPage {
    for (rank, item) in (1..).zip(&mut page.items) {
        item.rank = rank;
    }
    ResultsPage { items: order_by_words(words, page.items, listed_text), ..page }
}

fn listed_text(item: &ResultItem) -> ListedText<'_> {
    ListedText { title: item.title.as_deref(), text: item.text.as_deref() }
}

/// Returns the number of results that a tool is asked for, if it has an argument for it.
fn result_limit(tools: &Tools, limit: usize) -> u64 {
    let search = &tools.search;
    let fixed = search.limit.as_ref().and_then(|limit| search.arguments.get(limit)?.as_u64());
    let wanted = match (&search.cursor, &search.page) {
        (Some(_), _) => u64::try_from(limit).unwrap_or(u64::MAX).clamp(MIN_LIMIT, MAX_LIMIT),
        (None, Some(_)) => NUMBERED_PAGE_LIMIT,
        (None, None) => MAX_LIMIT,
    };
    fixed.unwrap_or_else(|| tools.max_limit.map_or(wanted, |max| max.min(wanted)))
}

fn no_results(server: &McpServer, fault: NoResults) -> SourceError {
    match fault {
        NoResults::Error(error) => refused(truncated(&error.0)),
        NoResults::NoList => server.error(Problem::NoResults),
        NoResults::Text => server.error(Problem::TextOnly),
    }
}

/// Returns a digest of the results of a page, by which a changed list and a repeated page are noticed: of their ids, and of the
/// titles of those without one.
fn digest(page: &ResultsPage) -> String {
    let mut hash = Sha256::new();
    for item in &page.items {
        hash.update(item.id.as_ref().or(item.title.as_ref()).map_or("", String::as_str));
        hash.update([0, u8::from(item.id.is_some())]);
    }
    hexadecimal(hash.finalize().iter().take(8))
}
