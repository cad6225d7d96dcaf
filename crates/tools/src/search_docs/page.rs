//! Fits the results of a search for documents into the answer.

use std::sync::Arc;

use fetchwell_core::fit::{
    PageBudget, PageItem, Pressure, Shaping, Strategy, budget, clip, clip_line, plan_page, tokens_within,
};
use fetchwell_core::handle::Handle;
use fetchwell_core::record::Excerpt;
use fetchwell_source::documents::{DocumentChunk, Uuid};
use serde::Serialize;

use crate::answer::{Payload, json_of};
use crate::documents::{FoundProject, SearchAnswer, SearchRequest, SearchResult};
use crate::error::ToolError;
use crate::projects::document_address;
use crate::toolbox::Toolbox;

/// Maximum length of a title in bytes of JSON.
const MAX_TITLE_BYTES: usize = 120;

/// Maximum length of a path in bytes. A longer one is left out; `get_document` takes the id.
const MAX_PATH_BYTES: usize = 240;

/// Maximum length of a warning in bytes of JSON.
const MAX_WARNING_BYTES: usize = 300;

/// Version of the corpus of a project to which nothing was imported.
const EMPTY_CORPUS: i64 = 1;

/// A search with everything that the answer to a call of the tool tells of it.
#[derive(Debug)]
pub(super) struct SearchDetails {
    pub(super) answer: Arc<SearchAnswer>,
    /// Id of the search in the history.
    pub(super) search_id: Option<Uuid>,
    /// Requested number of results.
    pub(super) top_k: Option<usize>,
    /// Corrections of arguments.
    pub(super) warnings: Vec<String>,
}

/// The answer of the tool.
#[derive(Debug, Clone, Serialize)]
struct SearchDocsAnswer<'a> {
    results: Vec<ShownResult<'a>>,
    total_found: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Next step after an answer without results.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

/// A result as the answer shows it.
#[derive(Debug, Clone, Serialize)]
struct ShownResult<'a> {
    id: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    category: &'a str,
    score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    text: String,
}

/// Builds the answer: as many results as fit, with excerpts around the words of the query.
pub(super) fn answer(
    toolbox: &Toolbox,
    project: &FoundProject,
    request: &SearchRequest,
    details: SearchDetails,
) -> Result<Payload, ToolError> {
    let SearchDetails { answer: found, search_id, top_k, warnings } = details;
    let bytes = top_k.map_or(budget::SEARCH, budget::search_with_limit);
    let whole = toolbox.budget("search_docs");
    let budget = PageBudget { bytes: bytes.min(whole.bytes), ..whole };
    let warnings = found.warnings.iter().chain(&warnings);
    let warnings = warnings.map(|warning| clip(warning, MAX_WARNING_BYTES)).collect();
    let (results, total_found, hint) = (Vec::new(), found.total_found, hint(&found, request, project));
    let mut answer = SearchDocsAnswer { results, total_found, search_id, warnings, hint };
    let bare: Vec<ShownResult<'_>> =
        found.results.iter().filter_map(|result| shown(toolbox, project, result)).collect();
    let excerpts: Vec<Excerpt> =
        found.results.iter().map(|result| excerpt(&result.passage.chunk, &request.query)).collect();
    let sizes: Vec<usize> =
        bare.iter().map(|result| json_of(result).map_or(usize::MAX, |json| json.len())).collect();
    let mut room = budget.bytes.saturating_sub(json_of(&answer)?.len());
    loop {
        let items = sizes.iter().zip(&excerpts).map(|(bare, excerpt)| PageItem { bare: *bare, excerpt });
        let plan = plan_page(&items.collect::<Vec<_>>(), room, Pressure::KeepHits);
        let shown = bare
            .iter()
            .zip(plan.shown)
            .filter_map(|(result, text)| Some(ShownResult { text: text?, ..result.clone() }));
        answer.results = shown.collect();
        // A token has at least one byte.
        if budget.bytes <= budget.tokens || room == 0 {
            break;
        }
        match tokens_within(&json_of(&answer)?, budget.tokens) {
            Err(tokens) => room = budget.less_room(room, budget.bytes, tokens),
            Ok(_) => break,
        }
    }
    let shaping = Shaping { items: answer.results.len(), strategy: Strategy::List, ..Shaping::default() };
    Ok(Payload::within(&answer, budget)?.with_shaping(shaping))
}

