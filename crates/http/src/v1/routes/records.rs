//! `GET /v1/streams/{stream}/records`: a page of a stream's records or of its changes.

use fetchwell_core::fit::Strategy;
use fetchwell_core::handle::StreamName;
use fetchwell_source::{
    ChangesToken, CountMode, Direction, Expansion, Purpose, RecordsPosition, RecordsQuery, Selection, Start,
};
use fetchwell_tools::ChangeTokenSealer;
use schemars::JsonSchema;
use serde::Serialize;

use super::rows::Row;
use crate::error::RequestError;
use crate::v1::envelope::{Answer, Call, ListLinks, Meta};
use crate::v1::operation::Operation;
use crate::v1::parameters::{Parameters, exclusive};
use crate::v1::table::{
    CONNECTION, CONNECTION_ALIAS, CURSOR, EXPAND, EXPAND_LIMIT, FIELDS, FILTER, LIMIT, Parameter,
    ParameterType,
};
use crate::v1::warning::Warning;

pub(crate) const OPERATION: Operation = Operation {
    path: "/v1/streams/{stream}/records",
    id: "listRecords",
    summary: "A page of the records of a stream, or of its changes, over every connection that has it",
    parameters: &[
        LIMIT,
        CURSOR,
        Parameter {
            name: "order",
            takes: ParameterType::Choice(&["asc", "desc"]),
            about: "The direction, by the stream's cursor field. Default: newest first.",
        },
        Parameter {
            name: "sort",
            takes: ParameterType::Text,
            about: "The stream's cursor field, prefixed with `-` for newest first.",
        },
        Parameter {
            name: "count",
            takes: ParameterType::Choice(&["none", "estimated", "exact"]),
            about: "Whether `meta.count` has the total number of records.",
        },
        FIELDS,
        Parameter {
            name: "view",
            takes: ParameterType::Text,
            about: "Only the fields of a view that the stream declares; not with `fields`.",
        },
        Parameter {
            name: "changes_since",
            takes: ParameterType::Text,
            about: "`beginning`, or a `next_changes_since`: the changes since then, including deletions; not with `cursor`, `order`, `sort`, `count` or `expand`.",
        },
        FILTER,
        EXPAND,
        EXPAND_LIMIT,
        CONNECTION,
        CONNECTION_ALIAS,
    ],
    statuses: &[400, 404, 409, 410],
    answer: |generator| generator.subschema_for::<RecordList>(),
};

/// A page of records.
#[derive(Debug, Serialize, JsonSchema)]
struct RecordList {
    #[schemars(extend("const" = "list"))]
    object: &'static str,
    data: Vec<Row>,
    has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_changes_since: Option<String>,
    url: String,
    links: ListLinks,
    meta: Meta,
}

pub(crate) async fn answer(call: &mut Call<'_>, stream: StreamName) -> Result<Answer, RequestError> {
    let mut query = parse_query(&mut call.parameters, stream)?;
    if let Start::After(RecordsPosition(cursor)) = &mut query.start {
        *cursor = call.seal.open_list(cursor).await?;
    }
    let changes = ChangeTokenSealer::open(call.toolbox, call.source, &mut query).await?;
    let page = call.source.records(&query).await?;
    call.warn_unavailable(&page.unavailable);
    let next_cursor = match page.next {
        Some(RecordsPosition(position)) => {
            let issued = call.seal.close_list(position).await;
            call.parameters.warnings.extend(issued.warning);
            Some(issued.cursor)
        }
        None => None,
    };
    let next_changes_since = match (&page.next_changes, &changes) {
        (Some(next), Some(changes)) => {
            let token = changes.seal(next).await.map_err(|_no_random_bytes| RequestError::internal())?;
            if token.is_none() {
                let problem = "changes cannot be continued: the token of the source is too long";
                call.parameters.warnings.push(Warning::new("changes_token_too_long", problem.to_owned()));
            }
            token
        }
        _ => None,
    };
    let next = match (&next_cursor, &next_changes_since) {
        (Some(cursor), _) => Some((CURSOR.name, cursor.as_str())),
        (None, Some(token)) if page.has_more => Some(("changes_since", token.as_str())),
        _ => None,
    };
    let items = page.rows.len();
    let answer = Answer::new(&RecordList {
        object: "list",
        data: page.rows.into_iter().map(Row::new).collect(),
        has_more: page.has_more,
        url: call.path.to_owned(),
        links: call.list_links(next),
        meta: call.counted(page.count, page.notes),
        next_cursor,
        next_changes_since,
    })?;
    Ok(answer.with_items(items).with_strategy(Strategy::Paginated))
}

