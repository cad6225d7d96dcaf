//! Fits the hits of a search into a page.
//!
//! [`build_page`] measures everything next to the results, plans which hits are shown with which excerpts, and saves the
//! hits that did not fit for the cursor.

use std::collections::{BTreeMap, BTreeSet};

use fetchwell_callers::RecordPages;
use fetchwell_core::fit::{
    PageBudget, PageItem, PagePlan, Pressure, Shaping, Strategy, clip_line, fits_all, plan_page,
    tokens_within,
};
use fetchwell_core::handle::{ConnectionId, Handle};
use fetchwell_core::record::{Hit, HitId};
use fetchwell_source::{Accuracy, SearchPage, SearchPosition};
use fetchwell_state::cursor::MAX_CURSOR_CHARS;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::explanation::{ExplainedSearch, SearchExplanation};
use super::request::Request;
use super::result::{ResultLimits, SearchResult, fetchable_id};
use crate::answer::{NoResults, ONLY_OMITTED, Payload, json_of};
use crate::cache::shortened;
use crate::error::{ShownUnavailable, ToolError, list_unavailable};
use crate::paging::{Continuation, PageState};
use crate::profile::Profile;
use crate::toolbox::Toolbox;

/// Number of hits for which titles and excerpts are shortened and long links left out, if no `limit` says another number.
const MIN_HITS: usize = 7;

/// Maximum length of an account's label, in bytes of JSON.
const MAX_LABEL_BYTES: usize = 40;

/// Share of the budget that labels of accounts may take, as its divisor.
const ACCOUNTS_SHARE: usize = 8;

/// Limits of the hits on a page.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Maximum length of a title, in bytes of JSON.
    title: usize,
    /// Maximum length of a link in bytes.
    link: usize,
    pressure: Pressure,
    hits: usize,
}

/// Layout of a page with enough room.
const ROOMY: Layout =
    Layout { title: 120, link: usize::MAX, pressure: Pressure::KeepExcerpts, hits: usize::MAX };

/// Layouts of a page without `limit`, until one shows [`MIN_HITS`]: with shorter titles and links, then with shorter excerpts.
const LAYOUTS: [Layout; 3] = [
    ROOMY,
    Layout { title: 72, link: 100, ..ROOMY },
    Layout { title: 72, link: 100, pressure: Pressure::KeepHits, hits: MIN_HITS },
];

/// Bytes of an answer without results and cursor: names of its fields and a count.
const OVERHEAD: usize = 100;

/// Maximum tokens of a cursor and its key. Its letters are random, and a token has at least one byte.
const CURSOR_TOKENS: usize = MAX_CURSOR_CHARS + 20;

/// State that a cursor continues: hits that were read and not shown, and the position of the source's next page.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SearchState {
    pub(super) hits: Vec<Hit>,
    pub(super) position: Option<SearchPosition>,
    /// Total number of hits with its accuracy, if the source counts them.
    #[serde(default)]
    pub(super) count: Option<(u64, Accuracy)>,
    /// Time of the first page in seconds, from which ages in the query are counted.
    #[serde(default)]
    started: Option<i64>,
}

impl SearchState {
    /// Returns the time of the first page.
    pub(super) fn started(&self) -> Option<Timestamp> {
        self.started.and_then(|seconds| Timestamp::from_second(seconds).ok())
    }
}

/// Facts about a search that an answer has next to what was found.
#[derive(Debug)]
pub(super) struct SearchNotes {
    /// Time of the first page.
    pub(super) started: Timestamp,
    /// Explanation of the dates of the query; empty without dates.
    pub(super) dates: String,
    pub(super) no_results: NoResults,
}

/// The answer of `search`.
#[derive(Debug, Clone, Serialize)]
struct SearchAnswer {
    results: Vec<SearchResult>,
    /// Label of each connection in `results`, if there are several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    accounts: BTreeMap<ConnectionId, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<ShownUnavailable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recall: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// `None` if the count is exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    count_accuracy: Option<Accuracy>,
    /// Readings of the dates of the query, if records of these times were raised.
    #[serde(skip_serializing_if = "Option::is_none")]
    dates: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(flatten)]
    no_results: NoResults,
}

