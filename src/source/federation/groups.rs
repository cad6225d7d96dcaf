//! Groups of several sources as one list, and the reads that are needed to complete them.
//!
//! A source returns at most a hundred groups. A source with more may have records of a group that it does not return.
//! Such a group is complete only after that source was queried for it by value.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::record::{Numeric, Scalar, comparable};
use crate::source::accumulator::Accumulator;
use crate::source::{AggregateAnswer, Group, Metric};

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
    groups: BTreeMap<GroupKey, Merged>,
    /// Sources that left out groups, each with the aggregate of the last group that it returned.
    cut: Vec<(usize, Option<Scalar>)>,
}

#[derive(Debug)]
struct Merged {
    shown: Option<Scalar>,
    accumulator: Accumulator,
    sources: Vec<usize>,
}

/// Aggregate of one group that has to be read from a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingGroup {
    pub(super) source: usize,
    pub(super) key: GroupKey,
    /// Value that the records of the group have.
    pub(super) value: Scalar,
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
            Some(Scalar::Text(text)) => Self::Text(comparable(text).unwrap_or_else(|| text.clone())),
            other => Self::from_value(other),
        }
    }
}

/// Returns the accumulator that combines answers of a metric. Counts are combined like sums.
pub(super) fn accumulator(metric: Metric) -> Accumulator {
    Accumulator::new(if metric == Metric::Count { Metric::Sum } else { metric })
}

impl Groups {
    pub(super) fn new(metric: Metric) -> Self {
        Self { metric, groups: BTreeMap::new(), cut: Vec::new() }
    }

    /// Adds the answer of a source that was asked for at most `most` groups.
    pub(super) fn add(
        &mut self,
        source: usize,
        answer: &AggregateAnswer,
        most: usize,
        key: impl Fn(Option<&Scalar>) -> GroupKey,
    ) {
        let groups = answer.groups.as_deref().unwrap_or_default();
        for Group { key: shown, value } in groups {
            self.add_group(source, key(shown.as_ref()), shown.clone(), value.clone());
        }
        let is_whole = match answer.other_count {
            Some(records) => records == 0,
            None => groups.len() < most,
        };
        if !is_whole {
            self.cut.push((source, groups.last().and_then(|group| group.value.clone())));
        }
    }

    /// Adds the aggregate of one group of a source.
    pub(super) fn add_group(
        &mut self,
        source: usize,
        key: GroupKey,
        shown: Option<Scalar>,
        value: Option<Scalar>,
    ) {
        let accumulator = accumulator(self.metric);
        let merged =
            self.groups.entry(key).or_insert_with(|| Merged { shown, accumulator, sources: Vec::new() });
        merged.accumulator.add(value.map(Into::into).as_ref());
        merged.sources.push(source);
    }

    /// Removes a group that cannot be completed. Returns true if it existed.
    pub(super) fn remove(&mut self, key: &GroupKey) -> bool {
        self.groups.remove(key).is_some()
    }

    /// Returns true if every source returned all of its groups.
    pub(super) fn are_whole(&self) -> bool {
        self.cut.is_empty()
    }

    /// Returns the number of groups, without the group of missing values.
    pub(super) fn distinct(&self) -> usize {
        self.groups.keys().filter(|key| **key != GroupKey::Missing).count()
    }

    /// Returns how many of the largest groups, at most `groups`, can be completed by at most `most` reads, and these
    /// reads.
    ///
    /// Records without a value cannot be asked for by it. Where a source did not tell their group it is left
    /// out, as a group that is not whole.
    pub(super) fn missing(&mut self, groups: usize, most: usize) -> (usize, Vec<MissingGroup>) {
        let cut: Vec<usize> = self.cut.iter().map(|(source, _)| *source).collect();
        let without_value = self.groups.get(&GroupKey::Missing);
        if without_value.is_some_and(|merged| cut.iter().any(|source| !merged.sources.contains(source))) {
            self.groups.remove(&GroupKey::Missing);
        }
        let (mut whole, mut missing) = (0, Vec::new());
        for (key, merged) in self.largest().into_iter().take(groups) {
            let silent = cut.iter().filter(|source| !merged.sources.contains(source));
            let silent: Vec<usize> = silent.copied().collect();
            if missing.len() + silent.len() > most {
                break;
            }
            let ask = |value: &Scalar| {
                let (key, value) = (key.clone(), value.clone());
                silent.into_iter().map(move |source| MissingGroup {
                    source,
                    key: key.clone(),
                    value: value.clone(),
                })
            };
            missing.extend(merged.shown.as_ref().map(ask).into_iter().flatten());
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
        let untold = self.cut.iter().map(|(_, last)| whole_number(last.as_ref())).sum::<Option<u64>>();
        let smallest = shown.iter().map(|group| whole_number(group.value.as_ref())).min().flatten();
        match (self.metric, untold, smallest) {
            (Metric::Count, Some(untold), Some(smallest)) => untold >= smallest,
            _ => true,
        }
    }

    fn largest(&self) -> Vec<(&GroupKey, &Merged)> {
        let mut largest: Vec<_> = self.groups.iter().collect();
        largest.sort_by(|(a_key, a), (b_key, b)| {
            b.accumulator.order(&a.accumulator).then_with(|| a_key.cmp(b_key))
        });
        largest
    }

    /// Returns the largest groups, and the others.
    pub(super) fn by_size(&self, most: usize) -> (Vec<Group>, Vec<Group>) {
        split(self.largest(), most)
    }

    /// Returns the newest groups in chronological order, and the others.
    pub(super) fn by_time(&self, most: usize) -> (Vec<Group>, Vec<Group>) {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(key, _)| Reverse(*key));
        let (mut newest, rest) = split(groups, most);
        newest.reverse();
        (newest, rest)
    }
}

