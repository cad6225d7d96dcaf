//! Groups of several sources as one list, and the reads that are needed to complete them.
//!
//! A source returns at most a hundred groups. A source with more may have records of a group that it does not return.
//! Such a group is complete only after that source was queried for it by value.

use std::collections::BTreeMap;

use fetchwell_core::record::{Numeric, Scalar, ordered};

use crate::accumulator::Accumulator;
use crate::{AggregateAnswer, AggregateQuery, Group, Mean, Metric};

/// Identity of a group. Numbers that are equal in filters are one group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GroupKey {
    Missing,
    Bool(bool),
    Number(Numeric),
    Text(String),
}

/// Groups of all sources.
#[derive(Debug)]
pub(super) struct Groups {
    metric: Metric,
    groups: BTreeMap<GroupKeys, MergedGroup>,
    /// Sources that left out groups.
    cut: Vec<CutSource>,
}

/// A source that left out groups.
#[derive(Debug)]
struct CutSource {
    source: usize,
    /// Aggregate of the last group that it returned.
    last: Option<Scalar>,
    /// First key of the oldest of its groups by time.
    oldest: Option<GroupKey>,
}

/// Identity of a group of one or two fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKeys {
    first: GroupKey,
    /// `None` if there is no second field.
    second: Option<GroupKey>,
}

#[derive(Debug)]
struct MergedGroup {
    shown: GroupValues,
    accumulator: Accumulator,
    sources: Vec<usize>,
}

/// Values that the records of a group have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupValues {
    pub(super) first: Option<Scalar>,
    pub(super) second: Option<Scalar>,
}

/// Aggregate of one group that has to be read from a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingGroup {
    pub(super) source: usize,
    pub(super) keys: GroupKeys,
    pub(super) values: GroupValues,
}

impl GroupKeys {
    /// Returns true if the group has records without a value, which cannot be asked for by value.
    fn lacks_value(&self) -> bool {
        self.first == GroupKey::Missing || self.second == Some(GroupKey::Missing)
    }
}

impl GroupKey {
    /// Returns the key of a group of equal values.
    pub(super) fn from_value(value: Option<&Scalar>) -> Self {
        match value {
            None => Self::Missing,
            Some(Scalar::Bool(value)) => Self::Bool(*value),
            Some(Scalar::Number(number)) => {
                Numeric::of_number(number).map_or_else(|| Self::Text(number.to_string()), Self::Number)
            }
            Some(Scalar::Text(text)) => Self::Text(text.clone()),
        }
    }

    /// Returns the key of a group of times, which servers write in different ways.
    pub(super) fn from_time(value: Option<&Scalar>) -> Self {
        match value {
            Some(Scalar::Text(text)) => Self::Text(ordered(text)),
            other => Self::from_value(other),
        }
    }
}

/// Returns the accumulator that combines answers of a metric. Counts are combined like sums.
pub(super) fn accumulator(metric: Metric) -> Accumulator {
    Accumulator::new(if metric == Metric::Count { Metric::Sum } else { metric })
}

/// Adds the value of a source, or its mean with the number of values.
pub(super) fn add_value(accumulator: &mut Accumulator, value: Option<Scalar>, mean: Option<&Mean>) {
    match mean {
        Some(mean) => accumulator.add_mean(mean),
        None => accumulator.add(value.map(Into::into).as_ref()),
    }
}

impl Groups {
    pub(super) fn new(metric: Metric) -> Self {
        Self { metric, groups: BTreeMap::new(), cut: Vec::new() }
    }

    /// Adds the answer of a source to a query.
    pub(super) fn add(
        &mut self,
        source: usize,
        answer: &AggregateAnswer,
        query: &AggregateQuery,
        key: impl Fn(Option<&Scalar>) -> GroupKey,
    ) {
        let groups = answer.groups.as_deref().unwrap_or_default();
        for group in groups {
            let second = query.second_field.as_ref().map(|_| GroupKey::from_value(group.second_key.as_ref()));
            let keys = GroupKeys { first: key(group.key.as_ref()), second };
            let shown = GroupValues { first: group.key.clone(), second: group.second_key.clone() };
            self.add_group(source, keys, shown, group.value.clone(), group.mean.as_ref());
        }
        let is_whole = match answer.other_count {
            Some(records) => records == 0,
            None => groups.len() < query.limit,
        };
        if !is_whole {
            let last = groups.last().and_then(|group| group.value.clone());
            let oldest = groups.iter().map(|group| key(group.key.as_ref())).min();
            self.cut.push(CutSource { source, last, oldest });
        }
    }

