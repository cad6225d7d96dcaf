//! Figures over a stream.
//!
//! Each is one pass over its records that reads only the fields it needs.

use std::collections::HashMap;

use rusqlite::Connection;

use super::database::{Database, ReadError};
use super::figure::Figure;
use super::interrupt::Interrupt;
use super::pick::Picker;
use super::predicate::{Predicate, check};
use super::streams::{StreamRow, stream_rows};
use super::time_bucket::TimeBuckets;
use crate::record::{Capability, Scalar, StreamDetail};
use crate::source::{AggregateAnswer, AggregateQuery, Group, Grouping, Metric, QueryFault, SourceError};

/// The most groups that are told apart while counting. Each takes memory until the end.
const GROUPS_MOST: usize = 200_000;

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
    Ok(pass.answer())
}

/// Refuses figures that a stream does not give.
fn check_declared(query: &AggregateQuery, stream: &StreamDetail) -> Result<(), SourceError> {
    let refused =
        |problem, hint| Err(SourceError::CorrectQuery { fault: QueryFault::InvalidAggregate, problem, hint });
    let mut asked = Vec::new();
    match (query.metric, query.field.as_deref()) {
        (Metric::Count, None) => {}
        (Metric::Count, Some(field)) => {
            return refused(
                format!("`count` counts records and takes no field, and `{field}` was given"),
                "Leave `field` out, or use `count_distinct`.".to_owned(),
            );
        }
        (metric, None) => {
            let problem = format!("`{}` needs a field", metric.word());
            return refused(problem, "Set `field`.".to_owned());
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
        let can = |detail: &&crate::record::FieldDetail| detail.capabilities.contains(&capability);
        if stream.field(field).as_ref().is_some_and(can) {
            continue;
        }
        let fields: Vec<&str> =
            stream.fields.iter().filter(can).map(|detail| detail.name.as_str()).take(20).collect();
        let problem = match stream.field(field) {
            None => format!("stream `{}` has no field `{field}`", stream.name),
            Some(_) => format!("field `{field}` of stream `{}` cannot be {what}", stream.name),
        };
        return refused(problem, format!("Fields that can be {what}: {}.", fields.join(", ")));
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
    groups: HashMap<Option<Scalar>, (u64, Figure)>,
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
        Ok(Self { query, picker, predicate, measured, grouped, whole, groups, matching: 0 })
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
                (Some(value), None) => Scalar::of(value),
                (Some(value), Some(buckets)) => buckets.key(value).map(Scalar::Text),
            };
            if self.groups.len() >= GROUPS_MOST && !self.groups.contains_key(&key) {
                return Err(too_many().into());
            }
            let metric = self.query.metric;
            let (records, figure) = self.groups.entry(key).or_insert_with(|| (0, Figure::new(metric)));
            *records += 1;
            figure.add(value);
            if figure.is_overfull() {
                return Err(too_many().into());
            }
        }
        if self.whole.is_overfull() { Err(too_many().into()) } else { Ok(()) }
    }

    fn answer(self) -> AggregateAnswer {
        let filtered_count = Some(self.matching);
        let Some((_, buckets)) = &self.grouped else {
            return AggregateAnswer {
                value: self.whole.value(),
                filtered_count,
                ..AggregateAnswer::default()
            };
        };
        let by_time = buckets.is_some();
        let mut groups: Vec<(Option<Scalar>, u64, Figure)> =
            self.groups.into_iter().map(|(key, (records, figure))| (key, records, figure)).collect();
        let text = |key: &Option<Scalar>| key.as_ref().map(Scalar::to_string);
        if by_time {
            // The newest first, to keep these; a group without a time goes first of all.
            groups.sort_by_cached_key(|(key, ..)| std::cmp::Reverse(text(key)));
        } else {
            groups.sort_by(|(a_key, _, a), (b_key, _, b)| {
                b.order(a).then_with(|| text(a_key).cmp(&text(b_key)))
            });
        }
        let rest = groups.split_off(self.query.limit.min(groups.len()));
        if by_time {
            groups.reverse();
        }
        AggregateAnswer {
            value: None,
            groups: Some(
                groups.into_iter().map(|(key, _, figure)| Group { key, value: figure.value() }).collect(),
            ),
            other_count: Some(rest.iter().map(|(_, records, _)| records).sum()),
            filtered_count,
            notes: Vec::new(),
        }
    }
}

fn too_many() -> SourceError {
    SourceError::CorrectQuery {
        fault: QueryFault::InvalidAggregate,
        problem: format!("there are more than {GROUPS_MOST} different values to tell apart"),
        hint: "Narrow it with `filter`, or group by time.".to_owned(),
    }
}
