//! `search_docs`: the best chunks of a project, as handles with excerpts.
//!
//! * `page`: fitting of results into the answer.

mod page;

use serde::Deserialize;

use fetchwell_core::record::RecordData;
use fetchwell_source::documents::{Category, whole_millis};
use page::{SearchDetails, answer};

use super::answer::Payload;
use super::arguments::{parse, trimmed};
use super::error::{SourceHints, ToolError};
use super::projects::find_project;
use super::tool::{Example, Tool, ToolCall, ToolSpec};
use crate::documents::{AnsweredSearch, MAX_QUERY_CHARS, SearchRequest, remember};

/// Number of results without `top_k`.
const DEFAULT_RESULTS: usize = 5;

/// Specification of the tool. Name, description and input schema are those of the contract.
const SEARCH_DOCS: ToolSpec = ToolSpec {
    name: "search_docs",
    title: "Search documents",
    description: "Search project documentation using semantic + keyword search",
    input_schema: include_str!("input.json"),
    aliases: &[],
    // The contract has this category and does not list it.
    extra_choices: &[("category", Category::GENERAL)],
    output_schema: include_str!("output.json"),
    examples: &[
        Example { argument: "query", call: r#"{"query": "words to find"}"# },
        Example {
            argument: "project_id",
            call: r#"{"query": "words to find", "project_id": "the slug of a project"}"#,
        },
        Example { argument: "top_k", call: r#"{"query": "words to find", "top_k": 10}"# },
        Example { argument: "category", call: r#"{"query": "words to find", "category": "research"}"# },
    ],
    hints: SourceHints::DOCS,
};

/// The tool `search_docs` of the profile `docs`.
pub(crate) struct SearchDocs;

/// Arguments of the tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchDocsArgs {
    query: String,
    project_id: Option<String>,
    top_k: Option<usize>,
    category: Option<String>,
}

impl Tool for SearchDocs {
    type Arguments = SearchDocsArgs;

    const SPEC: ToolSpec = SEARCH_DOCS;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        let args: SearchDocsArgs = parse(&SEARCH_DOCS, arguments)?;
        let query = trimmed(&SEARCH_DOCS, "query", &args.query, MAX_QUERY_CHARS)?;
        Ok(SearchDocsArgs { query, ..args })
    }

    async fn call(call: ToolCall<'_>, args: Self::Arguments) -> Result<Payload, ToolError> {
        let found = find_project(call.toolbox, args.project_id.as_deref()).await?;
        let category = args.category.as_deref().map(str::parse::<Category>).transpose();
        let category =
            category.map_err(|invalid| SEARCH_DOCS.invalid_argument("category", invalid.to_string()))?;
        let request = SearchRequest {
            query: args.query,
            top_k: args.top_k.unwrap_or(DEFAULT_RESULTS),
            category,
            use_reranker: true,
        };
        let cached = call.toolbox.searches().search(&found, &request).await;
        let cached = cached.map_err(|error| ToolError::from_docs(call.toolbox.source(), error))?;
        let latency_ms = whole_millis(call.started.elapsed());
        let caller = call.toolbox.source().context().grant_id();
        let answered = AnsweredSearch { request: &request, cached: &cached, latency_ms, caller };
        let details = SearchDetails {
            search_id: remember(&found, answered).await,
            answer: cached.answer,
            top_k: args.top_k,
            warnings: call.warnings,
        };
        answer(call.toolbox, &found, &request, details)
    }
}
