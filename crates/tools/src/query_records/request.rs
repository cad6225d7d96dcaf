//! The request of a list: typed arguments, validated without IO.

use fetchwell_core::fit::{Limits, PageBudget, clip};
use fetchwell_core::handle::{ConnectionId, SourceName, StreamName};
use fetchwell_core::record::RecordData;
use fetchwell_ranking::lexical::word_filter::{RequiredPiece, WordFilter, required_pieces};
use fetchwell_source::{
    ChangesToken, CountMode, Direction, Filter, Purpose, RecordsQuery, SearchText, Selection, SourceError,
    Start,
};
use fetchwell_state::cursor::Kind;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::spec::QUERY_RECORDS;
use crate::arguments::{parse, parse_expansions, trimmed};
use crate::error::{MAX_WORD_BYTES, ToolError};
use crate::paging::Paging;
use crate::search::parse_query;

/// Number of records on a page without `limit`.
const DEFAULT_LIMIT: usize = 25;

/// Maximum number of fields in `fields`.
const MAX_NAMES: usize = 100;

/// Maximum length of `q`, in characters.
const MAX_WORDS_CHARS: usize = 1_000;

/// Arguments as they are sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    stream: Option<StreamName>,
    connection_id: Option<ConnectionId>,
    limit: Option<usize>,
    cursor: Option<String>,
    order: Option<Direction>,
    sort: Option<String>,
    #[serde(default)]
    count: CountMode,
    filter: Option<Filter>,
    q: Option<String>,
    fields: Option<Vec<String>>,
    view: Option<String>,
    #[serde(default)]
    expand: Vec<String>,
    #[serde(default)]
    expand_limit: RecordData,
    changes_since: Option<String>,
    source: Option<SourceName>,
}

/// A validated call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(super) source: Option<SourceName>,
    /// Query for the first page, with the limit of this page.
    pub(super) query: RecordsQuery,
    /// True if the call has a `limit`.
    has_limit: bool,
}

/// Paging of the list.
pub(super) const PAGING: Paging<Request> = Paging {
    kind: Kind::Records,
    needed: "stream",
    resolve,
    // `limit` and `count` may change from page to page.
    is_same_list: |one, other| {
        let query = RecordsQuery { limit: one.query.limit, count: one.query.count, ..other.query.clone() };
        one.source == other.source && one.query == query
    },
    refused: ToolError::InvalidListCursor,
};

/// Validates arguments that depend on each other.
fn resolve(arguments: RecordData) -> Result<Request, ToolError> {
    let args: Args = parse(&QUERY_RECORDS, arguments)?;
    let stream = args.stream.ok_or_else(|| QUERY_RECORDS.missing_argument("stream"))?;
    let cursor = args.cursor;
    let start = match args.changes_since {
        Some(_) if cursor.is_some() => {
            return Err(QUERY_RECORDS
                .invalid_argument("cursor", "it does not go with `changes_since`, which continues itself"));
        }
        Some(since) if since == "beginning" => Start::Changes(None),
        Some(since) => Start::Changes(Some(ChangesToken::Unverified(since))),
        None => Start::First,
    };
    if start != Start::First {
        let beside = [
            ("q", args.q.is_some()),
            ("expand", !args.expand.is_empty()),
            ("count", args.count != CountMode::None),
            ("sort", args.sort.is_some()),
            ("order", args.order.is_some()),
        ];
        if let Some((name, _)) = beside.into_iter().find(|(_, given)| *given) {
            let problem = "it does not go with `changes_since`: changes come in their own order, each once";
            return Err(QUERY_RECORDS.invalid_argument(name, problem));
        }
    }
    let fields = args.fields.filter(|fields| !fields.is_empty());
    let selection = match (fields, args.view) {
        (Some(_), Some(_)) => {
            return Err(QUERY_RECORDS.invalid_argument("view", "it does not go with `fields`"));
        }
        (Some(fields), None) if fields.len() > MAX_NAMES || fields.iter().any(String::is_empty) => {
            return Err(QUERY_RECORDS
                .invalid_argument("fields", format!("it has an empty name, or more than {MAX_NAMES}")));
        }
        (Some(fields), None) => Selection::Fields(fields),
        (None, Some(view)) => Selection::View(view),
        (None, None) => Selection::All,
    };
    let (sort, sorted) = match args.sort.as_deref() {
        None => (None, None),
        Some(sort) => match sort.strip_prefix('-') {
            Some(field) => (Some(field.to_owned()), Some(Direction::Descending)),
            None => (Some(sort.to_owned()), args.order.or(Some(Direction::Ascending))),
        },
    };
    if let (Some(order), Some(sorted)) = (args.order, sorted)
        && order != sorted
    {
        return Err(QUERY_RECORDS
            .invalid_argument("sort", "it says another direction than `order`; leave one of them out"));
    }
    let query = RecordsQuery {
        stream,
        connection: args.connection_id,
        selection,
        filter: args.filter.unwrap_or_default(),
        words: args.q.as_deref().map(parse_words).transpose()?,
        direction: args.order.or(sorted).unwrap_or_default(),
        sort,
        count: args.count,
        expand: parse_expansions(&QUERY_RECORDS, args.expand, &args.expand_limit)?,
        limit: args.limit.unwrap_or(DEFAULT_LIMIT),
        placed: false,
        start,
        purpose: Purpose::Answer,
    };
    Ok(Request { source: args.source, query, has_limit: args.limit.is_some() })
}

/// Parses the words that each record must have, with phrases and exclusions. Other operators are those of `search`.
fn parse_words(q: &str) -> Result<SearchText, ToolError> {
    let invalid = |problem: String| QUERY_RECORDS.invalid_argument("q", problem);
    let q = trimmed(&QUERY_RECORDS, "q", q, MAX_WORDS_CHARS)?;
    // A time is no condition here, so any clock will do.
    let parsed = parse_query(&q, &Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC));
    if let Some(warning) = parsed.warnings().first() {
        return Err(invalid(warning.refusal()));
    }
    // A search takes such a piece as text, which would turn what it says into its opposite here.
    let is_negative =
        |piece: &RequiredPiece<'_>| matches!(piece, RequiredPiece::Word(word) if word.starts_with('-'));
    if let Some(RequiredPiece::Word(word)) = required_pieces(parsed.text()).find(is_negative) {
        let (word, bare) = (clip(word, MAX_WORD_BYTES), clip(word.trim_start_matches('-'), MAX_WORD_BYTES));
        let problem = format!(
            "`{word}` excludes nothing. Write `-\"{bare}\"` to exclude it, or `\"{bare}\"` to require it"
        );
        return Err(invalid(problem));
    }
    if parsed.names_places() {
        return Err(invalid("the stream and the connection are arguments of their own".to_owned()));
    }
    let text = SearchText { dates: Vec::new(), ..parsed.text().clone() };
    match WordFilter::new(&text) {
        Ok(_) => Ok(text),
        Err(SourceError::InvalidQuery { problem, hint, .. }) => Err(invalid(format!("{problem}. {hint}"))),
        Err(error) => Err(invalid(error.to_string())),
    }
}

impl Request {
    /// Returns the budget, which is small unless the call has a `limit`.
    pub(super) fn budget(&self, limits: &Limits) -> PageBudget {
        if self.has_limit { PageBudget::whole(limits) } else { PageBudget::unasked(limits) }
    }
}
