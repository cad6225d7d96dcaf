//! Aggregates over a stream: count, sum, minimum, maximum and distinct values, in total or by group.
//!
//! Each query is one pass over the records of a stream and reads only the fields that it needs. Groups and distinct
//! values are bounded in number and in bytes.
//!
//! * `group_key`: keys of groups
//! * `time_bucket`: groups by hour, day, week or month

mod group_key;
mod time_bucket;

use std::collections::HashMap;

use rusqlite::Connection;

use self::group_key::GroupKey;
use self::time_bucket::TimeBuckets;
use super::field_reader::FieldReader;
use super::interrupt::Interrupt;
use super::predicate::{Predicate, check, missing_capability};
use super::streams::{StreamRow, stream_rows};
use crate::record::{Capability, Scalar, StreamDetail};
use crate::source::accumulator::{Accumulator, MAX_DISTINCT};
use crate::source::store::database::{Database, ReadError};
use crate::source::{AggregateAnswer, AggregateQuery, Group, Grouping, Metric, QueryFault, SourceError};

/// Maximum number of groups. All of them are in memory until the pass ends.
const MAX_GROUPS: usize = 200_000;

/// Maximum number of bytes that the keys and aggregates of all groups hold together.
const MAX_GROUP_BYTES: usize = 128 * 1024 * 1024;

pub(in crate::source::store) fn aggregate(
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

/// Refuses a metric or grouping that the stream does not declare for its field.
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
            let problem = format!("`{}` needs a field", metric.as_str());
            return Err(refused(problem, "Set `field`."));
        }
        (Metric::Sum, Some(field)) => asked.push((field, Capability::Sum, "summed up")),
        (Metric::Avg, Some(field)) => asked.push((field, Capability::Sum, "averaged")),
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
        if let Some((problem, hint)) = missing_capability(stream, field, capability, what) {
            return Err(refused(problem, &hint));
        }
    }
    Ok(())
}

struct Pass<'a> {
    query: &'a AggregateQuery,
    reader: FieldReader,
    predicate: Predicate,
    measured: Option<usize>,
    grouped: Option<(usize, Option<TimeBuckets>)>,
    whole: Accumulator,
    groups: HashMap<Option<GroupKey>, (u64, Accumulator)>,
    /// Bytes of text that the groups hold.
    held: usize,
    matching: u64,
}

impl<'a> Pass<'a> {
    fn new(query: &'a AggregateQuery) -> Result<Self, SourceError> {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&query.filter, &mut reader);
        let measured = query.field.as_deref().map(|field| reader.select(field));
        let grouped = match &query.grouping {
            None => None,
            Some(Grouping::Field(field)) => Some((reader.select(field), None)),
            Some(Grouping::Time { field, granularity, time_zone }) => {
                Some((reader.select(field), Some(TimeBuckets::new(*granularity, time_zone)?)))
            }
        };
        let (whole, groups) = (Accumulator::new(query.metric), HashMap::new());
        Ok(Self { query, reader, predicate, measured, grouped, whole, groups, held: 0, matching: 0 })
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
            self.reader.read(row.get_ref(0)?.as_str().unwrap_or_default(), &mut picked);
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
            let keys = match (at(*by), buckets) {
                (None, _) => vec![None],
                (Some(value), None) => GroupKey::all_of(value),
                (Some(value), Some(buckets)) => vec![buckets.bucket_of(value).map(GroupKey::Time)],
            };
            for key in keys {
                if !self.groups.contains_key(&key) {
                    if self.groups.len() >= MAX_GROUPS {
                        return Err(too_many(MAX_GROUPS).into());
                    }
                    self.held += key.as_ref().map_or(0, GroupKey::held);
                }
                let metric = self.query.metric;
                let (records, accumulator) =
                    self.groups.entry(key).or_insert_with(|| (0, Accumulator::new(metric)));
                *records += 1;
                let before = accumulator.held();
                accumulator.add(value);
                self.held = self.held + accumulator.held() - before;
                if accumulator.is_overfull() {
                    return Err(too_many(MAX_DISTINCT).into());
                }
            }
            if self.held > MAX_GROUP_BYTES {
                return Err(too_much().into());
            }
        }
        if self.whole.is_overfull() { Err(too_many(MAX_DISTINCT).into()) } else { Ok(()) }
    }

    fn answer(self) -> Result<AggregateAnswer, SourceError> {
        let accumulators = || self.groups.values().map(|(_, accumulator)| accumulator).chain([&self.whole]);
        let field = self.query.field.as_deref().unwrap_or_default();
        if accumulators().any(Accumulator::is_too_large) {
            return Err(too_large(field));
        }
        let notes = passed_over(field, accumulators().map(Accumulator::passed_over).sum());
        let answer = AggregateAnswer {
            filtered_count: Some(self.matching),
            notes: notes.into_iter().collect(),
            ..AggregateAnswer::default()
        };
        let Some((_, buckets)) = &self.grouped else {
            return Ok(AggregateAnswer { value: self.whole.value(), ..answer });
        };
        let by_time = buckets.is_some();
        let mut groups: Vec<(Option<GroupKey>, (u64, Accumulator))> = self.groups.into_iter().collect();
        groups.sort_unstable_by(|(a_key, (_, a)), (b_key, (_, b))| {
            if by_time {
                // Newest group first, so that the limit drops the oldest ones; the group of records without a time
                // comes last.
                b_key.cmp(a_key)
            } else {
                b.order(a).then_with(|| a_key.cmp(b_key))
            }
        });
        let rest = groups.split_off(self.query.limit.min(groups.len()));
        if by_time {
            groups.reverse();
        }
        let group = |(key, (_, accumulator)): (Option<GroupKey>, (u64, Accumulator))| Group {
            key: key.and_then(GroupKey::into_scalar),
            value: accumulator.value(),
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
    SourceError::InvalidQuery { fault: QueryFault::InvalidAggregate, problem, hint: hint.to_owned() }
}

fn too_many(most: usize) -> SourceError {
    refused(
        format!("there are more than {most} different values to tell apart"),
        "Narrow it with `filter`, or group by time.",
    )
}

fn too_much() -> SourceError {
    refused(
        format!("the values to tell apart take more than {MAX_GROUP_BYTES} bytes"),
        "Narrow it with `filter`, or group by a field of shorter values.",
    )
}

fn too_large(field: &str) -> SourceError {
    refused(
        format!("the sum of `{field}` is larger than a number can be"),
        "Narrow it with `filter`, or ask for `max`.",
    )
}
