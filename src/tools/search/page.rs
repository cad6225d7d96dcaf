//! Fits the hits of a search into a page.
//!
//! [`build_page`] measures everything next to the results, plans which hits are shown with which excerpts, and saves the
//! hits that did not fit for the cursor.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::request::Request;
use crate::callers::RecordPages;
use crate::cursor::MAX_CURSOR_CHARS;
use crate::fit::{
    PageBudget, PageItem, PagePlan, Pressure, Shaping, Strategy, clip, plan_page, tokens_within,
};
use crate::handle::Handle;
use crate::record::{Hit, HitId, Unavailable};
use crate::source::{Accuracy, SearchPosition};
use crate::tools::answer::{NoResults, Payload, json_of};
use crate::tools::cache::{MAX_OPAQUE_ID_BYTES, one_line};
use crate::tools::error::{ShownUnavailable, ToolError, list_unavailable};
use crate::tools::paging::{Continuation, PageState};
use crate::tools::profile::Profile;
use crate::tools::toolbox::Toolbox;

/// Maximum length of a title in a list, in bytes of JSON.
const MAX_TITLE_BYTES: usize = 120;

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
    /// Returns the time of the first page, which is now if this is the first page.
    pub(super) fn started_at(&mut self, now: Timestamp) -> Timestamp {
        let started = self.started.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(now);
        self.started = Some(started.as_second());
        started
    }
}

/// Facts about a search that an answer has next to its hits.
#[derive(Debug, Default)]
pub(super) struct SearchNotes {
    /// A source ranked only a part of its matches.
    pub(super) windowed: bool,
    /// A source without the requested mode searched by words.
    pub(super) lexical_instead: bool,
    pub(super) warnings: Vec<String>,
    pub(super) unavailable: Vec<Unavailable>,
    pub(super) explanation: NoResults,
}

/// The answer of `search`.
#[derive(Debug, Clone, Serialize)]
struct SearchAnswer {
    results: Vec<SearchResult>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(flatten)]
    explanation: NoResults,
}

/// A hit as an answer shows it.
#[derive(Debug, Clone, Serialize)]
struct SearchResult {
    id: String,
    title: String,
    /// `None` in the profile `standard` for a record without a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    text: String,
}

