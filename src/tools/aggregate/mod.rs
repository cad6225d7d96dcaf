//! `aggregate`: one figure over a stream, or one for each group of its records.

use serde::{Deserialize, Serialize};

use super::answer::{NoRecords, NoResults, Payload, explanation_timeout};
use super::arguments::parse;
use super::error::{ShownUnavailable, SourceHints, ToolError, list_unavailable};
use super::tool::{Example, Tool, ToolCall, ToolSpec};
use crate::fit::{Shaping, clip};
use crate::handle::{ConnectionId, SourceName, StreamName};
use crate::record::{RecordData, Scalar};
use crate::source::{
    AggregateAnswer, AggregateQuery, Filter, Granularity, Group, Grouping, Metric, Purpose, TimeZoneName,
};

/// The tool `aggregate`.
pub(super) struct Aggregate;

const AGGREGATE: ToolSpec = ToolSpec {
    name: "aggregate",
    title: "Count and sum up records",
    description: "One figure over a stream, or one for each group of its records: with `group_by` the largest first, with \
        `group_by_time` the newest `limit` in the order of time. `other_count` counts the records of groups not shown, \
        `records` those that passed `filter`. `schema` tells which fields can be aggregated.",
    input_schema: include_str!("input.json"),
    aliases: &[],
    output_schema: include_str!("output.json"),
    examples: EXAMPLES,
    hints: SourceHints::STANDARD,
};

