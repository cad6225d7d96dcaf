//! `GET /v1/streams/{stream}/aggregate`: one aggregate over the records of a stream, or one per group.

use fetchwell_core::handle::StreamName;
use fetchwell_core::record::Scalar;
use fetchwell_source::{AggregateQuery, Granularity, Group, Grouping, Metric, Purpose, TimeZoneName};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::RequestError;
use crate::v1::envelope::{Answer, Call, Links, Meta};
use crate::v1::operation::Operation;
use crate::v1::parameters::{Parameters, exclusive};
use crate::v1::table::{
    CONNECTION, CONNECTION_ALIAS, DEFAULT_LIMIT, FILTER, MAX_LIMIT, Parameter, ParameterType,
};

const METRICS: &[&str] = &["count", "sum", "avg", "min", "max", "count_distinct"];
const GRANULARITIES: &[&str] = &["minute", "hour", "day", "week", "month", "quarter", "year"];

pub(crate) const OPERATION: Operation = Operation {
    path: "/v1/streams/{stream}/aggregate",
    id: "aggregateRecords",
    summary: "An aggregate over the records of a stream, over every connection that has it",
    parameters: &[
        Parameter {
            name: "metric",
            takes: ParameterType::NeededChoice(METRICS),
            about: "The metric to compute.",
        },
        Parameter {
            name: "field",
            takes: ParameterType::Text,
            about: "The field to aggregate; required for every metric except `count`.",
        },
        Parameter {
            name: "group_by",
            takes: ParameterType::Text,
            about: "One value for each value of this field; the largest groups first.",
        },
        Parameter {
            name: "group_by_time",
            takes: ParameterType::Text,
            about: "One value for each period of the time in this field; needs `granularity`.",
        },
        Parameter {
            name: "granularity",
            takes: ParameterType::Choice(GRANULARITIES),
            about: "The length of a period; needs `group_by_time`.",
        },
        Parameter {
            name: "time_zone",
            takes: ParameterType::Text,
            about: "The IANA name of the time zone of periods. Default: UTC. Needs `group_by_time`.",
        },
        Parameter {
            name: "limit",
            takes: ParameterType::Whole { min: 1, max: Some(MAX_LIMIT), default: Some(DEFAULT_LIMIT) },
            about: "Maximum number of groups.",
        },
        FILTER,
        CONNECTION,
        CONNECTION_ALIAS,
    ],
    statuses: &[400, 404],
    answer: |generator| generator.subschema_for::<Aggregation>(),
};

/// An aggregate, or one per group.
#[derive(Debug, Serialize, JsonSchema)]
struct Aggregation {
    #[schemars(extend("const" = "aggregation"))]
    object: &'static str,
    stream: String,
    #[schemars(extend("enum" = METRICS))]
    metric: &'static str,
    field: Option<String>,
    /// Aggregate over all records without grouping; null if no record has a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Figure>")]
    value: Option<Nullable>,
    /// Aggregate of each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<GroupRow>>,
    filtered_record_count: Option<u64>,
    group_by: Option<String>,
    group_by_time: Option<String>,
    granularity: Option<&'static str>,
    time_zone: Option<String>,
    /// Requested number of groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<usize>,
    /// Number of records in groups beyond the limit, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_count: Option<u64>,
    approximate: bool,
    links: Links,
    meta: Meta,
}

/// Scalar or null.
type Nullable = Option<Scalar>;

/// JSON form of a [`Scalar`].
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes the JSON of a Scalar and is never made")]
enum Figure {
    Bool(bool),
    Number(f64),
    Text(String),
}

#[derive(Debug, Serialize, JsonSchema)]
struct GroupRow {
    /// Value of the field or start of the time group; null for records without one.
    #[schemars(with = "Option<Figure>")]
    key: Nullable,
    /// Result of the metric `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Figure>")]
    count: Option<Nullable>,
    /// Result of any other metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Figure>")]
    value: Option<Nullable>,
}

