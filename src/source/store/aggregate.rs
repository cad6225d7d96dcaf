//! Figures over a stream.
//!
//! Each is one pass over its records that reads only the fields it needs.

use std::collections::HashMap;

use rusqlite::Connection;

use super::database::{Database, ReadError};
use super::group_key::GroupKey;
use super::interrupt::Interrupt;
use super::pick::Picker;
use super::predicate::{Predicate, check, unfit};
use super::streams::{StreamRow, stream_rows};
use super::time_bucket::TimeBuckets;
use crate::record::{Capability, Scalar, StreamDetail};
use crate::source::figure::{DISTINCT_MOST, Figure};
use crate::source::{AggregateAnswer, AggregateQuery, Group, Grouping, Metric, QueryFault, SourceError};

/// The most groups that are told apart while counting. Each takes memory until the end.
const GROUPS_MOST: usize = 200_000;

/// The most bytes that the keys and figures of all groups may hold together.
const HELD_MOST: usize = 128 * 1024 * 1024;

pub(super) fn aggregate(
    database: &Database,
    query: &AggregateQuery,
    interrupt: &Interrupt,
) -> Result<AggregateAnswer, SourceError> {
    let streams = stream_rows(database, &query.stream, query.connection.as_ref())?;
    for stream in &streams {
        check(&query.filter, &stream.detail)?;
        check_declared(query, &stream.detail)?;
    }
    if let (Metric::Count, None, true) = (query.metric, &query.grouping, query.filter.is_empty()) {
        let count: u64 = streams.iter().filter_map(|stream| stream.detail.record_count).sum();
        let value = Some(Scalar::Number(count.into()));
        return Ok(AggregateAnswer { value, filtered_count: Some(count), ..AggregateAnswer::default() });
    }
    let mut pass = Pass::new(query)?;
    database.ask(|sqlite| {
        for stream in &streams {
            pass.over(sqlite, stream, interrupt)?;
        }
        Ok(())
    })?;
    pass.answer()
}

/// Refuses figures that a stream does not give.
fn check_declared(query: &AggregateQuery, stream: &StreamDetail) -> Result<(), SourceError> {
    let mut asked = Vec::new();
    match (query.metric, query.field.as_deref()) {
        (Metric::Count, None) => {}
        (Metric::Count, Some(field)) => {
            return Err(refused(
                format!("`count` counts records and takes no field, and `{field}` was given"),
                "Leave `field` out, or use `count_distinct`.",
            ));
        }
        (metric, None) => {
            let problem = format!("`{}` needs a field", metric.word());
            return Err(refused(problem, "Set `field`."));
        }
        (Metric::Sum, Some(field)) => asked.push((field, Capability::Sum, "summed up")),
        (Metric::Min, Some(field)) => asked.push((field, Capability::Min, "asked for its least value")),
        (Metric::Max, Some(field)) => asked.push((field, Capability::Max, "asked for its greatest value")),
        (Metric::CountDistinct, Some(field)) => {
            asked.push((field, Capability::CountDistinct, "counted by different values"));
        }
    }
    match &query.grouping {
        None => {}
        Some(Grouping::Field(field)) => asked.push((field, Capability::GroupBy, "grouped by")),
        Some(Grouping::Time { field, .. }) => asked.push((field, Capability::GroupByTime, "grouped by time")),
    }
    for (field, capability, what) in asked {
        if let Some((problem, hint)) = unfit(stream, field, capability, what) {
            return Err(refused(problem, &hint));
        }
    }
    Ok(())
}

struct Pass<'a> {
    query: &'a AggregateQuery,
    picker: Picker,
    predicate: Predicate,
    measured: Option<usize>,
    grouped: Option<(usize, Option<TimeBuckets>)>,
    whole: Figure,
    groups: HashMap<Option<GroupKey>, (u64, Figure)>,
    /// The bytes that the groups hold.
    held: usize,
    matching: u64,
}

impl<'a> Pass<'a> {
    fn new(query: &'a AggregateQuery) -> Result<Self, SourceError> {
        let mut picker = Picker::default();
        let predicate = Predicate::new(&query.filter, &mut picker);
        let measured = query.field.as_deref().map(|field| picker.want(field));
        let grouped = match &query.grouping {
            None => None,
            Some(Grouping::Field(field)) => Some((picker.want(field), None)),
            Some(Grouping::Time { field, granularity, time_zone }) => {
                Some((picker.want(field), Some(TimeBuckets::new(*granularity, time_zone)?)))
            }
        };
        let (whole, groups) = (Figure::new(query.metric), HashMap::new());
        Ok(Self { query, picker, predicate, measured, grouped, whole, groups, held: 0, matching: 0 })
    }