/// Parameters that cannot be combined with `changes_since`: changes have their own order, no count and no related
/// records.
const NOT_WITH_CHANGES: [&str; 4] = ["order", "sort", "count", EXPAND.name];

fn parse_query(sent: &mut Parameters, stream: StreamName) -> Result<RecordsQuery, RequestError> {
    if sent.text("changes_since").is_some()
        && let Some(name) = NOT_WITH_CHANGES.into_iter().find(|name| sent.text(name).is_some())
    {
        let refused =
            RequestError::bad("invalid_argument", format!("`{name}` does not go with changes_since"));
        return Err(refused.about(name).hinting(&format!("Leave `{name}` out.")));
    }
    let (direction, sort) = order(sent.text("order"), sent.text("sort"))?;
    let fields = sent.names(FIELDS.name)?;
    let selection = match (fields.is_empty(), sent.text("view")) {
        (true, None) => Selection::All,
        (false, None) => Selection::Fields(fields),
        (true, Some(view)) => Selection::View(view.to_owned()),
        (false, Some(_)) => return Err(exclusive("view", "fields")),
    };
    let start = match (sent.text(CURSOR.name), sent.text("changes_since")) {
        (None, None) => Start::First,
        (Some(cursor), None) => Start::After(RecordsPosition(cursor.to_owned())),
        (None, Some("beginning")) => Start::Changes(None),
        (None, Some(token)) => Start::Changes(Some(ChangesToken::Unverified(token.to_owned()))),
        (Some(_), Some(_)) => return Err(exclusive("changes_since", "cursor")),
    };
    let count = match sent.text("count") {
        Some("estimated") => CountMode::Estimated,
        Some("exact") => CountMode::Exact,
        _ => CountMode::None,
    };
    Ok(RecordsQuery {
        stream,
        connection: sent.connection()?,
        selection,
        filter: sent.filter()?,
        words: None,
        direction,
        sort,
        count,
        expand: expansions(sent)?,
        limit: sent.page_limit(),
        placed: false,
        start,
        purpose: Purpose::Answer,
    })
}

/// Returns the direction and the field to sort by. `sort=-field` determines both; `order` must not contradict it.
fn order(order: Option<&str>, sort: Option<&str>) -> Result<(Direction, Option<String>), RequestError> {
    let invalid = |problem: &str| Err(RequestError::bad("invalid_sort", problem.to_owned()).about("sort"));
    let asked = match order {
        Some("asc") => Some(Direction::Ascending),
        Some(_) => Some(Direction::Descending),
        None => None,
    };
    let Some(sort) = sort else { return Ok((asked.unwrap_or_default(), None)) };
    let (direction, field) = match (sort.strip_prefix('-'), asked) {
        (Some(_), Some(Direction::Ascending)) => return invalid("`-` in sort and order=asc contradict"),
        (Some(field), _) => (Direction::Descending, field),
        (None, asked) => (asked.unwrap_or(Direction::Ascending), sort),
    };
    if field.is_empty() {
        return invalid("sort names no field");
    }
    Ok((direction, Some(field.to_owned())))
}

/// Returns the relations to expand, each with its limit.
pub(crate) fn expansions(sent: &Parameters) -> Result<Vec<Expansion>, RequestError> {
    let invalid = |problem: String| RequestError::bad("invalid_expand", problem).about(EXPAND_LIMIT.name);
    let mut asked: Vec<Expansion> = Vec::new();
    for relation in sent.repeated(EXPAND.name) {
        if asked.iter().all(|before| before.relation != relation) {
            asked.push(Expansion { relation: relation.to_owned(), limit: None });
        }
    }
    for (relation, value) in sent.keyed(EXPAND_LIMIT.name) {
        let limit = value.parse().ok().filter(|limit| *limit >= 1);
        let limit =
            limit.ok_or_else(|| invalid(format!("expand_limit[{relation}] must be a positive integer")))?;
        let expansion = asked.iter_mut().find(|before| before.relation == relation);
        let expansion = expansion
            .ok_or_else(|| invalid(format!("expand_limit[{relation}] goes with expand={relation}")))?;
        expansion.limit = Some(limit);
    }
    Ok(asked)
}
