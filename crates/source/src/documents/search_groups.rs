//! The history of searches in groups, with their numbers and latencies.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Serialize;

/// Property of a search by which its history is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchGrouping {
    /// True if the answer was cached.
    CacheHit,
    /// Feedback of the caller.
    Feedback,
    /// Day of the search in UTC.
    Day,
}

/// The error for a text that is no grouping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not one of cache_hit, feedback, day")]
pub struct InvalidGrouping;

/// Searches with an equal property.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchGroup {
    /// Value of the property.
    pub value: GroupValue,
    /// Number of searches.
    pub count: u64,
    /// Time that the searches took.
    pub latency_ms: Latencies,
}

/// Value of the property of a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum GroupValue {
    /// The search has no feedback.
    None,
    /// True if the answers were cached.
    Flag(bool),
    /// Feedback, or a day as `2026-11-28`.
    Text(String),
}

/// Percentiles of latencies in milliseconds: the smallest latency that this part of the searches did not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Latencies {
    /// 50th percentile, the median.
    pub p50: u64,
    /// 95th percentile of all.
    pub p95: u64,
}

/// Number of the searches of a project with equal properties and an equal latency, as a store counts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedSearches {
    /// Text of the property: `true` or `false` for [`SearchGrouping::CacheHit`].
    pub value: Option<String>,
    /// Latency in milliseconds.
    pub latency_ms: u64,
    /// Number of searches.
    pub count: u64,
}

impl FromStr for SearchGrouping {
    type Err = InvalidGrouping;

    fn from_str(text: &str) -> Result<Self, InvalidGrouping> {
        match text {
            "cache_hit" => Ok(Self::CacheHit),
            "feedback" => Ok(Self::Feedback),
            "day" => Ok(Self::Day),
            _ => Err(InvalidGrouping),
        }
    }
}

/// Returns the groups of counted searches in the order of their values; those of days begin with the newest.
pub fn search_groups(
    by: SearchGrouping,
    counted: impl IntoIterator<Item = CountedSearches>,
) -> Vec<SearchGroup> {
    let mut groups: BTreeMap<GroupValue, BTreeMap<u64, u64>> = BTreeMap::new();
    for CountedSearches { value, latency_ms, count } in counted {
        let value = match (by, value) {
            (SearchGrouping::CacheHit, value) => GroupValue::Flag(value.as_deref() == Some("true")),
            (_, Some(value)) => GroupValue::Text(value),
            (_, None) => GroupValue::None,
        };
        *groups.entry(value).or_default().entry(latency_ms).or_default() += count;
    }
    let group = |(value, latencies): (GroupValue, BTreeMap<u64, u64>)| {
        let count = latencies.values().sum();
        let latency_ms =
            Latencies { p50: percentile(&latencies, count, 50), p95: percentile(&latencies, count, 95) };
        SearchGroup { value, count, latency_ms }
    };
    let mut groups: Vec<SearchGroup> = groups.into_iter().map(group).collect();
    if by == SearchGrouping::Day {
        groups.reverse();
    }
    groups
}

/// Returns the smallest latency that `percent` of `count` searches did not exceed.
fn percentile(latencies: &BTreeMap<u64, u64>, count: u64, percent: u64) -> u64 {
    let rank = count.saturating_mul(percent).div_ceil(100);
    let mut seen = 0;
    let is_reached = |(_, count): &(&u64, &u64)| {
        seen += **count;
        seen >= rank
    };
    latencies.iter().find(is_reached).map_or(0, |(latency, _)| *latency)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_latencies_of_searches() {
        let groups = |counts: &[(Option<&str>, u64, u64)], by| {
            let counted = counts.iter().map(|(value, latency_ms, count)| CountedSearches {
                value: value.map(str::to_owned),
                latency_ms: *latency_ms,
                count: *count,
            });
            let groups = search_groups(by, counted).into_iter();
            let parts = |group: SearchGroup| {
                let value = serde_json::to_value(group.value).unwrap().to_string();
                (value, group.count, group.latency_ms.p50, group.latency_ms.p95)
            };
            groups.map(parts).collect::<Vec<_>>()
        };
        let hits = [(Some("true"), 3, 1), (Some("false"), 9, 19), (Some("false"), 500, 1)];
        let expect = [("false".to_owned(), 20, 9, 9), ("true".to_owned(), 1, 3, 3)];
        assert_eq!(groups(&hits, SearchGrouping::CacheHit), expect);
        let days = [(Some("2026-11-27"), 0, 1), (Some("2026-11-28"), 1, 1), (Some("2026-11-28"), 7, 1)];
        let expect = [("\"2026-11-28\"".to_owned(), 2, 1, 7), ("\"2026-11-27\"".to_owned(), 1, 0, 0)];
        assert_eq!(groups(&days, SearchGrouping::Day), expect);
        let feedback = [(None, 4, 2), (Some("helpful"), 8, 1)];
        let expect = [("null".to_owned(), 2, 4, 4), ("\"helpful\"".to_owned(), 1, 8, 8)];
        assert_eq!(groups(&feedback, SearchGrouping::Feedback), expect);
        assert_eq!(groups(&[], SearchGrouping::Day), []);
    }
}
