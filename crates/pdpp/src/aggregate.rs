//! Aggregates of a stream. Groups are ordered and limited here.
//!
//! The reference server applies `limit` to the groups of each connection before it adds them up, returns groups by
//! time oldest first, and omits `other_count` in both cases. So the maximum number of groups is always requested,
//! then ordered and limited here.

use std::cmp::Reverse;

use fetchwell_core::record::{Scalar, ordered};
use fetchwell_source::accumulator::Accumulator;
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, Granularity, Group, Grouping, Metric, QueryFault, SourceError,
};

use super::client::Client;
use super::params::Params;
use super::record_path::stream_path;
use super::transport::parsed;
use super::{refused, wire};

/// Maximum number of groups that a record server returns, by its contract.
const MAX_GROUPS: usize = 100;

/// Returns an aggregate, or at most `query.limit` groups with the number of records in all others.
///
/// # Errors
///
/// `invalid_argument` when the server gives only the oldest of many time groups, and the errors of the record server.
pub(crate) async fn aggregate(
    pdpp: &Client<'_>,
    query: &AggregateQuery,
) -> Result<AggregateAnswer, SourceError> {
    let mut answer = read(pdpp, query).await?;
    let Some(grouping) = &query.grouping else { return Ok(answer) };
    let groups = answer.groups.take().unwrap_or_default();
    let mut counts = None;
    let is_whole = match answer.other_count {
        Some(others) => others == 0,
        None if groups.len() < MAX_GROUPS => true,
        None => {
            let counts = counts.insert(Counts::read(pdpp, query, &answer, &groups).await?);
            counts.all.is_some() && counts.all == counts.sum(&groups)
        }
    };
    let (shown, rest) = match grouping {
        Grouping::Field(_) => largest(groups, query),
        Grouping::Time { granularity, .. } if !is_whole && answer.other_count.is_none() => {
            return Err(only_the_oldest(*granularity));
        }
        Grouping::Time { .. } => newest(groups, query.limit),
    };
    answer.other_count = if is_whole && rest.is_empty() {
        Some(0)
    } else {
        let counts = match counts {
            Some(counts) => counts,
            None => Counts::read(pdpp, query, &answer, &[shown.as_slice(), &rest].concat()).await?,
        };
        let others = counts.all.zip(counts.sum(&shown)).and_then(|(all, shown)| all.checked_sub(shown));
        others.or_else(|| counts.sum(&rest)?.checked_add(answer.other_count?))
    };
    if !is_whole && query.connection.is_none() {
        answer.notes.push(format!(
            "The record server returns at most {MAX_GROUPS} groups of each connection. A connection has more, so values over \
             several connections may lack a part; set `connection_id` for exact ones."
        ));
    }
    answer.groups = Some(shown);
    Ok(answer)
}

/// Number of records in each group, and in all.
struct Counts {
    groups: Vec<Group>,
    all: Option<u64>,
}

impl Counts {
    /// Takes the counts from an answer that has them. Sums, minima and maxima have no number of records, so it is
    /// requested.
    async fn read(
        pdpp: &Client<'_>,
        query: &AggregateQuery,
        answer: &AggregateAnswer,
        groups: &[Group],
    ) -> Result<Self, SourceError> {
        if query.metric == Metric::Count {
            return Ok(Self { groups: groups.to_vec(), all: answer.filtered_count });
        }
        let counts = AggregateQuery { metric: Metric::Count, field: None, ..query.clone() };
        let counts = read(pdpp, &counts).await?;
        Ok(Self { groups: counts.groups.unwrap_or_default(), all: counts.filtered_count })
    }

    /// Returns the number of records in these groups, or `None` if one of them has no count.
    fn sum(&self, groups: &[Group]) -> Option<u64> {
        let count = |group: &Group| {
            let known = self.groups.iter().find(|known| known.key == group.key)?;
            match &known.value {
                Some(Scalar::Number(number)) => number.as_u64(),
                Some(Scalar::Text(_) | Scalar::Bool(_)) | None => None,
            }
        };
        groups.iter().map(count).sum()
    }
}

/// Requests an aggregate, with as many groups as the server returns.
async fn read(pdpp: &Client<'_>, query: &AggregateQuery) -> Result<AggregateAnswer, SourceError> {
    let params = Params::default().and("metric", query.metric.as_str()).each("field", &query.field);
    let params = match &query.grouping {
        None => params,
        Some(Grouping::Field(field)) => params.and("group_by", field).and("limit", &MAX_GROUPS),
        Some(Grouping::Time { field, granularity, time_zone }) => params
            .and("group_by_time", field)
            .and("granularity", granularity.as_str())
            .and("time_zone", time_zone.as_str())
            .and("limit", &MAX_GROUPS),
    };
    let params = params.filter(&query.filter).connection(query.connection.as_ref());
    let reply = pdpp.requests.get(&stream_path(&query.stream, "aggregate"), &params).await;
    let (body, metric) = (reply.map_err(refused::of_question)?.body, query.metric);
    parsed(body, move |body| wire::aggregate(body, metric)).await
}

/// Splits groups into the largest and the others. Groups of equal size keep the server's order.
fn largest(groups: Vec<Group>, query: &AggregateQuery) -> (Vec<Group>, Vec<Group>) {
    let metric = match query.metric {
        Metric::Min | Metric::Max => query.metric,
        Metric::Count | Metric::Sum | Metric::Avg | Metric::CountDistinct => Metric::Sum,
    };
    let mut accumulators: Vec<(Accumulator, Group)> = groups
        .into_iter()
        .map(|group| {
            let mut accumulator = Accumulator::new(metric);
            accumulator.add(group.value.clone().map(Into::into).as_ref());
            (accumulator, group)
        })
        .collect();
    accumulators.sort_by(|(a, _), (b, _)| b.order(a));
    let mut groups: Vec<Group> = accumulators.into_iter().map(|(_, group)| group).collect();
    let rest = groups.split_off(query.limit.min(groups.len()));
    (groups, rest)
}

/// Splits groups by time into the newest, in chronological order, and the others.
fn newest(mut groups: Vec<Group>, limit: usize) -> (Vec<Group>, Vec<Group>) {
    groups.sort_by_cached_key(|group| {
        Reverse(match &group.key {
            Some(Scalar::Text(text)) => Some(ordered(text)),
            Some(Scalar::Number(_) | Scalar::Bool(_)) | None => None,
        })
    });
    let rest = groups.split_off(limit.min(groups.len()));
    groups.reverse();
    (groups, rest)
}

/// Returns the error for groups of which the server returns only the oldest.
fn only_the_oldest(granularity: Granularity) -> SourceError {
    let coarser = match granularity {
        Granularity::Minute => Some("hour"),
        Granularity::Hour => Some("day"),
        Granularity::Day => Some("week"),
        Granularity::Week => Some("month"),
        Granularity::Month => Some("quarter"),
        Granularity::Quarter => Some("year"),
        Granularity::Year => None,
    };
    SourceError::InvalidQuery {
        fault: QueryFault::InvalidArgument,
        problem: format!(
            "there are more than {MAX_GROUPS} groups by {}, and this record server gives only the oldest of them",
            granularity.as_str()
        ),
        hint: match coarser {
            Some(coarser) => format!("Set `granularity` to \"{coarser}\" or longer."),
            None => "Count the records of one year with `query_records` and `count`.".to_owned(),
        },
    }
}
