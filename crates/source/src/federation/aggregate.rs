//! Aggregates over a stream that several sources have.
//!
//! Counts and sums of the sources are added, means by their sums and counts, and the minimum and maximum are those of
//! all. Numbers of distinct values cannot be added: they are counted if every source returns all of its values, and refused otherwise.

use std::sync::Arc;

use fetchwell_callers::CallContext;
use fetchwell_core::record::Scalar;
use futures_util::future::join_all;

use super::failures::Failures;
use super::groups::{GroupKey, GroupValues, Groups, MissingGroup, accumulator, add_value, records};
use super::guarded::GuardedSource;
use super::members::{Members, from_source};
use crate::{
    AggregateAnswer, AggregateQuery, Condition, Group, Grouping, Metric, QueryFault, Source, SourceError,
    Test,
};

/// Maximum number of groups that a source returns.
const MAX_GROUPS: usize = 100;

/// Maximum number of single groups that are read for one answer.
const MAX_QUESTIONS: usize = 64;

/// Source that has the stream, with its answer.
type SourceAnswer<'a> = (&'a Arc<GuardedSource>, AggregateAnswer);

pub(super) async fn aggregate(
    members: &Members,
    context: &CallContext,
    query: &AggregateQuery,
) -> Result<AggregateAnswer, SourceError> {
    if let Some(connection) = &query.connection {
        let source = members.source_of(context, connection).await?;
        return source.aggregate(context, query).await.map_err(|error| from_source(source, error));
    }
    members.routes.refresh();
    let sources: Vec<&Arc<GuardedSource>> = members.with_stream(&query.stream).collect();
    let (answers, failed) = read_all(context, &sources, query).await;
    let mut answer = match <[SourceAnswer<'_>; 1]>::try_from(answers) {
        Ok([(_, only)]) => only,
        Err(none) if none.is_empty() => {
            return Err(members.no_answer_error(failed, "no source answered", Some(&query.stream)));
        }
        Err(several) => combine(context, query, several).await?,
    };
    answer.unavailable.extend(failed.into_unavailable());
    answer.notes.extend(members.counted_twice());
    Ok(answer)
}

async fn read_all<'a>(
    context: &CallContext,
    sources: &[&'a Arc<GuardedSource>],
    query: &AggregateQuery,
) -> (Vec<SourceAnswer<'a>>, Failures) {
    let reads = sources.iter().map(|source| source.aggregate(context, query));
    let (mut answers, mut failed) = (Vec::new(), Failures::default());
    for (source, read) in sources.iter().zip(join_all(reads).await) {
        match read {
            Ok(answer) => answers.push((*source, answer)),
            Err(error) => failed.add(source.name(), error),
        }
    }
    (answers, failed)
}

async fn combine(
    context: &CallContext,
    query: &AggregateQuery,
    answers: Vec<SourceAnswer<'_>>,
) -> Result<AggregateAnswer, SourceError> {
    let mut whole = AggregateAnswer {
        filtered_count: answers.iter().map(|(_, answer)| answer.filtered_count).sum(),
        ..AggregateAnswer::default()
    };
    for (source, answer) in &answers {
        whole.unavailable.extend(answer.unavailable.iter().cloned());
        whole.notes.extend(answer.notes.iter().map(|note| format!("source `{}`: {note}", source.name())));
    }
    match (query.metric, &query.grouping) {
        (Metric::CountDistinct, None) => whole.value = Some(distinct(context, query, &answers).await?),
        (Metric::CountDistinct, Some(_)) => return Err(does_not_add_up("`count_distinct` in groups")),
        (metric, None) => {
            let mut accumulator = accumulator(metric);
            for (_, answer) in answers {
                add_value(&mut accumulator, answer.value, answer.mean.as_ref());
            }
            (whole.value, whole.mean) = (accumulator.value(), accumulator.mean());
        }
        (_, Some(Grouping::Time { .. })) => {
            // Groups that a source leaves out are older than those it returns, so the newest groups are complete.
            let mut groups = collect_groups(query, &answers, GroupKey::from_time);
            if query.second_field.is_some() && groups.remove_cut_periods() {
                whole.notes.push("Only the newest periods are shown, because older ones have more groups than a source returns; set `connection_id` to see one account.".to_owned());
            }
            let (newest, rest) = groups.by_time(query.limit);
            whole.other_count = others(query, &whole, &newest, groups.are_whole() && rest.is_empty());
            whole.groups = Some(newest);
        }
        (_, Some(Grouping::Field(field))) => by_field(context, query, field, &answers, &mut whole).await?,
    }
    Ok(whole)
}

/// Returns the number of records in groups that are not returned, if it is known.
fn others(query: &AggregateQuery, whole: &AggregateAnswer, groups: &[Group], is_all: bool) -> Option<u64> {
    match query.metric {
        Metric::Count => whole.filtered_count?.checked_sub(records(groups)?),
        Metric::Sum | Metric::Avg | Metric::Min | Metric::Max | Metric::CountDistinct => is_all.then_some(0),
    }
}

