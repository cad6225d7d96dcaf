//! Time buckets in a time zone, including its days of 23 and 25 hours.

use std::fmt;

use fetchwell_core::record::parse_timestamp;
use fetchwell_source::{Granularity, QueryFault, SourceError, TimeZoneName};
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};
use serde_json::Value;

/// Assigns times to buckets of one granularity in one time zone.
#[derive(Debug)]
pub(super) struct TimeBuckets {
    granularity: Granularity,
    zone: TimeZone,
}

/// Time bucket, identified by its start. Buckets of one granularity are all of one variant and sort by time. When
/// clocks go back, the repeated hour in summer time comes first, although its name would sort last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TimeBucket {
    /// Bucket of a day or longer.
    Day(Date),
    /// Bucket shorter than a day. The offset from UTC is used only for its name.
    Moment(Timestamp, Offset),
}

impl fmt::Display for TimeBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day(date) => date.fmt(f),
            Self::Moment(start, offset) => start.display_with_offset(*offset).fmt(f),
        }
    }
}

impl TimeBuckets {
    pub(crate) fn new(granularity: Granularity, zone: &TimeZoneName) -> Result<Self, SourceError> {
        let zone = TimeZone::get(zone.as_str()).map_err(|error| SourceError::InvalidQuery {
            fault: QueryFault::InvalidAggregate,
            problem: error.to_string(),
            hint: "Write `time_zone` as `Europe/Oslo` or `UTC`.".to_owned(),
        })?;
        Ok(Self { granularity, zone })
    }

    /// Returns the bucket of a timestamp (`2026-04-01T10:00:00Z`) or a date (`2026-04-01`). A bucket shorter than a
    /// day keeps its offset, which tells the two repeated hours apart when clocks go back.
    pub(super) fn bucket_of(&self, value: &Value) -> Option<TimeBucket> {
        let text = value.as_str()?;
        let local = match parse_timestamp(text) {
            Some(timestamp) => timestamp.to_zoned(self.zone.clone()),
            None => text.parse::<Date>().ok()?.to_zoned(self.zone.clone()).ok()?,
        };
        let date = local.date();
        let start = match self.granularity {
            Granularity::Minute => return on_the_clock(&local, 60),
            Granularity::Hour => return on_the_clock(&local, 3_600),
            Granularity::Day => date,
            Granularity::Week => {
                date.checked_sub(i64::from(date.weekday().to_monday_zero_offset()).days()).ok()?
            }
            Granularity::Month => date.first_of_month(),
            Granularity::Quarter => Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1).ok()?,
            Granularity::Year => date.first_of_year(),
        };
        Some(TimeBucket::Day(start))
    }
}

/// Returns the bucket of the minute or hour on the local clock. Offsets of zones need not be whole minutes.
fn on_the_clock(local: &Zoned, seconds: i64) -> Option<TimeBucket> {
    let offset = i64::from(local.offset().seconds());
    let shown = local.timestamp().as_second() + offset;
    let start = Timestamp::from_second(shown.div_euclid(seconds) * seconds - offset).ok()?;
    Some(TimeBucket::Moment(start, local.offset()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(granularity: Granularity, zone: &str, time: &str, expect: Option<&str>) {
        let buckets = TimeBuckets::new(granularity, &zone.parse().unwrap()).unwrap();
        let bucket = buckets.bucket_of(&json!(time)).map(|bucket| bucket.to_string());
        assert_eq!(bucket.as_deref(), expect, "{granularity:?} {zone} {time}");
    }

    #[test]
    fn days_are_those_of_the_zone() {
        check(Granularity::Day, "UTC", "2026-04-01T23:30:00Z", Some("2026-04-01"));
        check(Granularity::Day, "Europe/Oslo", "2026-04-01T23:30:00Z", Some("2026-04-02"));
        check(Granularity::Day, "America/New_York", "2026-04-02T03:59:59Z", Some("2026-04-01"));
        check(Granularity::Day, "Asia/Tokyo", "2026-04-01", Some("2026-04-01"));
        check(Granularity::Week, "UTC", "2026-04-05T10:00:00Z", Some("2026-03-30"));
        check(Granularity::Month, "UTC", "2026-04-05T10:00:00Z", Some("2026-04-01"));
        check(Granularity::Quarter, "UTC", "2026-12-05T10:00:00Z", Some("2026-10-01"));
        check(Granularity::Year, "UTC", "2026-12-05T10:00:00Z", Some("2026-01-01"));
        check(Granularity::Day, "UTC", "soon", None);
    }

    #[test]
    fn the_hour_that_comes_twice_is_two_groups() {
        // Clocks in Oslo go back at 01:00 UTC on 2026-10-25.
        check(Granularity::Hour, "Europe/Oslo", "2026-10-25T00:30:00Z", Some("2026-10-25T02:00:00+02:00"));
        check(Granularity::Hour, "Europe/Oslo", "2026-10-25T01:30:00Z", Some("2026-10-25T02:00:00+01:00"));
        check(Granularity::Minute, "Asia/Kolkata", "2026-10-25T01:30:59Z", Some("2026-10-25T07:00:00+05:30"));
        check(Granularity::Hour, "Asia/Kolkata", "2026-10-25T01:20:59Z", Some("2026-10-25T06:00:00+05:30"));
        check(Granularity::Hour, "UTC", "1969-12-31T23:59:59Z", Some("1969-12-31T23:00:00+00:00"));
    }
    /// Checks that later times are in later buckets, and at which times a new bucket starts.
    #[track_caller]
    fn check_order(granularity: Granularity, zone: &str, times: &[&str], expect: &[&str]) {
        let buckets = TimeBuckets::new(granularity, &zone.parse().unwrap()).unwrap();
        let mut found: Vec<TimeBucket> =
            times.iter().filter_map(|time| buckets.bucket_of(&json!(time))).collect();
        assert!(found.is_sorted(), "{zone} {found:?}");
        found.dedup();
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn groups_are_in_the_order_of_time() {
        check_order(
            Granularity::Hour,
            "Europe/Oslo",
            &[
                "2026-10-24T23:59:59Z",
                "2026-10-25T00:00:00Z",
                "2026-10-25T00:59:59Z",
                "2026-10-25T01:00:00Z",
                "2026-10-25T02:00:00Z",
            ],
            &[
                "2026-10-25T01:00:00+02:00",
                "2026-10-25T02:00:00+02:00",
                "2026-10-25T02:00:00+01:00",
                "2026-10-25T03:00:00+01:00",
            ],
        );
        check_order(
            Granularity::Minute,
            "America/New_York",
            &["2026-11-01T05:59:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:59:30Z"],
            &["2026-11-01T01:59:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T01:59:00-05:00"],
        );
        check_order(
            Granularity::Day,
            "Europe/Oslo",
            &["2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"],
            &["2026-10-25", "2026-10-26"],
        );
    }
}