    fn over(
        &mut self,
        sqlite: &Connection,
        stream: &StreamRow,
        interrupt: &Interrupt,
    ) -> Result<(), ReadError> {
        let mut statement =
            sqlite.prepare_cached("SELECT data FROM records WHERE stream = ?1 AND data IS NOT NULL")?;
        let mut rows = statement.query([stream.row])?;
        let mut picked = Vec::new();
        while let Some(row) = rows.next()? {
            interrupt.check()?;
            self.picker.pick(row.get_ref(0)?.as_str().unwrap_or_default(), &mut picked);
            if !self.predicate.passes(&picked) {
                continue;
            }
            self.matching += 1;
            let at = |at: usize| picked.get(at).and_then(Option::as_ref);
            let value = self.measured.and_then(at);
            let Some((by, buckets)) = &mut self.grouped else {
                self.whole.add(value);
                continue;
            };
            let key = match (at(*by), buckets) {
                (None, _) => None,
                (Some(value), None) => GroupKey::of(value),
                (Some(value), Some(buckets)) => buckets.of(value).map(GroupKey::Time),
            };
            if !self.groups.contains_key(&key) {
                if self.groups.len() >= GROUPS_MOST {
                    return Err(too_many(GROUPS_MOST).into());
                }
                self.held += key.as_ref().map_or(0, GroupKey::held);
            }
            let metric = self.query.metric;
            let (records, figure) = self.groups.entry(key).or_insert_with(|| (0, Figure::new(metric)));
            *records += 1;
            let before = figure.held();
            figure.add(value);
            self.held = self.held + figure.held() - before;
            if figure.is_overfull() {
                return Err(too_many(DISTINCT_MOST).into());
            }
            if self.held > HELD_MOST {
                return Err(too_much().into());
            }
        }
        if self.whole.is_overfull() { Err(too_many(DISTINCT_MOST).into()) } else { Ok(()) }
    }

    fn answer(self) -> Result<AggregateAnswer, SourceError> {
        let figures = || self.groups.values().map(|(_, figure)| figure).chain([&self.whole]);
        let field = self.query.field.as_deref().unwrap_or_default();
        if figures().any(Figure::is_too_large) {
            return Err(too_large(field));
        }
        let notes = passed_over(field, figures().map(Figure::passed_over).sum());
        let answer = AggregateAnswer {
            filtered_count: Some(self.matching),
            notes: notes.into_iter().collect(),
            ..AggregateAnswer::default()
        };
        let Some((_, buckets)) = &self.grouped else {
            return Ok(AggregateAnswer { value: self.whole.value(), ..answer });
        };
        let by_time = buckets.is_some();
        let mut groups: Vec<(Option<GroupKey>, (u64, Figure))> = self.groups.into_iter().collect();
        groups.sort_unstable_by(|(a_key, (_, a)), (b_key, (_, b))| match by_time {
            // The newest first, to keep these; a group without a time goes first of all.
            true => b_key.cmp(a_key),
            false => b.order(a).then_with(|| a_key.cmp(b_key)),
        });
        let rest = groups.split_off(self.query.limit.min(groups.len()));
        if by_time {
            groups.reverse();
        }
        let group = |(key, (_, figure)): (Option<GroupKey>, (u64, Figure))| Group {
            key: key.and_then(GroupKey::into_scalar),
            value: figure.value(),
        };
        Ok(AggregateAnswer {
            groups: Some(groups.into_iter().map(group).collect()),
            other_count: Some(rest.iter().map(|(_, (records, _))| records).sum()),
            ..answer
        })
    }
}

fn passed_over(field: &str, texts: u64) -> Option<String> {
    match texts {
        0 => None,
        1 => Some(format!("1 text in `{field}` that is no number was passed over.")),
        more => Some(format!("{more} texts in `{field}` that are no number were passed over.")),
    }
}

fn refused(problem: String, hint: &str) -> SourceError {
    SourceError::CorrectQuery { fault: QueryFault::InvalidAggregate, problem, hint: hint.to_owned() }
}

fn too_many(most: usize) -> SourceError {
    refused(
        format!("there are more than {most} different values to tell apart"),
        "Narrow it with `filter`, or group by time.",
    )
}

fn too_much() -> SourceError {
    refused(
        format!("the values to tell apart take more than {HELD_MOST} bytes"),
        "Narrow it with `filter`, or group by a field of shorter values.",
    )
}

fn too_large(field: &str) -> SourceError {
    refused(
        format!("the sum of `{field}` is larger than a number can be"),
        "Narrow it with `filter`, or ask for `max`.",
    )
}