    /// Adds the aggregate of one group of a source.
    pub(super) fn add_group(
        &mut self,
        source: usize,
        keys: GroupKeys,
        shown: GroupValues,
        value: Option<Scalar>,
        mean: Option<&Mean>,
    ) {
        let accumulator = accumulator(self.metric);
        let merged = self.groups.entry(keys).or_insert_with(|| MergedGroup {
            shown,
            accumulator,
            sources: Vec::new(),
        });
        add_value(&mut merged.accumulator, value, mean);
        merged.sources.push(source);
    }

    /// Removes groups of two fields in periods that a source may have returned in part. Returns true if there are such
    /// periods.
    pub(super) fn remove_cut_periods(&mut self) -> bool {
        let newest_cut = self.cut.iter().filter_map(|cut| cut.oldest.clone()).max();
        let Some(newest_cut) = newest_cut else { return false };
        self.groups.retain(|keys, _| keys.first > newest_cut);
        true
    }

    /// Removes a group that cannot be completed. Returns true if it existed.
    pub(super) fn remove(&mut self, keys: &GroupKeys) -> bool {
        self.groups.remove(keys).is_some()
    }

    /// Returns true if every source returned all of its groups.
    pub(super) fn are_whole(&self) -> bool {
        self.cut.is_empty()
    }

    /// Returns the number of groups, without the group of missing values.
    pub(super) fn distinct(&self) -> usize {
        self.groups.keys().filter(|keys| keys.first != GroupKey::Missing).count()
    }

    /// Returns how many of the largest groups, at most `groups`, can be completed by at most `max_reads` reads, and these
    /// reads.
    ///
    /// Records without a value cannot be asked for by it. Where a source did not tell their group it is left
    /// out, as a group that is not whole.
    pub(super) fn missing(&mut self, groups: usize, max_reads: usize) -> (usize, Vec<MissingGroup>) {
        let cut: Vec<usize> = self.cut.iter().map(|cut| cut.source).collect();
        self.groups.retain(|keys, merged| {
            !keys.lacks_value() || cut.iter().all(|source| merged.sources.contains(source))
        });
        let (mut whole, mut missing) = (0, Vec::new());
        for (keys, merged) in self.largest().into_iter().take(groups) {
            let silent = cut.iter().filter(|source| !merged.sources.contains(source));
            let silent: Vec<usize> = silent.copied().collect();
            if missing.len() + silent.len() > max_reads {
                break;
            }
            missing.extend(silent.into_iter().map(|source| MissingGroup {
                source,
                keys: keys.clone(),
                values: merged.shown.clone(),
            }));
            whole += 1;
        }
        (whole, missing)
    }

    /// Returns true if a group that is not in `shown` could be as large as the smallest one there. Only counts can
    /// exclude that.
    pub(super) fn may_miss_a_group(&self, shown: &[Group]) -> bool {
        if self.are_whole() {
            return false;
        }
        let untold = self.cut.iter().map(|cut| whole_number(cut.last.as_ref())).sum::<Option<u64>>();
        let smallest = shown.iter().map(|group| whole_number(group.value.as_ref())).min().flatten();
        match (self.metric, untold, smallest) {
            (Metric::Count, Some(untold), Some(smallest)) => untold >= smallest,
            _ => true,
        }
    }

    fn largest(&self) -> Vec<(&GroupKeys, &MergedGroup)> {
        let mut largest: Vec<_> = self.groups.iter().collect();
        largest.sort_by(|(a_key, a), (b_key, b)| {
            b.accumulator.order(&a.accumulator).then_with(|| a_key.cmp(b_key))
        });
        largest
    }

    /// Returns the largest groups, and the others.
    pub(super) fn by_size(&self, max_groups: usize) -> (Vec<Group>, Vec<Group>) {
        split(self.largest(), max_groups)
    }