/// Fits as many hits as possible into the budget and saves the others for the cursor.
pub(super) async fn build_page(
    toolbox: &Toolbox,
    request: &Request,
    so_far: Option<PageState>,
    mut found: SearchPage,
    notes: SearchNotes,
) -> Result<ExplainedSearch, ToolError> {
    let can_page = so_far.is_some();
    if let (Profile::OpenAi, Some(pages)) = (request.profile, toolbox.pages()) {
        found.hits.iter_mut().for_each(|hit| add_page_link(hit, pages));
    }
    let (unavailable, more) = list_unavailable(&found.unavailable);
    let is_standard = request.profile == Profile::Standard;
    let count = found.count.filter(|count| is_standard && (count.value > 0 || !found.hits.is_empty()));
    let mut answer = SearchAnswer {
        results: Vec::new(),
        accounts: BTreeMap::new(),
        next_cursor: can_page.then(|| "x".repeat(MAX_CURSOR_CHARS)),
        omitted: Some(found.hits.len()),
        unavailable,
        recall: found.windowed.then_some("window"),
        count: count.map(|count| count.value),
        count_accuracy: count.map(|count| count.accuracy).filter(|known| *known != Accuracy::Exact),
        dates: Some(notes.dates).filter(|_| is_standard && found.has_raised_dates),
        warnings: found.notes.into_iter().chain(more).collect(),
        no_results: notes.no_results,
    };
    // Everything next to the results is measured first, at its maximum length.
    let overhead = json_of(&answer)?.len();
    let budget = request.budget(toolbox);
    // With a small budget, an answer has no explanations.
    if overhead > budget.bytes.min(budget.tokens) {
        answer.no_results = NoResults::default();
        answer.dates = None;
    }
    let planned = plan_labelled(request, &found.hits, &mut answer, budget)?;
    let PlannedResults { results, plan } = planned;
    let unread = found.hits.split_off(plan.shown.len());
    let unreachable = if can_page { 0 } else { unread.len() };
    answer.omitted = Some(plan.omitted() + unreachable).filter(|omitted| *omitted > 0);
    let has_room = overhead + ONLY_OMITTED.len() <= budget.bytes.min(budget.tokens);
    let is_warned = is_standard && has_room && has_only_long_ids(&found.hits);
    answer.warnings.extend(is_warned.then(|| ONLY_OMITTED.to_owned()));
    let mut printed = Vec::new();
    let mut explanation = SearchExplanation { stages: found.stages, ..SearchExplanation::default() };
    for ((mut hit, result), excerpt) in found.hits.into_iter().zip(results).zip(plan.shown) {
        if let (Some(result), Some(text)) = (result, excerpt) {
            if request.explains {
                explanation.results.push(hit.explanation.take().map(|boxed| *boxed).unwrap_or_default());
            }
            printed.extend(matches!(hit.id, HitId::Opaque(_)).then(|| (result.id.clone(), hit)));
            answer.results.push(SearchResult { text, ..result });
        }
    }
    toolbox.remember_printed(printed).await;
    answer.next_cursor = None;
    if let Some(so_far) = so_far.filter(|_| !unread.is_empty() || found.next.is_some()) {
        // A server may send a title of megabytes, and a position that is too large cannot be saved.
        let rest = SearchState {
            hits: unread.into_iter().map(shortened).collect(),
            position: found.next,
            count: found.count.map(|count| (count.value, count.accuracy)),
            started: Some(notes.started.as_second()),
        };
        match so_far.continuation(toolbox, answer.results.len(), &rest).await? {
            Continuation::Cursor(cursor) => answer.next_cursor = Some(cursor),
            Continuation::Warning(warning) => answer.warnings.push(warning),
        }
    }
    let shaping = Shaping {
        items: answer.results.len(),
        strategy: if can_page { Strategy::Paginated } else { Strategy::List },
        ..Shaping::default()
    };
    let payload = Payload::within(&answer, budget)?.with_shaping(shaping);
    Ok(ExplainedSearch { payload, explanation })
}