/// Computes the largest groups of a field, each of them complete.
async fn by_field(
    context: &CallContext,
    query: &AggregateQuery,
    field: &str,
    answers: &[SourceAnswer<'_>],
    whole: &mut AggregateAnswer,
) -> Result<(), SourceError> {
    let sources: Vec<&Arc<GuardedSource>> = answers.iter().map(|(source, _)| *source).collect();
    let mut groups = collect_groups(query, answers, GroupKey::from_value);
    if !groups.are_whole() {
        groups =
            read_groups(context, &sources, &AggregateQuery { limit: MAX_GROUPS, ..query.clone() }).await?;
    }
    let (shown, missing) = groups.missing(query.limit, MAX_QUESTIONS);
    let asked = missing.iter().map(|missing| {
        let mut one = AggregateQuery { grouping: None, second_field: None, ..query.clone() };
        let GroupValues { first, second } = missing.values.clone();
        let conditions = [(Some(field), first), (query.second_field.as_deref(), second)];
        one.filter.0.extend(conditions.into_iter().filter_map(|(field, value)| {
            Some(Condition { field: field?.to_owned(), test: Test::Equal(value?) })
        }));
        let source = sources.get(missing.source);
        async move {
            match source {
                Some(source) => {
                    source.aggregate(context, &one).await.map_err(|error| from_source(source, error))
                }
                None => Ok(AggregateAnswer::default()),
            }
        }
    });
    let answers = join_all(asked).await;
    let mut left_out = 0;
    for (missing, answer) in missing.into_iter().zip(answers) {
        match answer {
            Ok(answer) => {
                let MissingGroup { source, keys, values } = missing;
                groups.add_group(source, keys, values, answer.value, answer.mean.as_ref());
            }
            Err(error) if error.is_transient() => return Err(error),
            // The source cannot filter by the group's value, so the total of the group is unknown.
            Err(_) => left_out += usize::from(groups.remove(&missing.keys)),
        }
    }
    if left_out > 0 && left_out == shown {
        return Err(does_not_add_up(&format!("`{}` by `{field}`", query.metric.as_str())));
    }
    if left_out > 0 {
        whole.notes.push(format!("{left_out} groups are left out: a source cannot be asked for their part."));
    }
    let (largest, rest) = groups.by_size(shown - left_out);
    whole.other_count = others(query, whole, &largest, groups.are_whole() && rest.is_empty());
    if groups.may_miss_a_group(&largest) {
        whole.notes.push(format!(
            "Each source returns its {MAX_GROUPS} largest groups. These values are exact, but a group that is large only over all sources may be missing; set `connection_id` to see one account."
        ));
    }
    whole.groups = Some(largest);
    Ok(())
}

/// Reads the groups of every source.
async fn read_groups(
    context: &CallContext,
    sources: &[&Arc<GuardedSource>],
    query: &AggregateQuery,
) -> Result<Groups, SourceError> {
    let (answers, failed) = read_all(context, sources, query).await;
    if !failed.is_empty() {
        return Err(failed.into_error("a source stopped answering"));
    }
    Ok(collect_groups(query, &answers, GroupKey::from_value))
}

fn collect_groups(
    query: &AggregateQuery,
    answers: &[SourceAnswer<'_>],
    key: impl Fn(Option<&Scalar>) -> GroupKey,
) -> Groups {
    let mut groups = Groups::new(query.metric);
    for (number, (_, answer)) in answers.iter().enumerate() {
        groups.add(number, answer, query, &key);
    }
    groups
}

/// Returns the number of distinct values in all sources together.
async fn distinct(
    context: &CallContext,
    query: &AggregateQuery,
    answers: &[SourceAnswer<'_>],
) -> Result<Scalar, SourceError> {
    let field = query.field.clone().unwrap_or_default();
    let sources: Vec<&Arc<GuardedSource>> = answers.iter().map(|(source, _)| *source).collect();
    let listed = AggregateQuery {
        metric: Metric::Count,
        field: None,
        grouping: Some(Grouping::Field(field.clone())),
        second_field: None,
        limit: MAX_GROUPS,
        ..query.clone()
    };
    let groups = read_groups(context, &sources, &listed).await?;
    if !groups.are_whole() {
        return Err(does_not_add_up(&format!("`count_distinct` of `{field}`")));
    }
    Ok(Scalar::Number(groups.distinct().into()))
}

fn does_not_add_up(what: &str) -> SourceError {
    SourceError::InvalidQuery {
        fault: QueryFault::InvalidAggregate,
        problem: format!(
            "{what} does not add up: the stream is in several sources, which may share values, and a source returns at most {MAX_GROUPS} of them"
        ),
        hint: "Set `connection_id` to ask one account, or ask for `count` with `group_by`.".to_owned(),
    }
}