/// Example calls, one for each argument, for the hints of errors. The first one is the shortest that works.
const EXAMPLES: &[Example] = &[
    Example { argument: "metric", call: r#"{"stream": "messages", "metric": "count"}"# },
    Example { argument: "stream", call: r#"{"stream": "messages", "metric": "count"}"# },
    Example {
        argument: "connection_id",
        call: r#"{"stream": "messages", "metric": "count", "connection_id": "what an id has before its first /"}"#,
    },
    Example { argument: "field", call: r#"{"stream": "orders", "metric": "sum", "field": "amount"}"# },
    Example {
        argument: "group_by",
        call: r#"{"stream": "messages", "metric": "count", "group_by": "from"}"#,
    },
    Example {
        argument: "group_by_time",
        call: r#"{"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "month"}"#,
    },
    Example {
        argument: "granularity",
        call: r#"{"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "month"}"#,
    },
    Example {
        argument: "time_zone",
        call: r#"{"stream": "messages", "metric": "count", "group_by_time": "sent_at", "granularity": "day", "time_zone": "Europe/Oslo"}"#,
    },
    Example {
        argument: "limit",
        call: r#"{"stream": "messages", "metric": "count", "group_by": "from", "limit": 10}"#,
    },
    Example {
        argument: "filter",
        call: r#"{"stream": "orders", "metric": "count", "filter": {"status": "open", "amount": {"gte": 10, "lt": 20}}}"#,
    },
];

/// Groups shown when no number of them is asked.
const GROUPS: usize = 20;

/// The most groups a caller may ask for.
const MAX_GROUPS: usize = 100;

/// A value or key that is text, in bytes of JSON.
const TEXT: usize = 300;

/// What an answer takes beside the texts of its groups, and a group beside its two texts, in bytes.
const BESIDE: (usize, usize) = (4_000, 32);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    stream: StreamName,
    connection_id: Option<ConnectionId>,
    metric: Metric,
    field: Option<String>,
    group_by: Option<String>,
    group_by_time: Option<String>,
    granularity: Option<Granularity>,
    time_zone: Option<String>,
    limit: Option<usize>,
    filter: Option<Filter>,
    source: Option<SourceName>,
}

/// A validated call.
#[derive(Debug)]
pub(super) struct Request {
    source: Option<SourceName>,
    query: AggregateQuery,
}

#[derive(Debug, Serialize)]
struct Answer {
    metric: &'static str,
    stream: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_by_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    granularity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    #[serde(flatten)]
    figures: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<ShownUnavailable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(flatten)]
    nothing: NoResults,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Figures {
    One { value: Option<Scalar> },
    Many { groups: Vec<ShownGroup> },
}

#[derive(Debug, Serialize)]
struct ShownGroup {
    key: Option<Scalar>,
    value: Option<Scalar>,
}

impl Tool for Aggregate {
    type Arguments = Request;

    const SPEC: ToolSpec = AGGREGATE;

    async fn parse(_call: &ToolCall<'_>, arguments: RecordData) -> Result<Self::Arguments, ToolError> {
        resolve(parse(&AGGREGATE, arguments)?)
    }

    async fn call(call: ToolCall<'_>, arguments: Self::Arguments) -> Result<Payload, ToolError> {
        aggregate(call, arguments).await
    }
}

async fn aggregate(
    ToolCall { toolbox, warnings, started }: ToolCall<'_>,
    Request { source, query }: Request,
) -> Result<Payload, ToolError> {
    let source = toolbox.source("aggregate", source.as_ref())?;
    let answer = source.aggregate(&query).await;
    let mut answer = answer.map_err(|error| ToolError::from_source(source.as_ref(), error))?;
    answer.notes.splice(0..0, warnings);
    let mut nothing = NoResults::default();
    if is_empty(&answer) {
        let AggregateQuery { stream, connection, filter, .. } = &query;
        nothing = NoRecords { stream, connection: connection.as_ref(), filter }
            .explain(source.as_ref(), explanation_timeout(toolbox.call_deadline(), started))
            .await;
    }
    let budget = toolbox.budget("aggregate");
    let groups = answer.groups.as_ref().map_or(1, Vec::len).clamp(1, MAX_GROUPS);
    let mut text_most = (budget.bytes.saturating_sub(BESIDE.0) / groups).saturating_sub(BESIDE.1) / 2;
    text_most = text_most.min(TEXT);
    loop {
        let shown = Answer { nothing: nothing.clone(), ..shown(&query, &answer, text_most) };
        if let Some(payload) = Payload::if_within(&shown, budget)? {
            return Ok(payload.with_shaping(Shaping { items: groups, ..Shaping::default() }));
        }
        // Bytes are known to fit; texts of rare letters have more tokens. Under a low cap, an answer comes without its hint.
        nothing = NoResults::default();
        if text_most == 0 {
            return Payload::within(&shown, budget);
        }
        text_most /= 2;
    }
}

/// Validates arguments that depend on each other.
fn resolve(args: Args) -> Result<Request, ToolError> {
    let (field, by, by_time) = (args.field, args.group_by, args.group_by_time);
    let zoned = args.time_zone.is_some();
    match (args.metric, &field) {
        (Metric::Count, Some(_)) => {
            return Err(AGGREGATE.invalid_argument(
                "field",
                "`count` counts records and takes none; `count_distinct` counts values",
            ));
        }
        (Metric::Count, None) | (_, Some(_)) => {}
        (_, None) => return Err(AGGREGATE.invalid_argument("field", "every metric but `count` needs one")),
    }
    let grouping = match (by, by_time, args.granularity) {
        (Some(_), Some(_), _) => {
            return Err(AGGREGATE.invalid_argument("group_by_time", "it does not go with `group_by`"));
        }
        (None, Some(_), None) => {
            return Err(AGGREGATE.invalid_argument(
                "granularity",
                "`group_by_time` needs it: minute, hour, day, week, month, quarter or year",
            ));
        }
        (_, None, Some(_)) => {
            return Err(AGGREGATE.invalid_argument("granularity", "it only goes with `group_by_time`"));
        }
        (None, None, None) => None,
        (Some(field), None, None) => Some(Grouping::Field(field)),
        (None, Some(field), Some(granularity)) => {
            let time_zone = args.time_zone.map_or_else(|| Ok(TimeZoneName::utc()), |zone| zone.parse());
            let time_zone =
                time_zone.map_err(|problem: String| AGGREGATE.invalid_argument("time_zone", problem))?;
            Some(Grouping::Time { field, granularity, time_zone })
        }
    };
    if zoned && !matches!(grouping, Some(Grouping::Time { .. })) {
        return Err(AGGREGATE.invalid_argument("time_zone", "it only goes with `group_by_time`"));
    }
    let query = AggregateQuery {
        stream: args.stream,
        connection: args.connection_id,
        metric: args.metric,
        field,
        grouping,
        limit: args.limit.unwrap_or(GROUPS),
        filter: args.filter.unwrap_or_default(),
        purpose: Purpose::Answer,
    };
    Ok(Request { source: args.source, query })
}

fn shown(query: &AggregateQuery, answer: &AggregateAnswer, text_most: usize) -> Answer {
    let (group_by, group_by_time, granularity, time_zone) = match query.grouping.clone() {
        None => (None, None, None, None),
        Some(Grouping::Field(field)) => (Some(field), None, None, None),
        Some(Grouping::Time { field, granularity, time_zone }) => {
            (None, Some(field), Some(granularity.word()), Some(time_zone.as_str().to_owned()))
        }
    };
    let clipped = |scalar: &Scalar| clipped(scalar, text_most);
    let group = |group: &Group| ShownGroup {
        key: group.key.as_ref().map(clipped),
        value: group.value.as_ref().map(clipped),
    };
    let (unavailable, more) = list_unavailable(&answer.unavailable);
    Answer {
        metric: query.metric.word(),
        stream: query.stream.to_string(),
        field: query.field.clone(),
        group_by,
        group_by_time,
        granularity,
        time_zone,
        figures: match &answer.groups {
            None => Figures::One { value: answer.value.as_ref().map(clipped) },
            Some(groups) => Figures::Many { groups: groups.iter().take(MAX_GROUPS).map(group).collect() },
        },
        other_count: answer.other_count,
        records: answer.filtered_count,
        unavailable,
        warnings: answer.notes.iter().cloned().chain(more).collect(),
        nothing: NoResults::default(),
    }
}

/// Whether no record was counted.
fn is_empty(answer: &AggregateAnswer) -> bool {
    let is_zero = |value: &Scalar| matches!(value, Scalar::Number(number) if number.as_u64() == Some(0));
    let counted_none = match (&answer.groups, answer.filtered_count) {
        (_, Some(count)) => count == 0,
        (Some(groups), None) => groups.is_empty(),
        (None, None) => answer.value.as_ref().is_none_or(is_zero),
    };
    counted_none && answer.unavailable.is_empty()
}

fn clipped(scalar: &Scalar, most: usize) -> Scalar {
    match scalar {
        Scalar::Text(text) => Scalar::Text(clip(text, most)),
        other => other.clone(),
    }
}
