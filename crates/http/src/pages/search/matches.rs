//! Searches of the page: reads of the source, and cursors.
//!
//! The query is parsed and the source is read as by the tool `search`, so the order is the same. A cursor contains its position
//! encrypted and does not expire: the back button works as long as the server has its keys.

use fetchwell_callers::RecordPages;
use fetchwell_core::fit::shorten;
use fetchwell_core::handle::{ConnectionId, Handle, StreamName};
use fetchwell_core::record::{Excerpt, Hit, HitId};
use fetchwell_source::{Accuracy, Count, SearchOperator, SearchPage, SearchQuery};
use fetchwell_tools::{
    ExplanationLine, ParsedQuery, SearchReader, Toolbox, dated_position, explanation_lines, parse_dated,
    parse_since, stage_lines,
};
use maud::Markup;

use super::choices::{Choices, label};
use super::highlight::QueryWords;
use super::request::SearchRequest;
use crate::error::RequestError;
use crate::v1::Seal;

/// Number of hits in one read of the source.
const HITS: usize = 20;

/// Minimum number of hits on a page that is not the last, if hits of other kinds are left out.
const MIN_HITS: usize = 10;

/// Maximum number of reads for one page.
const MAX_READS: usize = 5;

/// Maximum length of a passage in bytes of JSON.
const MAX_PASSAGE_BYTES: usize = 420;

/// A page of results.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) hits: Vec<FoundHit>,
    pub(super) count: Option<Count>,
    /// Cursor of the next page.
    pub(super) next: Option<String>,
    /// True for the first page.
    pub(super) is_first: bool,
    pub(super) notes: Vec<String>,
    /// Stages of the search with their times, if it is explained.
    pub(super) stages: Vec<ExplanationLine>,
}

/// A hit as the page shows it.
#[derive(Debug)]
pub(super) struct FoundHit {
    pub(super) title: Markup,
    /// Path of the record's page, or the link of a record without one.
    pub(super) path: Option<String>,
    /// Id by which `fetch` reads the record.
    pub(super) handle: Option<String>,
    pub(super) time: Option<String>,
    pub(super) account: Option<String>,
    pub(super) stream: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) passage: Markup,
    pub(super) by_meaning: bool,
    pub(super) near_copies: u32,
    /// Reasons for its place, if the search is explained.
    pub(super) reasons: Vec<ExplanationLine>,
}

/// Searches for a page of hits.
pub(super) async fn find(
    toolbox: &Toolbox,
    request: &SearchRequest,
    choices: &Choices<'_>,
) -> Result<Found, RequestError> {
    let (source, seal) = (toolbox.source(), Seal::new(toolbox));
    let (mut started, mut next) = (toolbox.now(), None);
    if !request.cursor.is_empty() {
        let (first, position) = parse_dated(&seal.open(&request.question(), &request.cursor).await?)?;
        (started, next) = (first, Some(position));
    }
    let parsed = ParsedQuery::read(&request.q, &toolbox.local(started), source).await?;
    let words = QueryWords::new(&parsed.text().plain_words());
    let kinds = KindFilter::new(request, choices);
    let mut query = parsed
        .apply(kinds.query(request)?)
        .map_err(|conflict| RequestError::request(conflict.to_string()))?;
    query.text.after = query.text.after.max(parse_since(&request.age, started));
    query.explains = request.explains;
    let is_first = next.is_none();
    let notes = parsed.warnings().iter().map(ToString::to_string).collect();
    let mut page = SearchPage { next, notes, ..SearchPage::default() };
    let is_full = |page: &mut SearchPage| {
        page.hits.retain(|hit| kinds.includes(hit));
        let missing = page.unavailable.drain(..);
        page.notes.extend(missing.map(|one| format!("source {} did not answer ({})", one.source, one.code)));
        page.hits.len() >= MIN_HITS
    };
    SearchReader { source, query }.read(&mut page, MAX_READS, is_full).await?;
    page.notes.extend(SearchOperator::warning(&page.unapplied));
    page.notes.extend(page.meaning_note());
    page.notes.dedup();
    if page.has_raised_dates {
        page.notes.insert(0, format!("dates: {}", parsed.dates()));
    }
    Ok(Found {
        hits: page.hits.iter().map(|hit| FoundHit::new(hit, &words, choices)).collect(),
        count: page.count.filter(|_| kinds.is_exact()),
        next: match page.next {
            Some(next) => Some(seal.close(&request.question(), dated_position(started, &next)).await.cursor),
            None => None,
        },
        is_first,
        stages: stage_lines(&page.stages),
        notes: page.notes,
    })
}