fn split(groups: Vec<(&GroupKey, &Merged)>, most: usize) -> (Vec<Group>, Vec<Group>) {
    let group = |(_, merged): (&GroupKey, &Merged)| Group {
        key: merged.shown.clone(),
        value: merged.accumulator.value(),
    };
    let mut groups: Vec<Group> = groups.into_iter().map(group).collect();
    let rest = groups.split_off(most.min(groups.len()));
    (groups, rest)
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

    fn answer(groups: &[(&str, u64)], other_count: u64) -> AggregateAnswer {
        let group = |(key, value): &(&str, u64)| Group {
            key: Some(Scalar::Text((*key).to_owned())),
            value: Some(Scalar::Number((*value).into())),
        };
        AggregateAnswer {
            groups: Some(groups.iter().map(group).collect()),
            other_count: Some(other_count),
            ..AggregateAnswer::default()
        }
    }

    fn told(groups: &[Group]) -> Vec<String> {
        let text = |scalar: &Option<Scalar>| scalar.as_ref().map_or("-".to_owned(), ToString::to_string);
        groups.iter().map(|group| format!("{} {}", text(&group.key), text(&group.value))).collect()
    }

    #[test]
    fn whole_groups_add_up() {
        let mut groups = Groups::new(Metric::Count);
        groups.add(0, &answer(&[("a", 5), ("b", 3)], 0), 100, GroupKey::from_value);
        groups.add(1, &answer(&[("b", 4), ("c", 1)], 0), 100, GroupKey::from_value);
        assert!(groups.are_whole());
        assert_eq!(groups.distinct(), 3);
        let (largest, rest) = groups.by_size(2);
        assert_eq!(told(&largest), ["b 7", "a 5"]);
        assert_eq!(records(&rest), Some(1));
    }

    #[test]
    fn what_a_cut_source_does_not_tell_is_asked() {
        let cut = || {
            let mut groups = Groups::new(Metric::Count);
            groups.add(0, &answer(&[("a", 5), ("b", 3)], 2), 2, GroupKey::from_value);
            groups.add(1, &answer(&[("c", 4)], 0), 2, GroupKey::from_value);
            groups
        };
        let mut groups = cut();
        let (whole, missing) = groups.missing(3, 10);
        let asked: Vec<String> = missing.iter().map(|one| format!("{} {}", one.source, one.value)).collect();
        assert_eq!((whole, asked), (3, vec!["0 c".to_owned()]));
        groups.add_group(0, GroupKey::Text("c".to_owned()), None, Some(Scalar::Number(2.into())));
        assert_eq!(told(&groups.by_size(2).0), ["c 6", "a 5"]);
        // Without reads, only the groups before the first incomplete one are complete.
        assert_eq!(cut().missing(3, 0), (1, Vec::new()));
    }

    #[test]
    fn records_without_a_value_are_left_out_where_they_cannot_be_asked_for() {
        let is_unknown = |records: u64| Group { key: None, value: Some(Scalar::Number(records.into())) };
        let mut groups = Groups::new(Metric::Count);
        groups.add(0, &answer(&[("a", 5)], 2), 1, GroupKey::from_value);
        let other =
            AggregateAnswer { groups: Some(vec![is_unknown(9)]), other_count: Some(0), ..answer(&[], 0) };
        groups.add(1, &other, 1, GroupKey::from_value);
        assert_eq!(groups.missing(5, 10), (1, Vec::new()));
        assert_eq!(told(&groups.by_size(5).0), ["a 5"]);
    }

    #[test]
    fn a_group_nobody_told_may_be_among_the_largest() {
        let lacks = |last: u64| {
            let mut groups = Groups::new(Metric::Count);
            groups.add(0, &answer(&[("a", 9), ("b", last)], 7), 2, GroupKey::from_value);
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
