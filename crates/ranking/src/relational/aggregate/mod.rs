//! Aggregates over a stream: count, sum, mean, minimum, maximum and distinct values, in total or by group.
//!
//! Each query is one pass over the records of a stream and reads only the fields that it needs. Groups and distinct
//! values are bounded in number and in bytes.
//!
//! * `refusal`: limits, and errors of queries that exceed them
//! * `group_key`: keys of groups
//! * `time_bucket`: groups by hour, day, week or month
//! * `segment`, `slots`, `measure`: aggregates from columns

mod group_key;
mod measure;
mod refusal;
mod segment;
mod slots;
mod time_bucket;

use std::cmp::Ordering;
use std::collections::HashMap;

use fetchwell_core::record::{Capability, Scalar, StreamDetail};
use fetchwell_source::accumulator::{Accumulator, MAX_DISTINCT};
use fetchwell_source::{AggregateAnswer, AggregateQuery, Group, Grouping, Metric, SourceError};

use self::group_key::GroupKey;
use self::refusal::{MAX_GROUP_BYTES, max_groups, refused, too_large, too_many, too_much};
use self::segment::{SegmentGroup, SegmentQuery, SegmentTotals, read_totals};
use self::time_bucket::TimeBuckets;
use super::columns::in_columns;
use super::field_reader::{FieldReader, FieldValues};
use super::interrupt::ReadBounds;
use super::predicate::{Predicate, check, missing_capability};
use super::stream_row::{StreamRow, details};
use super::streams::stream_rows;
use super::tables::{RowScan, Scan, Tables};

/// Returns an aggregate over the records of a stream.
///
/// # Errors
///
/// The query is not valid for the stream, or the tables cannot be read.
pub fn aggregate<T: Tables>(
    tables: &T,
    query: &AggregateQuery,
    bounds: ReadBounds<'_>,
) -> Result<AggregateAnswer, T::Error> {
    let streams = stream_rows(tables, &query.stream, query.connection.as_ref())?;
    let details = details(&streams);
    check(&query.filter, &details)?;
    check_declared(query, &details)?;
    if let (Metric::Count, None, true) = (query.metric, &query.grouping, query.filter.is_empty()) {
        let count: u64 = streams.iter().filter_map(|stream| stream.detail.record_count).sum();
        let value = Some(Scalar::Number(count.into()));
        return Ok(AggregateAnswer { value, filtered_count: Some(count), ..AggregateAnswer::default() });
    }
    let pass = match Pass::from_columns(tables, query, &streams, bounds)? {
        Some(pass) => pass,
        None => Pass::from_scans(tables, query, &streams, bounds)?,
    };
    Ok(pass.answer()?)
}

/// Refuses a metric or grouping that the streams do not declare for its field.
fn check_declared(query: &AggregateQuery, streams: &[&StreamDetail]) -> Result<(), SourceError> {
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
    if let Some(field) = &query.second_field {
        asked.push((field, Capability::GroupBy, "grouped by"));
    }
    for (field, capability, what) in asked {
        if let Some((problem, hint)) = missing_capability(streams, field, capability, what) {
            return Err(refused(problem, &hint));
        }
    }
    Ok(())
}

/// Keys of a group by both fields. A key is `None` for records without a value.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GroupKeys {
    first: Option<GroupKey>,
    second: Option<GroupKey>,
}

/// Records of a group.
#[derive(Debug)]
struct GroupState {
    records: u64,
    accumulator: Accumulator,
}