/// Limits a search to the connections of a kind. A source searches one connection or all of them, so hits of other connections
/// are left out here.
struct KindFilter {
    /// Connections of the kind; `None` without a kind.
    connections: Option<Vec<ConnectionId>>,
    /// Streams of these connections.
    streams: Vec<StreamName>,
}

impl KindFilter {
    fn new(request: &SearchRequest, choices: &Choices<'_>) -> Self {
        if request.kind.is_empty() {
            return Self { connections: None, streams: Vec::new() };
        }
        let of_kind = || choices.of_kind(&request.kind);
        let mut streams: Vec<StreamName> =
            of_kind().flat_map(|connection| &connection.streams).map(|stream| stream.name.clone()).collect();
        streams.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        streams.dedup();
        Self { connections: Some(of_kind().map(|one| one.connection_id.clone()).collect()), streams }
    }

    /// Returns the query without its text.
    fn query(&self, request: &SearchRequest) -> Result<SearchQuery, RequestError> {
        let unknown =
            |what: &str, name: &str| RequestError::not_found(format!("there is no {what} `{name}`"));
        let connection = match (request.account.as_str(), self.connections.as_deref()) {
            ("", Some([])) => return Err(unknown("kind of account", &request.kind)),
            ("", Some([only])) => Some(only.clone()),
            ("", _) => None,
            (account, _) => Some(account.parse().map_err(|_no_name| unknown("account", account))?),
        };
        let streams = match request.stream.as_str() {
            "" => self.streams.clone(),
            stream => vec![stream.parse().map_err(|_no_name| unknown("stream", stream))?],
        };
        Ok(SearchQuery { connection, streams, ..SearchQuery::new("", HITS) })
    }

    fn includes(&self, hit: &Hit) -> bool {
        let Some(connections) = &self.connections else { return true };
        let HitId::Record(address) = &hit.id else { return false };
        address.connection.as_ref().is_some_and(|connection| connections.contains(connection))
    }

    /// Returns true if a source counts the same hits as the page.
    fn is_exact(&self) -> bool {
        self.connections.as_ref().is_none_or(|connections| connections.len() == 1)
    }
}

impl FoundHit {
    fn new(hit: &Hit, words: &QueryWords, choices: &Choices<'_>) -> Self {
        let address = match &hit.id {
            HitId::Record(address) => Some(address),
            HitId::Opaque(_) | HitId::Nameless => None,
        };
        let handle = address.and_then(Handle::mint);
        let opaque = match &hit.id {
            HitId::Opaque(id) => Some(id.clone()),
            HitId::Record(_) | HitId::Nameless => None,
        };
        let id = address.and_then(|address| address.connection.as_ref());
        let connection = id.and_then(|id| choices.connection(id));
        let account = connection.map(|connection| label(connection).to_owned());
        Self {
            title: words.mark(title(hit), 0..0),
            path: handle
                .as_ref()
                .map(RecordPages::path)
                .or_else(|| hit.link.as_ref().map(ToString::to_string)),
            handle: handle.map(|handle| handle.to_string()).or(opaque),
            time: hit.time.clone(),
            account: account.or_else(|| hit.account.clone()).or_else(|| id.map(ToString::to_string)),
            stream: address.map(|address| address.stream.to_string()),
            kind: connection.and_then(|connection| connection.connector_key.clone()),
            passage: passage(&hit.excerpt, words),
            by_meaning: hit.by_meaning,
            near_copies: hit.near_copies,
            reasons: hit.explanation.as_deref().map(explanation_lines).unwrap_or_default(),
        }
    }
}

fn title(hit: &Hit) -> &str {
    if hit.title.trim().is_empty() { "Untitled record" } else { hit.title.as_str() }
}

/// Renders the passage of a hit, shortened around its match.
fn passage(excerpt: &Excerpt, words: &QueryWords) -> Markup {
    let shown = shorten(excerpt, MAX_PASSAGE_BYTES);
    let focus = excerpt.text().get(excerpt.focus()).filter(|focus| !focus.is_empty());
    let start = focus.and_then(|focus| shown.find(focus).map(|start| start..start + focus.len()));
    words.mark(&shown, start.unwrap_or(0..0))
}

/// Writes a count of results.
pub(super) fn count_text(count: Count, quantity: &str) -> String {
    let noun = if count.value == 1 { "record" } else { "records" };
    match count.accuracy {
        Accuracy::Exact => format!("{quantity} {noun}"),
        Accuracy::Estimated => format!("About {quantity} {noun}"),
        Accuracy::LowerBound => format!("At least {quantity} {noun}"),
    }
}
