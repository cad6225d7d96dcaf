//! `aggregate`: one value over the records of a stream, or one for each group of them.
//!
//! Texts of groups are truncated to what the budget leaves for each.

use fetchwell_core::fit::{Shaping, clip};
use fetchwell_core::handle::{ConnectionId, SourceName, StreamName};
use fetchwell_core::record::{RecordData, Scalar};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, Filter, Granularity, Group, Grouping, Metric, TimeZoneName,
};
use serde::{Deserialize, Serialize};

use super::answer::{NoRecords, NoResults, Payload, explanation_timeout};
use super::arguments::parse;
use super::error::{ShownUnavailable, SourceHints, ToolError, list_unavailable};
use super::tool::{Example, Tool, ToolCall, ToolSpec};

/// The tool `aggregate`.
pub(crate) struct Aggregate;

const AGGREGATE: ToolSpec = ToolSpec {
    name: "aggregate",
    title: "Count and sum up records",
    description: "One value over a stream, or one for each group of its records: with `group_by` the largest first, with \
        `group_by_time` the newest `limit` in the order of time. `other_count` counts the records of groups not shown, \
        `records` those that passed `filter`. `schema` tells which fields can be aggregated.",
    input_schema: include_str!("input.json"),
    aliases: &[],
    extra_choices: &[],
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
        call: r#"{"stream": "orders", "metric": "count", "group_by": "status,city"}"#,
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

/// Maximum number of groups.
const MAX_GROUPS: usize = 100;

/// Maximum length of a value or key that is a string, in bytes of JSON.
const MAX_TEXT_BYTES: usize = 300;

/// Size of an answer without the texts of its groups, in bytes.
const ANSWER_BYTES: usize = 4_000;

/// Size of a group without its texts, in bytes.
const GROUP_BYTES: usize = 48;

/// Arguments as they are sent.
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
pub(crate) struct Request {
    source: Option<SourceName>,
    query: AggregateQuery,
}

/// The answer of `aggregate`.
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
    values: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<ShownUnavailable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(flatten)]
    explanation: NoResults,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Values {
    One { value: Option<Scalar> },
    Many { groups: Vec<ShownGroup> },
}

#[derive(Debug, Serialize)]
struct ShownGroup {
    key: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    second_key: Option<Option<Scalar>>,
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
    let source = toolbox.named_source("aggregate", source.as_ref())?;
    let answer = source.aggregate(&query).await;
    let mut answer = answer.map_err(|error| ToolError::from_source(&source, error))?;
    answer.notes.splice(0..0, warnings);
    let mut explanation = NoResults::default();
    if is_empty(&answer) {
        let AggregateQuery { stream, connection, filter, .. } = &query;
        explanation = NoRecords { stream, connection: connection.as_ref(), filter, words: None }
            .explain(&source, explanation_timeout(toolbox.call_deadline(), started))
            .await;
    }
    let budget = toolbox.budget("aggregate");
    let groups = answer.groups.as_ref().map_or(1, Vec::len).clamp(1, MAX_GROUPS);
    let texts = if query.second_field.is_some() { 3 } else { 2 };
    let mut max_text =
        (budget.bytes.saturating_sub(ANSWER_BYTES) / groups).saturating_sub(GROUP_BYTES) / texts;
    max_text = max_text.min(MAX_TEXT_BYTES);
    loop {
        let shown = Answer { explanation: explanation.clone(), ..build(&query, &answer, max_text) };
        if let Some(payload) = Payload::if_within(&shown, budget)? {
            return Ok(payload.with_shaping(Shaping { items: groups, ..Shaping::default() }));
        }
        // The bytes are known to fit, but texts of rare characters have more tokens. With a small budget, an answer has no
        // explanation.
        explanation = NoResults::default();
        if max_text == 0 {
            return Payload::within(&shown, budget);
        }
        max_text /= 2;
    }
}