pub(crate) async fn answer(call: &mut Call<'_>, stream: StreamName) -> Result<Answer, RequestError> {
    let query = parse_query(&mut call.parameters, stream)?;
    let found = call.source.aggregate(&query).await?;
    call.warn_unavailable(&found.unavailable);
    let counts = query.metric == Metric::Count;
    let (group_by, by_time) = match query.grouping {
        None => (None, None),
        Some(Grouping::Field(field)) => (Some(field), None),
        Some(Grouping::Time { field, granularity, time_zone }) => {
            (None, Some((field, granularity, time_zone)))
        }
    };
    let grouped = group_by.is_some() || by_time.is_some();
    let row = |Group { key, value, .. }: Group| {
        let (count, value) = if counts { (Some(value), None) } else { (None, Some(value)) };
        GroupRow { key, count, value }
    };
    let items = found.groups.as_ref().filter(|_| grouped).map_or(1, Vec::len);
    let answer = Answer::new(&Aggregation {
        object: "aggregation",
        stream: query.stream.into(),
        metric: query.metric.as_str(),
        field: query.field,
        value: (!grouped).then_some(found.value),
        groups: grouped.then(|| found.groups.unwrap_or_default().into_iter().map(row).collect()),
        filtered_record_count: found.filtered_count,
        group_by,
        granularity: by_time.as_ref().map(|(_, granularity, _)| granularity.as_str()),
        time_zone: by_time.as_ref().map(|(_, _, zone)| zone.as_str().to_owned()),
        group_by_time: by_time.map(|(field, ..)| field),
        limit: grouped.then_some(query.limit),
        other_count: found.other_count.filter(|_| grouped),
        approximate: false,
        links: call.links(),
        meta: call.counted(None, found.notes),
    })?;
    Ok(answer.with_items(items))
}

fn parse_query(sent: &mut Parameters, stream: StreamName) -> Result<AggregateQuery, RequestError> {
    let connection = sent.connection()?;
    let word = sent.needed("metric")?;
    let metric = Metric::ALL.into_iter().find(|metric| metric.as_str() == word);
    let metric = metric.ok_or_else(|| RequestError::request(format!("there is no metric {word}")))?;
    let field = sent.text("field").filter(|field| !field.is_empty()).map(str::to_owned);
    if field.is_none() && metric != Metric::Count {
        return Err(RequestError::request(format!("field is required for {word}")).about("field"));
    }
    let limit = sent.whole("limit", 1, MAX_LIMIT);
    let limit = limit.map_err(|problem| RequestError::request(problem).about("limit"))?;
    Ok(AggregateQuery {
        stream,
        connection,
        metric,
        field,
        grouping: grouping(sent)?,
        second_field: None,
        limit: limit.unwrap_or(DEFAULT_LIMIT),
        filter: sent.filter()?,
        purpose: Purpose::Answer,
    })
}

fn grouping(sent: &Parameters) -> Result<Option<Grouping>, RequestError> {
    let refused = |param: &str, problem: String| RequestError::request(problem).about(param);
    let field = match (sent.text("group_by"), sent.text("group_by_time")) {
        (Some(_), Some(_)) => return Err(exclusive("group_by", "group_by_time")),
        (None, Some(field)) => field,
        (by_value, None) => {
            for name in ["granularity", "time_zone"] {
                if sent.text(name).is_some() {
                    return Err(refused(name, format!("{name} goes with group_by_time")));
                }
            }
            return Ok(by_value.map(|field| Grouping::Field(field.to_owned())));
        }
    };
    let Some(word) = sent.text("granularity") else {
        let problem = "granularity is required when group_by_time is present".to_owned();
        return Err(refused("granularity", problem));
    };
    let granularity = match word {
        "minute" => Granularity::Minute,
        "hour" => Granularity::Hour,
        "day" => Granularity::Day,
        "week" => Granularity::Week,
        "month" => Granularity::Month,
        "quarter" => Granularity::Quarter,
        _ => Granularity::Year,
    };
    let time_zone = match sent.text("time_zone") {
        None => TimeZoneName::utc(),
        Some(name) => name.parse().map_err(|problem: String| refused("time_zone", problem))?,
    };
    Ok(Some(Grouping::Time { field: field.to_owned(), granularity, time_zone }))
}
