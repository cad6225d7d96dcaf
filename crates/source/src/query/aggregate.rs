//! Query that counts or sums the records of one stream, and its answer.

use std::str::FromStr;

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::record::{Scalar, Unavailable};
use serde::Deserialize;
use serde_json::Number;

use super::{Filter, Purpose};

/// Number of groups without a limit.
const DEFAULT_GROUPS: usize = 20;

/// Query for one aggregate over the records of a stream, or one per group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateQuery {
    /// Stream to aggregate.
    pub stream: StreamName,
    /// Connection to aggregate; `None` includes every connection that has the stream.
    pub connection: Option<ConnectionId>,
    /// Aggregate function to compute.
    pub metric: Metric,
    /// Field that the function applies to. Every metric but `count` needs one.
    pub field: Option<String>,
    /// Grouping of the records, if there is one.
    pub grouping: Option<Grouping>,
    /// Second field to group by: each group of `grouping` is divided by its values.
    pub second_field: Option<String>,
    /// Maximum number of groups, 1 to 100.
    pub limit: usize,
    /// Filter on the records that are aggregated.
    pub filter: Filter,
    /// Purpose of the read.
    pub purpose: Purpose,
}

impl AggregateQuery {
    /// Creates a query over all records of a stream, in all connections, for at most 20 groups.
    #[must_use]
    pub fn new(stream: StreamName, metric: Metric) -> Self {
        Self {
            stream,
            connection: None,
            metric,
            field: None,
            grouping: None,
            second_field: None,
            limit: DEFAULT_GROUPS,
            filter: Filter::default(),
            purpose: Purpose::Answer,
        }
    }
}

/// Aggregate function of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Number of records.
    Count,
    /// Sum of a numeric field.
    Sum,
    /// Mean of a numeric field.
    Avg,
    /// Minimum of the values.
    Min,
    /// Maximum of the values.
    Max,
    /// Number of distinct values.
    CountDistinct,
}

impl Metric {
    /// All metrics, in the order of the documentation.
    pub const ALL: [Self; 6] = [Self::Count, Self::Sum, Self::Avg, Self::Min, Self::Max, Self::CountDistinct];

    /// Returns the name of the metric in a request.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::CountDistinct => "count_distinct",
        }
    }
}

/// Grouping of an aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grouping {
    /// Group by the value of a field; the largest groups come first.
    Field(String),
    /// Group by the time in a field. The newest groups are kept and returned in the order of time.
    Time {
        /// Field that contains the time.
        field: String,
        /// Length of a group.
        granularity: Granularity,
        /// Time zone that determines where days begin and end.
        time_zone: TimeZoneName,
    },
}

/// Length of a time group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Minute on the local clock.
    Minute,
    /// Hour on the local clock.
    Hour,
    /// A calendar day; 23 to 25 hours where clocks change.
    Day,
    /// Week that starts on Monday.
    Week,
    /// A calendar month.
    Month,
    /// Three calendar months.
    Quarter,
    /// A calendar year.
    Year,
}

impl Granularity {
    /// Returns the name of the granularity in a request.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
        }
    }
}

/// Name of an existing IANA time zone, such as `Europe/Oslo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeZoneName(String);

impl TimeZoneName {
    /// Returns the time zone `UTC`.
    #[must_use]
    pub fn utc() -> Self {
        Self("UTC".to_owned())
    }

    /// Returns the name of the time zone.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TimeZoneName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match jiff::tz::TimeZone::get(name) {
            Ok(_) => Ok(Self(name.to_owned())),
            Err(_unknown) => Err("it is no IANA time zone; write it as `Europe/Oslo` or `UTC`".to_owned()),
        }
    }
}

/// Answer to an [`AggregateQuery`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AggregateAnswer {
    /// Aggregate over all records; `None` if there are groups, or if no record has a value.
    pub value: Option<Scalar>,
    /// Parts of `value`, if the source has them and it is a mean.
    pub mean: Option<Mean>,
    /// Aggregate of each group, if the query has a grouping.
    pub groups: Option<Vec<Group>>,
    /// Number of records in groups beyond the limit, if the source reports it.
    pub other_count: Option<u64>,
    /// Number of records that passed the filter.
    pub filtered_count: Option<u64>,
    /// Sources that are missing from the answer.
    pub unavailable: Vec<Unavailable>,
    /// Notes for the reader, in our own words.
    pub notes: Vec<String>,
}

/// Group of records with its aggregate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Group {
    /// Value of the field or start of the time group; `None` for records without one.
    pub key: Option<Scalar>,
    /// Value of the second field, if the query has one; `None` for records without a value.
    pub second_key: Option<Scalar>,
    /// Aggregate of the group.
    pub value: Option<Scalar>,
    /// Parts of `value`, if the source has them and it is a mean.
    pub mean: Option<Mean>,
}

/// Parts of a mean, by which means of several sources are combined.
#[derive(Debug, Clone, PartialEq)]
pub struct Mean {
    /// Sum of the values.
    pub sum: Number,
    /// Number of the values.
    pub count: u64,
}