struct Pass<'a> {
    query: &'a AggregateQuery,
    reader: FieldReader,
    predicate: Predicate,
    measured: Option<usize>,
    grouped: Option<(usize, Option<TimeBuckets>)>,
    second: Option<usize>,
    whole: Accumulator,
    groups: HashMap<GroupKeys, GroupState>,
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
        let second = query.second_field.as_deref().map(|field| reader.select(field));
        let (whole, groups) = (Accumulator::new(query.metric), HashMap::new());
        Ok(Self { query, reader, predicate, measured, grouped, second, whole, groups, held: 0, matching: 0 })
    }

    /// Reads all records of some streams as JSON.
    fn from_scans<T: Tables>(
        tables: &T,
        query: &'a AggregateQuery,
        streams: &[StreamRow],
        bounds: ReadBounds<'_>,
    ) -> Result<Self, T::Error> {
        let mut pass = Self::new(query)?;
        for stream in streams {
            pass.scan(tables, stream, bounds)?;
        }
        Ok(pass)
    }

    /// Reads the columns of some streams, and all records of a stream without columns. Returns `None` if columns cannot be read,
    /// or a sum would depend on the order of the records.
    fn from_columns<T: Tables>(
        tables: &T,
        query: &'a AggregateQuery,
        streams: &[StreamRow],
        bounds: ReadBounds<'_>,
    ) -> Result<Option<Self>, T::Error> {
        let (mut pass, mut is_from_columns) = (Self::new(query)?, false);
        for stream in streams {
            let Some(columns) = tables.columns(stream.row, &pass.reader.names(), None)? else {
                pass.scan(tables, stream, bounds)?;
                continue;
            };
            is_from_columns = true;
            for segment in &columns.segments {
                let totals = read_totals(segment.as_ref(), &pass.segment_query(), bounds.interrupt);
                let Some(totals) = in_columns::<_, T::Error>(totals)? else { return Ok(None) };
                pass.add_totals(&totals)?;
            }
            let mut picked = Vec::new();
            let rest = RowScan { stream: stream.row, rows: &columns.rest, wants_data: true };
            tables.rows(&rest, bounds, &mut |row| {
                pass.read(row.data, &mut picked)?;
                Ok(true)
            })?;
            pass.check_distinct()?;
        }
        let mut accumulators = pass.groups.values().map(|group| &group.accumulator);
        let is_exact = pass.whole.is_exact() && accumulators.all(Accumulator::is_exact);
        Ok((is_exact || !is_from_columns).then_some(pass))
    }

    fn scan<T: Tables>(
        &mut self,
        tables: &T,
        stream: &StreamRow,
        bounds: ReadBounds<'_>,
    ) -> Result<(), T::Error> {
        let mut picked = Vec::new();
        tables.scan(&Scan::all_texts(stream.row, None), bounds, &mut |row| {
            self.read(row.data, &mut picked)?;
            Ok(true)
        })?;
        Ok(self.check_distinct()?)
    }

    /// Counts a record if it passes the filter.
    fn read(&mut self, data: &str, picked: &mut FieldValues) -> Result<(), SourceError> {
        self.reader.read(data, picked);
        if self.predicate.passes(picked) { self.count(picked) } else { Ok(()) }
    }

    fn check_distinct(&self) -> Result<(), SourceError> {
        if self.whole.is_overfull() { Err(too_many(MAX_DISTINCT)) } else { Ok(()) }
    }

    fn segment_query(&self) -> SegmentQuery<'_> {
        SegmentQuery {
            predicate: &self.predicate,
            metric: self.query.metric,
            measured: self.measured,
            grouped: self.grouped.as_ref().map(|(field, buckets)| (*field, buckets.as_ref())),
            second: self.second,
            max_groups: max_groups(self.query.purpose),
        }
    }

    /// Counts the records of a segment.
    fn add_totals(&mut self, totals: &SegmentTotals) -> Result<(), SourceError> {
        self.matching += totals.matching;
        for SegmentGroup { first, second, records, measure } in &totals.groups {
            if self.grouped.is_none() {
                measure.add_to(&mut self.whole, *records);
                continue;
            }
            for first in first {
                for second in second {
                    let keys = GroupKeys { first: first.clone(), second: second.clone() };
                    self.add(keys, *records, |accumulator| measure.add_to(accumulator, *records))?;
                }
            }
        }
        Ok(())
    }

    /// Counts a record with these values.
    fn count(&mut self, values: &FieldValues) -> Result<(), SourceError> {
        self.matching += 1;
        let at = |at: usize| values.get(at).and_then(Option::as_ref);
        let value = self.measured.and_then(at);
        let Some((by, buckets)) = &mut self.grouped else {
            self.whole.add(value);
            return Ok(());
        };
        let firsts = match (at(*by), buckets) {
            (None, _) => vec![None],
            (Some(value), None) => GroupKey::all_of(value),
            (Some(value), Some(buckets)) => vec![buckets.bucket_of(value).map(GroupKey::Time)],
        };
        let seconds = match self.second.map(at) {
            None | Some(None) => vec![None],
            Some(Some(value)) => GroupKey::all_of(value),
        };
        for first in &firsts {
            for second in &seconds {
                let keys = GroupKeys { first: first.clone(), second: second.clone() };
                self.add(keys, 1, |accumulator| accumulator.add(value))?;
            }
        }
        Ok(())
    }

    /// Adds records to a group.
    fn add(
        &mut self,
        keys: GroupKeys,
        records: u64,
        measure: impl FnOnce(&mut Accumulator),
    ) -> Result<(), SourceError> {
        if !self.groups.contains_key(&keys) {
            let max_groups = max_groups(self.query.purpose);
            if self.groups.len() >= max_groups {
                return Err(too_many(max_groups));
            }
            self.held += [&keys.first, &keys.second].into_iter().flatten().map(GroupKey::held).sum::<usize>();
        }
        let metric = self.query.metric;
        let group = self.groups.entry(keys);
        let group = group.or_insert_with(|| GroupState { records: 0, accumulator: Accumulator::new(metric) });
        group.records += records;
        let before = group.accumulator.held();
        measure(&mut group.accumulator);
        self.held = self.held + group.accumulator.held() - before;
        if group.accumulator.is_overfull() {
            return Err(too_many(MAX_DISTINCT));
        }
        if self.held > MAX_GROUP_BYTES { Err(too_much()) } else { Ok(()) }
    }

    fn answer(self) -> Result<AggregateAnswer, SourceError> {
        let accumulators = || self.groups.values().map(|group| &group.accumulator).chain([&self.whole]);
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
            return Ok(AggregateAnswer { value: self.whole.value(), mean: self.whole.mean(), ..answer });
        };
        let by_time = buckets.is_some();
        let mut groups: Vec<(GroupKeys, GroupState)> = self.groups.into_iter().collect();
        groups.sort_unstable_by(|(a_keys, a), (b_keys, b)| {
            // Newest group first, so that the limit drops the oldest ones; the group of records without a time comes
            // last.
            let newest = if by_time { b_keys.first.cmp(&a_keys.first) } else { Ordering::Equal };
            newest
                .then_with(|| b.accumulator.order(&a.accumulator))
                .then_with(|| a_keys.first.cmp(&b_keys.first))
                .then_with(|| a_keys.second.cmp(&b_keys.second))
        });
        let rest = groups.split_off(self.query.limit.min(groups.len()));
        if by_time {
            groups.sort_by(|(a, _), (b, _)| a.first.cmp(&b.first));
        }
        let group = |(keys, grouped): (GroupKeys, GroupState)| Group {
            key: keys.first.and_then(GroupKey::into_scalar),
            second_key: keys.second.and_then(GroupKey::into_scalar),
            value: grouped.accumulator.value(),
            mean: grouped.accumulator.mean(),
        };
        Ok(AggregateAnswer {
            groups: Some(groups.into_iter().map(group).collect()),
            other_count: Some(rest.iter().map(|(_, group)| group.records).sum()),
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
