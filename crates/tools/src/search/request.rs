//! The request of a search: typed arguments, validated without IO.
//!
//! The text of the query is parsed in [`Criteria::query`], with the time of the first page, so that an age such as `since:30d`
//! means the same on every page.

use fetchwell_core::fit::{PageBudget, budget, first_characters};
use fetchwell_core::handle::{ConnectionId, SourceName, StreamName};
use fetchwell_core::record::RecordData;
use fetchwell_source::{Filter, SearchMode, SearchQuery};
use fetchwell_state::cursor::Kind;
use serde::Deserialize;

use super::query_language::{ParsedQuery, QueryConflict};
use super::spec::{SEARCH, SEARCH_OPENAI};
use crate::arguments::{parse, trimmed};
use crate::error::ToolError;
use crate::paging::Paging;
use crate::profile::Profile;
use crate::toolbox::Toolbox;

/// Maximum length of a query, in characters. A longer one is cut.
const MAX_QUERY_CHARS: usize = 1_000;

/// Maximum number of hits on a page without `limit`.
const DEFAULT_LIMIT: usize = 25;

/// Number of hits that are read at first for a page without `limit`. Few pages have room for more.
const FIRST_HITS: usize = 16;

/// Maximum number of hits in the `openai` profile, which has no `limit`.
const OPENAI_HITS: usize = 50;

/// Maximum number of streams of a search.
const MAX_STREAMS: usize = 50;

/// Problem of a search with more streams.
const TOO_MANY_STREAMS: &str = "it names more than 50 streams";

/// Paging in the profile `standard`.
pub(super) const PAGING: Paging<Request> = Paging {
    kind: Kind::Search,
    needed: "query",
    resolve,
    is_same_list: |one, other| one.criteria == other.criteria,
    refused: ToolError::InvalidSearchCursor,
};

/// Arguments in the profile `standard`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArgs {
    query: Option<String>,
    limit: Option<usize>,
    /// Already resolved by paging.
    #[serde(rename = "cursor")]
    _cursor: Option<String>,
    connection_id: Option<ConnectionId>,
    streams: Option<Vec<StreamName>>,
    filter: Option<Filter>,
    source: Option<SourceName>,
    #[serde(default)]
    mode: SearchMode,
}

/// Arguments in the profile `openai`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenAiSearchArgs {
    query: String,
}

/// A validated call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(super) criteria: Criteria,
    /// Requested number of hits.
    pub(super) limit: Option<usize>,
    pub(super) profile: Profile,
    /// True if results are explained. No argument of a tool asks for it.
    pub(super) explains: bool,
    /// True if the query was longer than its maximum.
    is_cut: bool,
}

/// The arguments that determine the hits. A cursor is bound to them; `limit` may change from page to page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Criteria {
    pub(super) source: Option<SourceName>,
    /// Text as it was sent, with operators.
    pub(super) text: String,
    connection: Option<ConnectionId>,
    streams: Vec<StreamName>,
    filter: Filter,
    pub(super) mode: SearchMode,
}

/// Validates arguments in the profile `standard`.
pub(super) fn resolve(arguments: RecordData) -> Result<Request, ToolError> {
    validate(parse(&SEARCH, arguments)?, Profile::Standard)
}

/// Validates arguments in the profile `openai`.
pub(super) fn resolve_openai(arguments: RecordData) -> Result<Request, ToolError> {
    let OpenAiSearchArgs { query } = parse(&SEARCH_OPENAI, arguments)?;
    validate(SearchArgs { query: Some(query), ..SearchArgs::default() }, Profile::OpenAi)
}

fn validate(args: SearchArgs, profile: Profile) -> Result<Request, ToolError> {
    let streams = args.streams.unwrap_or_default();
    if streams.len() > MAX_STREAMS {
        return Err(SEARCH.invalid_argument("streams", TOO_MANY_STREAMS));
    }
    let query = args.query.ok_or_else(|| SEARCH.missing_argument("query"))?;
    let query = trimmed(&SEARCH, "query", &query, usize::MAX)?;
    let text = cut_query(&query);
    let is_cut = text.len() < query.len();
    Ok(Request {
        criteria: Criteria {
            source: args.source,
            text: text.to_owned(),
            connection: args.connection_id,
            streams,
            filter: args.filter.unwrap_or_default(),
            mode: args.mode,
        },
        limit: args.limit,
        profile,
        explains: false,
        is_cut,
    })
}

/// Returns the words of a query within its maximum length.
fn cut_query(query: &str) -> &str {
    let cut = first_characters(query, MAX_QUERY_CHARS);
    let Some(rest) = query.get(cut.len()..).filter(|rest| !rest.is_empty()) else { return query };
    let is_between_words = rest.starts_with(char::is_whitespace);
    let space = cut.rfind(char::is_whitespace).filter(|_| !is_between_words);
    space.map_or(cut, |space| cut.get(..space).unwrap_or(cut)).trim_end()
}

impl Criteria {
    /// Returns the query for hits from the first one, limited by the arguments and by the parsed text.
    pub(super) fn query(&self, parsed: &ParsedQuery, limit: usize) -> Result<SearchQuery, ToolError> {
        let arguments = SearchQuery {
            connection: self.connection.clone(),
            streams: self.streams.clone(),
            filter: self.filter.clone(),
            mode: self.mode,
            ..SearchQuery::new("", limit)
        };
        let query = parsed.apply(arguments).map_err(|conflict| match conflict {
            QueryConflict::Connections { one, other } => ToolError::ConflictingQuery { one, other },
            QueryConflict::Streams { .. } => SEARCH.invalid_argument("query", conflict.to_string()),
        })?;
        if query.streams.len() > MAX_STREAMS {
            return Err(SEARCH.invalid_argument("query", TOO_MANY_STREAMS));
        }
        Ok(query)
    }
}

impl Request {
    /// Returns the warning that the end of the query was not searched.
    pub(super) fn warning(&self) -> Option<String> {
        let warning = || {
            format!("the query is longer than {MAX_QUERY_CHARS} characters: only its beginning was searched")
        };
        self.is_cut.then(warning)
    }

    /// Returns the maximum number of hits on the page.
    pub(super) fn max_hits(&self) -> usize {
        match (self.profile, self.limit) {
            (_, Some(limit)) => limit,
            (Profile::Standard | Profile::Docs, None) => DEFAULT_LIMIT,
            (Profile::OpenAi, None) => OPENAI_HITS,
        }
    }

    /// Returns the number of hits that are read at first of a source. Of several sources, those that are not shown decide the
    /// order.
    pub(super) fn first_hits(&self, is_federation: bool) -> usize {
        let is_short = self.limit.is_none() && self.profile != Profile::OpenAi && !is_federation;
        if is_short { FIRST_HITS.min(self.max_hits()) } else { self.max_hits() }
    }

    /// Returns the budget, which grows with `limit`.
    pub(super) fn budget(&self, toolbox: &Toolbox) -> PageBudget {
        let bytes = match (self.profile, self.limit) {
            (Profile::OpenAi, _) => budget::SEARCH_OPENAI,
            (Profile::Standard | Profile::Docs, Some(limit)) => budget::search_with_limit(limit),
            (Profile::Standard | Profile::Docs, None) => budget::SEARCH,
        };
        let whole = toolbox.budget("search");
        PageBudget { bytes: bytes.min(whole.bytes), ..whole }
    }
}
