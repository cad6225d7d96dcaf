//! Counting and summing up one stream.

use std::str::FromStr;

use serde::Deserialize;

use super::{Filter, Purpose};
use crate::handle::{ConnectionId, StreamName};
use crate::record::{Scalar, Unavailable};

/// One figure over the records of a stream, or one for each group of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateQuery {
    /// The stream.
    pub stream: StreamName,
    /// Only of this connection, when given; else over every connection that has the stream.
    pub connection: Option<ConnectionId>,
    /// Which figure.
    pub metric: Metric,
    /// Of which field. Every metric but `count` needs one.
    pub field: Option<String>,
    /// In which groups.
    pub grouping: Option<Grouping>,
    /// How many groups at most, 1 to 100.
    pub limit: usize,
    /// Only over records that pass it.
    pub filter: Filter,
    /// What the answer is for.
    pub purpose: Purpose,
}

/// Which figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// How many records.
    Count,
    /// The sum of a number field.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// How many different values.
    CountDistinct,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Count, Self::Sum, Self::Min, Self::Max, Self::CountDistinct];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::CountDistinct => "count_distinct",
        }
    }
}

/// How records are grouped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grouping {
    /// By the value of a field; the largest groups first.
    Field(String),
    /// By the time in a field; the newest groups, in the order of time.
    Time {
        /// The field.
        field: String,
        /// How long each group is.
        granularity: Granularity,
        /// Where days begin and end.
        time_zone: TimeZoneName,
    },
}

/// How long a group of time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// A calendar day; 23 to 25 hours where clocks change.
    Day,
    /// From Monday on.
    Week,
    /// A calendar month.
    Month,
    /// Three calendar months.
    Quarter,
    /// A calendar year.
    Year,
}

impl Granularity {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
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

/// The IANA name of a time zone that exists, such as `Europe/Oslo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeZoneName(String);

impl TimeZoneName {
    /// `UTC`.
    #[must_use]
    pub fn utc() -> Self {
        Self("UTC".to_owned())
    }

    /// The name.
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

/// What answers an [`AggregateQuery`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AggregateAnswer {
    /// The figure over all; `None` when there are groups, and when no record has a value.
    pub value: Option<Scalar>,
    /// The figure of each group, when grouped.
    pub groups: Option<Vec<Group>>,
    /// Records in groups that are not shown, when grouped and the source says so.
    pub other_count: Option<u64>,
    /// Records that passed the filter.
    pub filtered_count: Option<u64>,
    /// Sources whose records are not in it.
    pub unavailable: Vec<Unavailable>,
    /// What the reader should know about the answer, in our own words.
    pub notes: Vec<String>,
}

/// One group.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The field's value, or the start of the time; `None` for records without one.
    pub key: Option<Scalar>,
    /// The figure.
    pub value: Option<Scalar>,
}