/// Returns true if there are hits, and all of them are records that no handle can name.
fn has_only_long_ids(hits: &[Hit]) -> bool {
    let has_long_id = |hit: &Hit| matches!(hit.id, HitId::Record(_)) && fetchable_id(hit).is_none();
    !hits.is_empty() && hits.iter().all(has_long_id)
}

/// Returns true if a page without `limit` may have room for more than some hits.
pub(super) fn has_room(toolbox: &Toolbox, request: &Request, hits: &[Hit]) -> bool {
    let room = request.budget(toolbox).bytes.saturating_sub(MAX_CURSOR_CHARS + OVERHEAD);
    let limits = ResultLimits { room, title: ROOMY.title, link: ROOMY.link };
    let item = |hit| page_item(hit, SearchResult::from_hit(hit, request.profile, limits).as_ref());
    fits_all(hits.iter().map(item), room)
}

/// Plans the results of an answer, with the labels of their accounts if there is room.
fn plan_labelled(
    request: &Request,
    hits: &[Hit],
    answer: &mut SearchAnswer,
    budget: PageBudget,
) -> Result<PlannedResults, ToolError> {
    let room = budget.bytes.saturating_sub(json_of(&answer)?.len());
    let planned = plan_results(request, hits, answer, room, budget)?;
    // ChatGPT requires an answer without other keys.
    if request.profile != Profile::Standard {
        return Ok(planned);
    }
    answer.accounts = account_labels(planned.shown(hits), budget.bytes / ACCOUNTS_SHARE);
    if answer.accounts.is_empty() {
        return Ok(planned);
    }
    // Labels take room from the results, and results that no longer fit need no label.
    let room = budget.bytes.saturating_sub(json_of(&answer)?.len());
    let labelled = plan_results(request, hits, answer, room, budget)?;
    // Labels are not worth a hit that would be skipped.
    if labelled.plan.omitted() > planned.plan.omitted() {
        answer.accounts.clear();
        return Ok(planned);
    }
    let shown = account_labels(labelled.shown(hits), usize::MAX);
    answer.accounts.retain(|connection, _| shown.contains_key(connection));
    Ok(labelled)
}

/// Sets the link of a hit without one to that of its record page, because ChatGPT cites only results with a link. In the
/// profile `standard` only `fetch` adds such links, so that a page has room for more hits.
fn add_page_link(hit: &mut Hit, pages: &RecordPages) {
    if let (HitId::Record(address), None) = (&hit.id, &hit.link) {
        let url = Handle::mint(address).and_then(|handle| pages.link(&handle));
        hit.link = url.and_then(|url| url.parse().ok());
    }
}

/// Returns the label of each connection of some hits in at most `max_bytes` bytes, or nothing if all hits are of one connection.
fn account_labels<'a>(
    hits: impl Iterator<Item = &'a Hit>,
    max_bytes: usize,
) -> BTreeMap<ConnectionId, String> {
    let mut labels = BTreeMap::new();
    let mut connections = BTreeSet::new();
    let mut left = max_bytes;
    for hit in hits {
        let HitId::Record(address) = &hit.id else { continue };
        let Some(connection) = &address.connection else { continue };
        if !connections.insert(connection) {
            continue;
        }
        let label = hit.account.as_deref().map(|label| clip_line(label, MAX_LABEL_BYTES));
        if let Some(label) = label.filter(|label| !label.is_empty() && label != connection.as_str()) {
            // Quotes, colon and comma.
            let bytes = json_of(&label).map_or(0, |json| json.len()) + connection.as_str().len() + 4;
            let Some(rest) = left.checked_sub(bytes) else { break };
            left = rest;
            labels.insert(connection.clone(), label);
        }
    }
    if connections.len() > 1 { labels } else { BTreeMap::new() }
}