    /// Returns the newest groups in chronological order, and the others.
    pub(super) fn by_time(&self, max_groups: usize) -> (Vec<Group>, Vec<Group>) {
        let mut groups = self.largest();
        groups.sort_by(|(a, _), (b, _)| b.first.cmp(&a.first));
        let rest = groups.split_off(max_groups.min(groups.len()));
        groups.sort_by(|(a, _), (b, _)| a.first.cmp(&b.first));
        (merged_groups(groups), merged_groups(rest))
    }
}

fn split(mut groups: Vec<(&GroupKeys, &MergedGroup)>, max_groups: usize) -> (Vec<Group>, Vec<Group>) {
    let rest = groups.split_off(max_groups.min(groups.len()));
    (merged_groups(groups), merged_groups(rest))
}

fn merged_groups(groups: Vec<(&GroupKeys, &MergedGroup)>) -> Vec<Group> {
    let group = |merged: &MergedGroup| Group {
        key: merged.shown.first.clone(),
        second_key: merged.shown.second.clone(),
        value: merged.accumulator.value(),
        mean: merged.accumulator.mean(),
    };
    groups.into_iter().map(|(_, merged)| group(merged)).collect()
}

/// Returns the number of records in groups of counts.
pub(super) fn records(groups: &[Group]) -> Option<u64> {
    groups.iter().map(|group| whole_number(group.value.as_ref())).sum()
}