/// Validates arguments that depend on each other.
fn resolve(args: Args) -> Result<Request, ToolError> {
    let (field, by, by_time) = (args.field, args.group_by, args.group_by_time);
    let has_time_zone = args.time_zone.is_some();
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
    let by = by.map(|fields| group_fields(&fields)).transpose();
    let by = by.map_err(|problem| AGGREGATE.invalid_argument("group_by", problem))?;
    let (by, second_field) = match (by, &by_time) {
        (None, _) => (None, None),
        (Some((field, second)), None) => (Some(field), second),
        (Some((field, None)), Some(_)) => (None, Some(field)),
        (Some((_, Some(_))), Some(_)) => {
            return Err(AGGREGATE.invalid_argument("group_by", "with `group_by_time` it is one field"));
        }
    };
    let grouping = match (by, by_time, args.granularity) {
        (_, Some(_), None) => {
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
        (_, Some(field), Some(granularity)) => {
            let time_zone = args.time_zone.map_or_else(|| Ok(TimeZoneName::utc()), |zone| zone.parse());
            let time_zone =
                time_zone.map_err(|problem: String| AGGREGATE.invalid_argument("time_zone", problem))?;
            Some(Grouping::Time { field, granularity, time_zone })
        }
    };
    if has_time_zone && !matches!(grouping, Some(Grouping::Time { .. })) {
        return Err(AGGREGATE.invalid_argument("time_zone", "it only goes with `group_by_time`"));
    }
    let base = AggregateQuery::new(args.stream, args.metric);
    let query = AggregateQuery {
        connection: args.connection_id,
        field,
        grouping,
        second_field,
        limit: args.limit.unwrap_or(base.limit),
        filter: args.filter.unwrap_or_default(),
        ..base
    };
    Ok(Request { source: args.source, query })
}

/// Splits `group_by` into its fields: `a`, `a,b`, or `["a","b"]` for names with commas.
fn group_fields(text: &str) -> Result<(String, Option<String>), &'static str> {
    const PROBLEM: &str = "it is a field, or two with a comma between them";
    let fields: Vec<String> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(|_error| PROBLEM)?
    } else {
        text.split(',').map(|field| field.trim().to_owned()).collect()
    };
    let mut fields = fields.into_iter().filter(|field| !field.is_empty());
    match (fields.next(), fields.next(), fields.next()) {
        (Some(field), second, None) if second.as_ref() != Some(&field) => Ok((field, second)),
        _ => Err(PROBLEM),
    }
}

/// Writes the fields of `group_by`.
fn group_text(first: Option<&str>, second: Option<&str>) -> Option<String> {
    let fields: Vec<&str> = [first, second].into_iter().flatten().collect();
    let has_comma = fields.iter().any(|field| field.contains(','));
    match fields.as_slice() {
        [] => None,
        fields if has_comma => serde_json::to_string(fields).ok(),
        fields => Some(fields.join(",")),
    }
}

/// Builds the answer, with texts of at most `max_text` bytes.
fn build(query: &AggregateQuery, answer: &AggregateAnswer, max_text: usize) -> Answer {
    let second = query.second_field.as_deref();
    let (group_by, group_by_time, granularity, time_zone) = match query.grouping.clone() {
        None => (None, None, None, None),
        Some(Grouping::Field(field)) => (group_text(Some(&field), second), None, None, None),
        Some(Grouping::Time { field, granularity, time_zone }) => {
            let time_zone = time_zone.as_str().to_owned();
            (group_text(None, second), Some(field), Some(granularity.as_str()), Some(time_zone))
        }
    };
    let shown = |scalar: &Option<Scalar>| scalar.as_ref().map(|scalar| truncated(scalar, max_text));
    let group = |group: &Group| ShownGroup {
        key: shown(&group.key),
        second_key: second.map(|_| shown(&group.second_key)),
        value: shown(&group.value),
    };
    let (unavailable, more) = list_unavailable(&answer.unavailable);
    Answer {
        metric: query.metric.as_str(),
        stream: query.stream.to_string(),
        field: query.field.clone(),
        group_by,
        group_by_time,
        granularity,
        time_zone,
        values: match &answer.groups {
            None => Values::One { value: answer.value.as_ref().map(|scalar| truncated(scalar, max_text)) },
            Some(groups) => Values::Many { groups: groups.iter().take(MAX_GROUPS).map(group).collect() },
        },
        other_count: answer.other_count,
        records: answer.filtered_count,
        unavailable,
        warnings: answer.notes.iter().cloned().chain(more).collect(),
        explanation: NoResults::default(),
    }
}

/// Returns true if no record was counted.
fn is_empty(answer: &AggregateAnswer) -> bool {
    let is_zero = |value: &Scalar| matches!(value, Scalar::Number(number) if number.as_u64() == Some(0));
    let counted_none = match (&answer.groups, answer.filtered_count) {
        (_, Some(count)) => count == 0,
        (Some(groups), None) => groups.is_empty(),
        (None, None) => answer.value.as_ref().is_none_or(is_zero),
    };
    counted_none && answer.unavailable.is_empty()
}

/// Returns a value with its text truncated.
fn truncated(scalar: &Scalar, max: usize) -> Scalar {
    match scalar {
        Scalar::Text(text) => Scalar::Text(clip(text, max)),
        other => other.clone(),
    }
}
