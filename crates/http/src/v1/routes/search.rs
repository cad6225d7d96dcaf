//! `GET /v1/search`: full-text search over every connection.

use std::collections::HashMap;

use axum::http::StatusCode;
use fetchwell_core::fit::Strategy;
use fetchwell_core::handle::{ConnectionId, RecordAddress, StreamName};
use fetchwell_core::record::{ConnectionSchema, Excerpt, Hit, HitId};
use fetchwell_source::{Accuracy, Count, SearchMode, SearchOperator, SearchPosition, SearchQuery};
use fetchwell_tools::{OperatorWarning, ParsedQuery, dated_position, parse_dated};
use jiff::Timestamp;
use percent_encoding::utf8_percent_encode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::encoding::SEGMENT;
use crate::error::RequestError;
use crate::v1::envelope::{Answer, Call, ListLinks};
use crate::v1::operation::Operation;
use crate::v1::parameters::Parameters;
use crate::v1::table::{CONNECTION, CONNECTION_ALIAS, CURSOR, FILTER, LIMIT, Parameter, ParameterType};
use crate::v1::warning::Warning;

const Q: Parameter = Parameter {
    name: "q",
    takes: ParameterType::NeededText,
    about: "The words to search for. Operators are treated as text, unless `syntax` says otherwise.",
};

const STREAMS: Parameter =
    Parameter { name: "streams", takes: ParameterType::Repeated, about: "Only these streams." };

const SYNTAX: Parameter = Parameter {
    name: "syntax",
    takes: ParameterType::Choice(&["literal", OPERATORS]),
    about: "`operators` reads phrases, exclusions, fields and times in `q`, as `docs/search.md` describes them.",
};

const MODE: Parameter = Parameter {
    name: "mode",
    takes: ParameterType::Choice(&["lexical", "auto", "semantic", "hybrid"]),
    about: "By words (default), by meaning, or by both; `auto` is both where there are embeddings. An extension.",
};

/// Syntax of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// All of it is text, as the contract says.
    Literal,
    /// It has operators: an extension.
    Operators,
}

/// Value of `syntax` for a query with operators.
const OPERATORS: &str = "operators";

pub(crate) const OPERATION: Operation = Operation {
    path: "/v1/search",
    id: "search",
    summary: "Records that contain the words of a query, best first",
    parameters: &[Q, SYNTAX, MODE, LIMIT, CURSOR, STREAMS, FILTER, CONNECTION, CONNECTION_ALIAS],
    statuses: &[400, 404],
    answer: |generator| generator.subschema_for::<SearchList>(),
};

pub(crate) const SEMANTIC: Operation = Operation {
    path: "/v1/search/semantic",
    id: "searchSemantic",
    summary: "Records by the meaning of a query; without embeddings by its words, with a warning",
    parameters: &[Q, SYNTAX, LIMIT, CURSOR, STREAMS, FILTER, CONNECTION, CONNECTION_ALIAS],
    ..OPERATION
};

pub(crate) const HYBRID: Operation = Operation {
    path: "/v1/search/hybrid",
    id: "searchHybrid",
    summary: "Records by words and meaning, on one page; without embeddings by words, with a warning",
    // By the contract a hybrid search has one page.
    parameters: &[Q, SYNTAX, LIMIT, STREAMS, FILTER, CONNECTION, CONNECTION_ALIAS],
    ..OPERATION
};