fn whole_number(value: Option<&Scalar>) -> Option<u64> {
    match value {
        Some(Scalar::Number(number)) => number.as_u64(),
        Some(Scalar::Bool(_) | Scalar::Text(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(limit: usize) -> AggregateQuery {
        AggregateQuery { limit, ..AggregateQuery::new("s".parse().unwrap(), Metric::Count) }
    }

    fn answer(groups: &[(&str, u64)], other_count: u64) -> AggregateAnswer {
        let group = |(key, value): &(&str, u64)| Group {
            key: Some(Scalar::Text((*key).to_owned())),
            value: Some(Scalar::Number((*value).into())),
            ..Group::default()
        };
        AggregateAnswer {
            groups: Some(groups.iter().map(group).collect()),
            other_count: Some(other_count),
            ..AggregateAnswer::default()
        }
    }

    fn sizes(groups: &[Group]) -> Vec<String> {
        let text = |scalar: &Option<Scalar>| scalar.as_ref().map_or("-".to_owned(), ToString::to_string);
        groups.iter().map(|group| format!("{} {}", text(&group.key), text(&group.value))).collect()
    }

    #[test]
    fn whole_groups_add_up() {
        let mut groups = Groups::new(Metric::Count);
        groups.add(0, &answer(&[("a", 5), ("b", 3)], 0), &query(100), GroupKey::from_value);
        groups.add(1, &answer(&[("b", 4), ("c", 1)], 0), &query(100), GroupKey::from_value);
        assert!(groups.are_whole());
        assert_eq!(groups.distinct(), 3);
        let (largest, rest) = groups.by_size(2);
        assert_eq!(sizes(&largest), ["b 7", "a 5"]);
        assert_eq!(records(&rest), Some(1));
    }

    #[test]
    fn what_a_cut_source_does_not_tell_is_asked() {
        let cut = || {
            let mut groups = Groups::new(Metric::Count);
            groups.add(0, &answer(&[("a", 5), ("b", 3)], 2), &query(2), GroupKey::from_value);
            groups.add(1, &answer(&[("c", 4)], 0), &query(2), GroupKey::from_value);
            groups
        };
        let mut groups = cut();
        let (whole, missing) = groups.missing(3, 10);
        let asked: Vec<String> = missing
            .iter()
            .map(|one| format!("{} {}", one.source, one.values.first.as_ref().unwrap()))
            .collect();
        assert_eq!((whole, asked), (3, vec!["0 c".to_owned()]));
        let missing = missing.into_iter().next().unwrap();
        groups.add_group(0, missing.keys, missing.values, Some(Scalar::Number(2.into())), None);
        assert_eq!(sizes(&groups.by_size(2).0), ["c 6", "a 5"]);
        // Without reads, only the groups before the first incomplete one are complete.
        assert_eq!(cut().missing(3, 0), (1, Vec::new()));
    }

    #[test]
    fn pairs_of_a_period_that_a_source_cut_are_removed() {
        let group = |day: &str, second: &str, records: u64| Group {
            key: Some(Scalar::Text(day.to_owned())),
            second_key: Some(Scalar::Text(second.to_owned())),
            value: Some(Scalar::Number(records.into())),
            ..Group::default()
        };
        let answer = |groups: Vec<Group>, other_count| AggregateAnswer {
            groups: Some(groups),
            other_count: Some(other_count),
            ..AggregateAnswer::default()
        };
        let asked = AggregateQuery { second_field: Some("f".to_owned()), ..query(3) };
        let mut groups = Groups::new(Metric::Count);
        let cut = vec![group("2026-01-01", "a", 2), group("2026-01-02", "a", 1), group("2026-01-02", "b", 3)];
        groups.add(0, &answer(cut, 9), &asked, GroupKey::from_time);
        let whole = vec![group("2026-01-01", "c", 1), group("2026-01-02", "b", 4)];
        groups.add(1, &answer(whole, 0), &asked, GroupKey::from_time);
        assert!(groups.remove_cut_periods());
        let (newest, rest) = groups.by_time(5);
        let shown: Vec<String> = newest
            .iter()
            .map(|group| format!("{} {}", group.second_key.as_ref().unwrap(), group.value.as_ref().unwrap()))
            .collect();
        assert_eq!((shown, rest.len()), (vec!["b 7".to_owned(), "a 1".to_owned()], 0));
    }

    #[test]
    fn means_are_combined_by_sums_and_counts() {
        let mean = |sum: f64, count| AggregateAnswer {
            groups: Some(vec![Group {
                key: Some(Scalar::Text("a".to_owned())),
                mean: Some(Mean { sum: serde_json::Number::from_f64(sum).unwrap(), count }),
                ..Group::default()
            }]),
            other_count: Some(0),
            ..AggregateAnswer::default()
        };
        let mut groups = Groups::new(Metric::Avg);
        groups.add(0, &mean(10.5, 1), &query(3), GroupKey::from_value);
        groups.add(1, &mean(1.5, 3), &query(3), GroupKey::from_value);
        assert_eq!(sizes(&groups.by_size(5).0), ["a 3.0"]);
    }

    #[test]
    fn records_without_a_value_are_left_out_where_they_cannot_be_asked_for() {
        let is_unknown =
            |records: u64| Group { value: Some(Scalar::Number(records.into())), ..Group::default() };
        let mut groups = Groups::new(Metric::Count);
        groups.add(0, &answer(&[("a", 5)], 2), &query(1), GroupKey::from_value);
        let other =
            AggregateAnswer { groups: Some(vec![is_unknown(9)]), other_count: Some(0), ..answer(&[], 0) };
        groups.add(1, &other, &query(1), GroupKey::from_value);
        assert_eq!(groups.missing(5, 10), (1, Vec::new()));
        assert_eq!(sizes(&groups.by_size(5).0), ["a 5"]);
    }

    #[test]
    fn a_group_nobody_told_may_be_among_the_largest() {
        let lacks = |last: u64| {
            let mut groups = Groups::new(Metric::Count);
            groups.add(0, &answer(&[("a", 9), ("b", last)], 7), &query(2), GroupKey::from_value);
            let shown = answer(&[("a", 9), ("c", 4)], 0).groups.unwrap();
            groups.may_miss_a_group(&shown)
        };
        assert_eq!((lacks(3), lacks(4)), (false, true));
    }

    #[test]
    fn numbers_and_times_are_one_however_they_are_written() {
        let number = |text: &str| Scalar::Number(serde_json::from_str(text).unwrap());
        assert_eq!(GroupKey::from_value(Some(&number("2.0"))), GroupKey::from_value(Some(&number("2"))));
        let time = |text: &str| GroupKey::from_time(Some(&Scalar::Text(text.to_owned())));
        assert_eq!(time("2026-04-01T00:00:00Z"), time("2026-04-01T00:00:00.000Z"));
    }
}