/// Fits as many hits as possible into the budget and saves the others for the cursor.
pub(super) async fn build_page(
    toolbox: &Toolbox,
    request: &Request,
    so_far: Option<PageState>,
    mut found: SearchState,
    notes: SearchNotes,
) -> Result<Payload, ToolError> {
    let can_page = so_far.is_some();
    if let (Profile::OpenAi, Some(pages)) = (request.profile, toolbox.pages()) {
        found.hits.iter_mut().for_each(|hit| add_page_link(hit, pages));
    }
    let (unavailable, more) = list_unavailable(&notes.unavailable);
    // ChatGPT requires an answer without other keys.
    let count = found
        .count
        .filter(|(value, _)| request.profile == Profile::Standard && (*value > 0 || !found.hits.is_empty()));
    let mut answer = SearchAnswer {
        results: Vec::new(),
        next_cursor: can_page.then(|| "x".repeat(MAX_CURSOR_CHARS)),
        omitted: Some(found.hits.len()),
        unavailable,
        recall: notes.windowed.then_some("window"),
        count: count.map(|(value, _)| value),
        count_accuracy: count.map(|(_, accuracy)| accuracy).filter(|known| *known != Accuracy::Exact),
        warnings: notes.warnings.into_iter().chain(more).collect(),
        explanation: notes.explanation,
    };
    // Everything next to the results is measured first, at its maximum length.
    let overhead = json_of(&answer)?.len();
    let budget = request.budget(toolbox);
    // With a small budget, an answer has no explanation.
    if overhead > budget.bytes.min(budget.tokens) {
        answer.explanation = NoResults::default();
    }
    let (results, plan) =
        plan_results(request, &found.hits, &answer, budget.bytes.saturating_sub(overhead), budget)?;
    let unread = found.hits.split_off(plan.shown.len());
    let unreachable = if can_page { 0 } else { unread.len() };
    answer.omitted = Some(plan.omitted() + unreachable).filter(|omitted| *omitted > 0);
    for ((hit, result), excerpt) in found.hits.into_iter().zip(results).zip(plan.shown) {
        if let (Some(result), Some(text)) = (result, excerpt) {
            if matches!(hit.id, HitId::Opaque(_)) {
                toolbox.seen_ids.remember(&result.id, hit);
            }
            answer.results.push(SearchResult { text, ..result });
        }
    }
    answer.next_cursor = None;
    if let Some(so_far) = so_far.filter(|_| !unread.is_empty() || found.position.is_some()) {
        // A server may send a title of megabytes, and a position that is too large cannot be saved.
        let rest = SearchState { hits: unread.into_iter().map(Hit::shortened).collect(), ..found };
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
    Ok(Payload::within(&answer, budget)?.with_shaping(shaping))
}

/// Sets the link of a hit without one to that of its record page, because ChatGPT cites only results with a link. In the
/// profile `standard` only `fetch` adds such links, so that a page has room for more hits.
fn add_page_link(hit: &mut Hit, pages: &RecordPages) {
    if let (HitId::Record(address), None) = (&hit.id, &hit.link) {
        let url = Handle::mint(address).and_then(|handle| pages.link(&handle));
        hit.link = url.and_then(|url| url.parse().ok());
    }
}

/// Plans the hits of a page and their excerpts: as many as fit into `room` bytes, or into fewer if they have too many tokens.
fn plan_results(
    request: &Request,
    hits: &[Hit],
    without_results: &SearchAnswer,
    mut room: usize,
    budget: PageBudget,
) -> Result<(Vec<Option<SearchResult>>, PagePlan), ToolError> {
    let pressure = if request.limit.is_some() { Pressure::KeepHits } else { Pressure::KeepExcerpts };
    // The placeholder of the cursor repeats one letter, which has fewer tokens than a cursor.
    let cursor_tokens = if without_results.next_cursor.is_some() { CURSOR_TOKENS } else { 0 };
    let left = PageBudget { tokens: budget.tokens.saturating_sub(cursor_tokens), ..budget };
    loop {
        let candidates = hits.iter().take(request.max_hits());
        let results: Vec<Option<SearchResult>> =
            candidates.clone().map(|hit| bare_result(hit, request.profile, room)).collect();
        let items: Vec<PageItem<'_>> = candidates
            .zip(&results)
            .map(|(hit, result)| PageItem {
                bare: result.as_ref().map_or(usize::MAX, bare_len),
                excerpt: &hit.excerpt,
            })
            .collect();
        let plan = plan_page(&items, room, pressure);
        // A token has at least one byte.
        if budget.bytes <= budget.tokens {
            return Ok((results, plan));
        }
        let shown = results
            .iter()
            .zip(&plan.shown)
            .filter_map(|(result, text)| Some(SearchResult { text: text.clone()?, ..result.clone()? }));
        let draft = SearchAnswer { results: shown.collect(), next_cursor: None, ..without_results.clone() };
        match tokens_within(&json_of(&draft)?, left.tokens) {
            Err(tokens) if room > 0 => room = left.less_room(room, left.bytes, tokens),
            _ => return Ok((results, plan)),
        }
    }
}

/// Returns a hit as a result of at most `room` bytes, without its excerpt, or `None` if it could not be fetched. A handle
/// is never shortened. If it takes nearly all the room, the link is removed and the title truncated.
fn bare_result(hit: &Hit, profile: Profile, room: usize) -> Option<SearchResult> {
    // ChatGPT expects a `url` in every result.
    let without = (profile == Profile::OpenAi).then(String::new);
    let url = hit.link.as_ref().map(|link| link.as_str().to_owned()).or_else(|| without.clone());
    let mut result = SearchResult { id: fetchable_id(hit)?, title: String::new(), url, text: String::new() };
    // One byte for the comma.
    let left_of = |result: &SearchResult| room.checked_sub(bare_len(result).saturating_add(1));
    if left_of(&result).is_none() {
        result.url = without;
    }
    let left = left_of(&result).unwrap_or(0);
    result.title = clip(&one_line(&hit.title), MAX_TITLE_BYTES.min(left));
    Some(result)
}

/// Returns the size of a result without its excerpt.
fn bare_len(result: &SearchResult) -> usize {
    json_of(result).map_or(usize::MAX, |json| json.len())
}

/// Returns the id by which a hit can be fetched: its handle, or an id of the source's own that is no handle.
pub(super) fn fetchable_id(hit: &Hit) -> Option<String> {
    match &hit.id {
        HitId::Record(address) => Handle::mint(address).map(|handle| handle.to_string()),
        HitId::Opaque(id) => {
            (id.len() <= MAX_OPAQUE_ID_BYTES && id.parse::<Handle>().is_err()).then(|| id.clone())
        }
        HitId::Nameless => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::RecordAddress;
    use crate::record::Excerpt;

    fn hit(id: HitId, title: &str, link: Option<&str>) -> Hit {
        let link = link.map(|link| link.parse().unwrap());
        Hit {
            id,
            title: title.to_owned(),
            link,
            excerpt: Excerpt::default(),
            time: None,
            account: None,
            by_meaning: false,
            evidence: crate::record::Evidence::default(),
        }
    }

    #[test]
    fn a_long_handle_displaces_the_link_and_the_title() {
        let record = RecordAddress {
            connection: Some("c".parse().unwrap()),
            stream: "s".parse().unwrap(),
            record: "k".repeat(700).parse().unwrap(),
        };
        let link = format!("https://example.com/{}", "a".repeat(990));
        let hit = hit(HitId::Record(record), "Title", Some(&link));
        let shown = |profile, room| {
            let result = bare_result(&hit, profile, room).unwrap();
            assert!(room < 800 || bare_len(&result) < room, "{room}");
            (result.title, result.url)
        };
        for (profile, without, least) in
            [(Profile::Standard, None, 735), (Profile::OpenAi, Some(String::new()), 744)]
        {
            assert_eq!(shown(profile, 2_000), ("Title".to_owned(), Some(link.clone())));
            assert_eq!(shown(profile, 1_700), ("Title".to_owned(), without.clone()));
            assert_eq!(shown(profile, least), (String::new(), without));
        }
    }
}