/// Returns the next step after an answer without results.
fn hint(answer: &SearchAnswer, request: &SearchRequest, found: &FoundProject) -> Option<&'static str> {
    if !answer.results.is_empty() {
        return None;
    }
    Some(if answer.total_found > 0 {
        "The documents that match were deleted during the search. Search again."
    } else if !answer.warnings.is_empty() {
        "Nothing was found, and the search was not complete: see `warnings`. Search again later, or for other words."
    } else if found.project.corpus_version == EMPTY_CORPUS {
        "The project has no documents yet; `fetchwell import docs` adds some."
    } else if request.category.is_some() {
        "No document of this category matches. Search without `category`, or for other words."
    } else {
        "No document matches. Search for other words; list_categories shows what the project has."
    })
}

/// Returns a result without its text, or `None` for a document that no handle can name.
fn shown<'a>(toolbox: &Toolbox, project: &FoundProject, result: &'a SearchResult) -> Option<ShownResult<'a>> {
    let document = &result.passage.document;
    let handle = Handle::mint(&document_address(project, document.id)?)?;
    let path = document.path.as_str();
    let title = document.title.as_deref().unwrap_or(path);
    Some(ShownResult {
        title: clip_line(title, MAX_TITLE_BYTES),
        path: Some(path).filter(|path| path.len() <= MAX_PATH_BYTES),
        category: document.category.as_str(),
        score: result.rounded_score(),
        url: toolbox.pages().and_then(|pages| pages.link(&handle)),
        id: handle.to_string(),
        text: String::new(),
    })
}

/// Returns the excerpt of a chunk, without the front matter of a document unless only that has a word of the query.
fn excerpt(chunk: &DocumentChunk, query: &str) -> Excerpt {
    let whole = chunk.content.trim();
    let below = if chunk.chunk_index == 0 { below_front_matter(whole) } else { whole };
    let place = focus(below, query);
    match focus(whole, query) {
        matter if place.is_empty() && !matter.is_empty() => Excerpt::new(whole, matter),
        _ => Excerpt::new(below, place),
    }
}

/// Returns the text below a front matter in YAML or TOML, or all of a text that has nothing else.
fn below_front_matter(text: &str) -> &str {
    let below = |fence: &str| {
        let rest = text.trim_start_matches('\u{FEFF}').strip_prefix(fence)?;
        let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
        let lines = rest.split_inclusive('\n');
        let matter: usize = lines.take_while(|line| line.trim_end() != fence).map(str::len).sum();
        let closing = rest.get(matter..)?.split_inclusive('\n').next()?;
        rest.get(matter + closing.len()..).map(str::trim).filter(|below| !below.is_empty())
    };
    below("---").or_else(|| below("+++")).unwrap_or(text)
}

/// Returns the place of the longest word of a query in a text, or its start.
fn focus(text: &str, query: &str) -> std::ops::Range<usize> {
    let lower = text.to_ascii_lowercase();
    let mut words: Vec<&str> = query.split(|letter: char| !letter.is_alphanumeric()).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let place = words.iter().filter(|word| !word.is_empty()).find_map(|word| {
        let start = lower.find(&word.to_ascii_lowercase())?;
        Some(start..start + word.len())
    });
    place.unwrap_or(0..0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_begins_below_the_front_matter() {
        for (text, expect) in [
            ("---\ntitle: T\n---\n# H\n\nbody", "# H\n\nbody"),
            ("\u{FEFF}---\r\na: 1\r\n---\r\nbody", "body"),
            ("+++\na = 1\n+++\nbody", "body"),
            ("---\ntitle: T\n---\n", "---\ntitle: T\n---\n"),
            ("---\ntitle: T\nno end", "---\ntitle: T\nno end"),
            ("--- a rule", "--- a rule"),
            ("body\n---\nmore\n---\n", "body\n---\nmore\n---\n"),
        ] {
            assert_eq!(below_front_matter(text), expect, "{text:?}");
        }
    }

    #[test]
    fn the_focus_is_the_longest_word_of_the_query() {
        let text = "The API has É tokens. Authentication is handled via tokens.";
        let at = |query: &str| text.get(focus(text, query)).unwrap();
        assert_eq!(at("how does authentication work"), "Authentication");
        assert_eq!((at("É"), at("the"), at("none"), at("")), ("É", "The", "", ""));
    }
}