/// A page of search results.
#[derive(Debug, Serialize, JsonSchema)]
struct SearchList {
    #[schemars(extend("const" = "list"))]
    object: &'static str,
    data: Vec<SearchResult>,
    has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Search mode, on routes that name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    retrieval_mode: Option<RetrievalMode>,
    url: String,
    links: ListLinks,
    meta: SearchMeta,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RetrievalMode {
    Lexical,
    Semantic,
    Hybrid,
}

/// A record that was found.
#[derive(Debug, Serialize, JsonSchema)]
struct SearchResult {
    #[schemars(extend("const" = "search_result"))]
    object: &'static str,
    stream: String,
    record_key: String,
    /// URL of the record on this server, with its connection: other connections may have the same key.
    record_url: String,
    connector_id: Option<String>,
    connection_id: Option<String>,
    connector_instance_id: Option<String>,
    display_name: Option<String>,
    title: String,
    /// Time at which the record was emitted, if the source reports it.
    emitted_at: Option<String>,
    /// The fields with words of the query, when the source says which.
    matched_fields: Vec<String>,
    snippet: Snippet,
    /// Search mode, on routes that name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    retrieval_mode: Option<RetrievalMode>,
    /// The searches that found the record, in a hybrid search.
    #[serde(skip_serializing_if = "Option::is_none")]
    retrieval_sources: Option<[RetrievalMode; 1]>,
    /// Relevance, if the source reports it. Scores of two sources do not compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<ScoreBody>,
    /// Always empty: `snippet` has the passage and its field.
    evidence_excerpts: [(); 0],
}

#[derive(Debug, Serialize, JsonSchema)]
struct ScoreBody {
    #[schemars(extend("const" = "bm25"))]
    kind: &'static str,
    #[schemars(extend("const" = "higher_is_better"))]
    order: &'static str,
    value: f32,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Snippet {
    /// The field it is from, when the source says so.
    field: Option<String>,
    /// The text around the match, which stands between `<mark>` and `</mark>`.
    text: String,
}

/// Metadata of a search. Its count is a number, unlike that of other answers.
#[derive(Debug, Serialize, JsonSchema)]
struct SearchMeta {
    count: Option<u64>,
    count_accuracy: CountAccuracy,
    /// Readings of the dates in the query, if records of these times rank higher. An extension of `syntax=operators`.
    #[serde(skip_serializing_if = "Option::is_none")]
    dates: Option<String>,
    recall: Recall,
    warnings: Vec<Warning>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CountAccuracy {
    Exact,
    Estimated,
    LowerBound,
    NotCounted,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Recall {
    complete: bool,
    ranking_scope: RankingScope,
    truncated: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RankingScope {
    AllMatches,
    CandidateWindow,
}

/// Returns what a cursor of a search is sealed for. Cursors outlive the process and its version: the form must not change.
fn question_of(query: &SearchQuery, syntax: Syntax) -> String {
    let connection = query.connection.as_ref().map(ConnectionId::as_str);
    let streams: Vec<&str> = query.streams.iter().map(StreamName::as_str).collect();
    let filter = query.filter.to_json();
    let text = query.text.to_json();
    match (query.mode, syntax) {
        (SearchMode::Lexical, Syntax::Literal) => json!([text, connection, streams, filter]).to_string(),
        (mode, Syntax::Literal) => json!([text, connection, streams, filter, mode.as_str()]).to_string(),
        (mode, Syntax::Operators) => {
            json!([text, connection, streams, filter, mode.as_str(), OPERATORS]).to_string()
        }
    }
}

/// A query with what its cursors are sealed for.
struct SealedQuery {
    query: SearchQuery,
    /// Everything of the query but the number of hits on a page.
    asked: String,
    /// Time of the first page, if the query has operators.
    started: Option<Timestamp>,
    /// Readings of the dates of a query with operators; empty without dates.
    dates: String,
}

/// Returns the mode of a call: that of its route, or the one that it names on the route for words.
fn mode_of(call: &Call<'_>, route: SearchMode) -> SearchMode {
    match call.parameters.text(MODE.name) {
        Some("auto") => SearchMode::Auto,
        Some("semantic") => SearchMode::Semantic,
        Some("hybrid") => SearchMode::Hybrid,
        _ => route,
    }
}

/// Reads the query of a call, and its position from the cursor.
async fn read_query(call: &mut Call<'_>, route: SearchMode) -> Result<SealedQuery, RequestError> {
    let mode = mode_of(call, route);
    let mut query = SearchQuery { mode, ..question(&mut call.parameters)? };
    let syntax = match call.parameters.text(SYNTAX.name) {
        Some(OPERATORS) => Syntax::Operators,
        _ => Syntax::Literal,
    };
    let asked = question_of(&query, syntax);
    let mut started = (syntax == Syntax::Operators).then(|| call.toolbox.now());
    if route != SearchMode::Hybrid
        && let Some(cursor) = call.parameters.text(CURSOR.name)
    {
        let mut position = SearchPosition(call.seal.open(&asked, cursor).await?);
        if let Some(started) = &mut started {
            (*started, position) = parse_dated(&position.0)?;
        }
        query.position = Some(position);
    }
    let mut dates = String::new();
    if let Some(started) = started {
        let now = call.toolbox.local(started);
        let parsed = ParsedQuery::read(&query.text.words, &now, call.source).await?;
        parsed.dates().clone_into(&mut dates);
        let warning =
            |problem: &OperatorWarning| Warning::new("operator_as_text", problem.to_string()).about(Q.name);
        call.parameters.warnings.extend(parsed.warnings().iter().map(warning));
        query = parsed
            .apply(query)
            .map_err(|conflict| RequestError::request(conflict.to_string()).about(Q.name))?;
    }
    check_filter(&query)?;
    Ok(SealedQuery { query, asked, started, dates })
}

/// Answers a search; `route` is the mode that the route names.
pub(crate) async fn answer(call: &mut Call<'_>, route: SearchMode) -> Result<Answer, RequestError> {
    let SealedQuery { query, asked, started, dates } = read_query(call, route).await?;
    // The schema only labels the hits, and a source that is slow to tell it must not cost twice its deadline.
    let (page, schema) = tokio::join!(call.source.search(&query), call.source.schema());
    let (page, schema) = (page?, schema.unwrap_or_default().connections);
    call.warn_unavailable(&page.unavailable);
    if page.lexical_instead || !page.meaning_problems.is_empty() {
        let problem = page.meaning_note().unwrap_or_else(|| {
            "there are no embeddings, so these are the records with the words of the query".to_owned()
        });
        call.parameters.warnings.push(Warning::new("semantic_unavailable", problem));
    }
    if let Some(problem) = SearchOperator::warning(&page.unapplied) {
        call.parameters.warnings.push(Warning::new("operators_not_applied", problem).about(Q.name));
    }
    let retrieval_mode = match query.mode {
        SearchMode::Auto | SearchMode::Lexical => None,
        _ if page.lexical_instead => Some(RetrievalMode::Lexical),
        SearchMode::Semantic => Some(RetrievalMode::Semantic),
        SearchMode::Hybrid => Some(RetrievalMode::Hybrid),
    };
    let connections: HashMap<&ConnectionId, &ConnectionSchema> =
        schema.iter().map(|connection| (&connection.connection_id, connection)).collect();
    let has_more = page.next.is_some();
    let next_cursor = match page.next {
        Some(position) if route != SearchMode::Hybrid => {
            let position = match started {
                Some(started) => dated_position(started, &position),
                None => position.0,
            };
            let issued = call.seal.close(&asked, position).await;
            call.parameters.warnings.extend(issued.warning);
            Some(issued.cursor)
        }
        _ => None,
    };
    let is_all = query.position.is_none() && !has_more && !page.windowed;
    let count = page.count.or_else(|| is_all.then(|| Count::exact(page.hits.len() as u64)));
    let data: Vec<SearchResult> = page
        .hits
        .into_iter()
        .filter_map(|hit| SearchResult::from_hit(hit, retrieval_mode, &connections))
        .collect();
    let items = data.len();
    let answer = Answer::new(&SearchList {
        object: "list",
        has_more,
        retrieval_mode,
        url: call.path.to_owned(),
        links: call.list_links(next_cursor.as_deref().map(|cursor| (CURSOR.name, cursor))),
        meta: SearchMeta {
            count: count.map(|count| count.value),
            count_accuracy: accuracy(count),
            dates: page.has_raised_dates.then_some(dates),
            recall: Recall {
                complete: !page.windowed && page.unavailable.is_empty(),
                ranking_scope: if page.windowed {
                    RankingScope::CandidateWindow
                } else {
                    RankingScope::AllMatches
                },
                truncated: page.windowed,
            },
            warnings: call.warnings(page.notes),
        },
        data,
        next_cursor,
    })?;
    Ok(answer.with_items(items).with_strategy(Strategy::Paginated))
}

fn accuracy(count: Option<Count>) -> CountAccuracy {
    match count.map(|count| count.accuracy) {
        Some(Accuracy::Exact) => CountAccuracy::Exact,
        Some(Accuracy::Estimated) => CountAccuracy::Estimated,
        Some(Accuracy::LowerBound) => CountAccuracy::LowerBound,
        None => CountAccuracy::NotCounted,
    }
}

fn question(sent: &mut Parameters) -> Result<SearchQuery, RequestError> {
    let connection = sent.connection()?;
    let text = sent.needed("q")?.to_owned();
    let mut streams: Vec<StreamName> = Vec::new();
    for name in sent.repeated("streams") {
        let stream = name.parse().map_err(|problem| {
            let problem = format!("there is no stream `{name}`: {problem}");
            RequestError::new(StatusCode::NOT_FOUND, "stream_not_declared", problem).about("streams")
        })?;
        if !streams.contains(&stream) {
            streams.push(stream);
        }
    }
    let filter = sent.filter()?;
    let limit = sent.page_limit();
    Ok(SearchQuery { connection, streams, filter, ..SearchQuery::new(&text, limit) })
}

/// Refuses a filter without exactly one stream.
fn check_filter(query: &SearchQuery) -> Result<(), RequestError> {
    if query.filter.is_empty() || query.streams.len() == 1 {
        return Ok(());
    }
    let problem = "a filter is about the fields of one stream, and the search names none or several";
    let refused = RequestError::bad("invalid_filter", problem.to_owned()).about(FILTER.name);
    Err(refused.hinting("Set `streams` to the one stream that has these fields."))
}

impl SearchResult {
    /// Returns `None` for a hit that names no record, which this contract cannot read.
    fn from_hit(
        hit: Hit,
        retrieval_mode: Option<RetrievalMode>,
        connections: &HashMap<&ConnectionId, &ConnectionSchema>,
    ) -> Option<Self> {
        let HitId::Record(RecordAddress { connection, stream, record }) = hit.id else { return None };
        let known = connection.as_ref().and_then(|id| connections.get(id));
        let connection_id = connection.as_ref().map(ToString::to_string);
        let segment = |name| utf8_percent_encode(name, SEGMENT);
        let path = format!("/v1/streams/{}/records/{}", segment(stream.as_str()), segment(record.as_str()));
        Some(Self {
            object: "search_result",
            record_url: match &connection_id {
                Some(connection) => format!("{path}?{}={}", CONNECTION.name, segment(connection)),
                None => path,
            },
            stream: stream.into(),
            record_key: record.into(),
            connector_id: known.and_then(|known| known.connector_key.clone()),
            connector_instance_id: connection_id.clone(),
            connection_id,
            display_name: known.and_then(|known| known.display_name.clone()),
            title: hit.title,
            emitted_at: hit.evidence.emitted_at,
            matched_fields: hit.evidence.matched_fields,
            snippet: match hit.evidence.title_match {
                Some((field, found)) => Snippet { field: Some(field), text: marked(&found) },
                None => Snippet { field: hit.evidence.excerpt_field, text: marked(&hit.excerpt) },
            },
            retrieval_mode,
            retrieval_sources: match retrieval_mode {
                Some(RetrievalMode::Hybrid) if hit.by_meaning => Some([RetrievalMode::Semantic]),
                Some(RetrievalMode::Hybrid) => Some([RetrievalMode::Lexical]),
                _ => None,
            },
            score: hit.evidence.score.map(|score| ScoreBody {
                kind: "bm25",
                order: "higher_is_better",
                value: score.value(),
            }),
            evidence_excerpts: [],
        })
    }
}

/// The excerpt with its match between marks.
fn marked(excerpt: &Excerpt) -> String {
    let (text, focus) = (excerpt.text(), excerpt.focus());
    match (text.get(..focus.start), text.get(focus.clone()), text.get(focus.end..)) {
        (Some(before), Some(found), Some(after)) if !found.is_empty() => {
            format!("{before}<mark>{found}</mark>{after}")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_sealed_for_the_same_text_in_every_version() {
        let filter = serde_json::from_str(r#"{"amount": {"gte": 10}}"#).unwrap();
        let streams = vec!["messages".parse().unwrap()];
        let mode = SearchMode::Lexical;
        let query = SearchQuery { filter, streams, mode, ..SearchQuery::new("pay \"now\"", 5) };
        assert_eq!(
            question_of(&query, Syntax::Literal),
            r#"["pay \"now\"",null,["messages"],[["amount","gte",10]]]"#
        );
    }

    #[test]
    fn the_match_stands_between_marks() {
        assert_eq!(marked(&Excerpt::new("pay the invoice", 8..15)), "pay the <mark>invoice</mark>");
        assert_eq!(marked(&Excerpt::new("pay", 0..0)), "pay");
    }
}