/// The first hits of a page as results, and which of them are shown with which excerpt.
#[derive(Debug)]
struct PlannedResults {
    results: Vec<Option<SearchResult>>,
    plan: PagePlan,
}

impl PlannedResults {
    /// Returns the hits that are shown.
    fn shown<'a>(&self, hits: &'a [Hit]) -> impl Iterator<Item = &'a Hit> {
        let shown = self.plan.shown.iter().zip(hits);
        let shown: Vec<&Hit> = shown.filter_map(|(excerpt, hit)| excerpt.as_ref().map(|_| hit)).collect();
        shown.into_iter()
    }
}

/// Plans the hits of a page and their excerpts: as many as fit into `room` bytes, or into fewer if they have too many tokens.
fn plan_results(
    request: &Request,
    hits: &[Hit],
    without_results: &SearchAnswer,
    room: usize,
    budget: PageBudget,
) -> Result<PlannedResults, ToolError> {
    let plan = |layout| plan_layout(request, hits, without_results, room, budget, layout);
    if request.limit.is_some() {
        return plan(Layout { pressure: Pressure::KeepHits, ..ROOMY });
    }
    if request.profile == Profile::OpenAi {
        return plan(ROOMY);
    }
    let mut best: Option<(usize, PlannedResults)> = None;
    for layout in LAYOUTS {
        let planned = plan(layout)?;
        let shown = planned.shown(hits).count();
        let is_enough = shown >= MIN_HITS || planned.plan.shown.len() >= hits.len();
        if best.as_ref().is_none_or(|(most_shown, _)| shown > *most_shown) {
            best = Some((shown, planned));
        }
        if is_enough {
            break;
        }
    }
    best.map_or_else(|| plan(ROOMY), |(_, planned)| Ok(planned))
}

/// Returns a hit as it is planned, with its result if it has one.
fn page_item<'a>(hit: &'a Hit, result: Option<&SearchResult>) -> PageItem<'a> {
    PageItem { bare: result.map_or(usize::MAX, SearchResult::bare_len), excerpt: &hit.excerpt }
}

/// Plans the hits of a page in one layout.
fn plan_layout(
    request: &Request,
    hits: &[Hit],
    without_results: &SearchAnswer,
    mut room: usize,
    budget: PageBudget,
    layout: Layout,
) -> Result<PlannedResults, ToolError> {
    // The placeholder of the cursor repeats one letter, which has fewer tokens than a cursor.
    let cursor_tokens = if without_results.next_cursor.is_some() { CURSOR_TOKENS } else { 0 };
    let left = PageBudget { tokens: budget.tokens.saturating_sub(cursor_tokens), ..budget };
    loop {
        let candidates = hits.iter().take(request.max_hits().min(layout.hits));
        let limits = ResultLimits { room, title: layout.title, link: layout.link };
        let results: Vec<Option<SearchResult>> =
            candidates.clone().map(|hit| SearchResult::from_hit(hit, request.profile, limits)).collect();
        let items: Vec<PageItem<'_>> =
            candidates.zip(&results).map(|(hit, result)| page_item(hit, result.as_ref())).collect();
        let plan = plan_page(&items, room, layout.pressure);
        // A token has at least one byte.
        if budget.bytes <= budget.tokens {
            return Ok(PlannedResults { results, plan });
        }
        let shown = results
            .iter()
            .zip(&plan.shown)
            .filter_map(|(result, text)| Some(SearchResult { text: text.clone()?, ..result.clone()? }));
        let draft = SearchAnswer { results: shown.collect(), next_cursor: None, ..without_results.clone() };
        match tokens_within(&json_of(&draft)?, left.tokens) {
            Err(tokens) if room > 0 => room = left.less_room(room, left.bytes, tokens),
            _ => return Ok(PlannedResults { results, plan }),
        }
    }
}
