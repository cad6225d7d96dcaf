//! Time buckets in a time zone, including its days of 23 and 25 hours.

use std::fmt;
use std::ops::Range;

use fetchwell_core::record::{parse_local_time, parse_timestamp};
use fetchwell_source::{Granularity, QueryFault, SourceError, TimeZoneName};
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};
use serde_json::Value;

/// Milliseconds of a day.
const DAY_MILLIS: i64 = 86_400_000;

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

    /// Returns the bucket of a timestamp (`2026-04-01T10:00:00Z`), of a time without a zone, which is one of the zone of the buckets, or
    /// of a date (`2026-04-01`). A bucket shorter than a day keeps its offset, which tells the two repeated hours apart when clocks go
    /// back.
    pub(super) fn bucket_of(&self, value: &Value) -> Option<TimeBucket> {
        let text = value.as_str()?;
        let Some(time) = parse_local_time(text) else {
            return self.bucket_at(&parse_timestamp(text)?.to_zoned(self.zone.clone()));
        };
        match time.to_zoned(self.zone.clone()) {
            Ok(local) => self.bucket_at(&local),
            // The last day of the calendar, which stands for no end, is a day in all zones and a timestamp in few.
            Err(_) => self.bucket_on(time.date()),
        }
    }

    fn bucket_at(&self, local: &Zoned) -> Option<TimeBucket> {
        match self.granularity {
            Granularity::Minute => on_the_clock(local, 60),
            Granularity::Hour => on_the_clock(local, 3_600),
            _ => self.bucket_on(local.date()),
        }
    }

    /// Returns the bucket of a day; `None` if buckets are shorter.
    fn bucket_on(&self, date: Date) -> Option<TimeBucket> {
        let start = match self.granularity {
            Granularity::Minute | Granularity::Hour => return None,
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

    /// Returns the bucket of a timestamp in milliseconds, with the milliseconds around it that are in the same bucket: the part of
    /// the bucket between two changes of the clock. Returns `None` near the ends of the calendar.
    pub(super) fn span_at(&self, millis: i64) -> Option<(Range<i64>, TimeBucket)> {
        let local = Timestamp::from_millisecond(millis).ok()?.to_zoned(self.zone.clone());
        let bucket = self.bucket_at(&local)?;
        let offset = i64::from(local.offset().seconds()) * 1_000;
        let (start, end) = match bucket {
            TimeBucket::Moment(start, _) => {
                let seconds = if self.granularity == Granularity::Minute { 60 } else { 3_600 };
                (start.as_millisecond(), start.as_millisecond() + seconds * 1_000)
            }
            TimeBucket::Day(first) => {
                let next = match self.granularity {
                    Granularity::Week => first.checked_add(7.days()),
                    Granularity::Month => first.checked_add(1.month()),
                    Granularity::Quarter => first.checked_add(3.months()),
                    Granularity::Year => first.checked_add(1.year()),
                    Granularity::Minute | Granularity::Hour | Granularity::Day => first.checked_add(1.day()),
                };
                let at = |date: Date| {
                    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond() - offset)
                };
                (at(first)?, at(next.ok()?)?)
            }
        };
        // Between two changes the offset is the same, and so the bucket of a time is that of its time on the clock.
        let after = Timestamp::from_millisecond(millis + 1).ok()?;
        let change = self.zone.preceding(after).next().map(|change| change.timestamp().as_nanosecond());
        let changed = change.and_then(|nanos| i64::try_from((nanos + 999_999).div_euclid(1_000_000)).ok());
        let next = self.zone.following(local.timestamp()).next();
        let next = next.map(|change| change.timestamp().as_millisecond());
        Some((start.max(changed.unwrap_or(start))..end.min(next.unwrap_or(end)), bucket))
    }

    /// Returns the bucket of a time without a zone, in milliseconds on the clock, with the milliseconds around it that are in the same
    /// bucket: the minute, hour or day on the clock, or only the time itself if the clock changes near it.
    pub(super) fn span_on_the_clock(&self, millis: i64) -> Option<(Range<i64>, TimeBucket)> {
        let unit = match self.granularity {
            Granularity::Minute => 60_000,
            Granularity::Hour => 3_600_000,
            _ => DAY_MILLIS,
        };
        let time = TimeZone::UTC.to_datetime(Timestamp::from_millisecond(millis).ok()?);
        let local = time.to_zoned(self.zone.clone()).ok()?;
        let bucket = self.bucket_at(&local)?;
        let at = local.timestamp().as_millisecond();
        let before = Timestamp::from_millisecond(at - 2 * DAY_MILLIS).ok()?;
        let change = self.zone.following(before).next().map(|change| change.timestamp().as_millisecond());
        let is_near = change.is_some_and(|change| change < at + 2 * DAY_MILLIS);
        let start = millis.div_euclid(unit) * unit;
        Some((if is_near { millis..millis + 1 } else { start..start + unit }, bucket))
    }
}

/// Returns the bucket of the minute or hour on the local clock. Offsets of zones need not be whole minutes.
fn on_the_clock(local: &Zoned, seconds: i64) -> Option<TimeBucket> {
    let offset = i64::from(local.offset().seconds());
    // `as_second` rounds up before 1970.
    let second = local.timestamp().as_nanosecond().div_euclid(1_000_000_000);
    let shown = i64::try_from(second).ok()? + offset;
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
        check(Granularity::Day, "America/New_York", "9999-12-31", Some("9999-12-31"));
        check(Granularity::Quarter, "UTC", "9999-12-31 23:59:59", Some("9999-10-01"));
        check(Granularity::Hour, "UTC", "9999-12-31", None);
        check(Granularity::Day, "America/New_York", "2026-04-01T23:30", Some("2026-04-01"));
        check(Granularity::Hour, "Europe/Oslo", "2026-04-01 10:59:59", Some("2026-04-01T10:00:00+02:00"));
        check(Granularity::Minute, "UTC", "2026-04-01T10:59:59.5", Some("2026-04-01T10:59:00+00:00"));
    }

    #[test]
    fn all_times_of_a_span_are_in_its_bucket() {
        use Granularity::{Day, Hour, Minute, Month, Quarter, Week, Year};
        // Clocks of St. John's went back at 00:01, so that a day began twice; those of Apia left out a day.
        for zone in
            ["UTC", "Europe/Oslo", "America/St_Johns", "Pacific/Apia", "Asia/Kolkata", "Africa/Monrovia"]
        {
            for granularity in [Minute, Hour, Day, Week, Month, Quarter, Year] {
                let buckets = TimeBuckets::new(granularity, &zone.parse().unwrap()).unwrap();
                let bucket_at = |millis: i64| {
                    let text = Timestamp::from_millisecond(millis).unwrap().to_string();
                    buckets.bucket_of(&json!(text)).unwrap()
                };
                for time in [
                    "2005-10-30T02:30:59.500Z",
                    "2005-10-30T02:31:00Z",
                    "2005-10-30T03:29:00Z",
                    "2011-12-30T09:59:59.999Z",
                    "2011-12-30T10:00:00Z",
                    "1971-12-31T23:59:30Z",
                    "1972-01-07T00:44:30Z",
                    "1950-06-01T00:00:00Z",
                    "2026-10-25T00:59:59Z",
                    "2026-10-25T01:00:00Z",
                    "2150-07-01T00:00:00Z",
                ] {
                    let millis = time.parse::<Timestamp>().unwrap().as_millisecond();
                    let (span, bucket) = buckets.span_at(millis).unwrap();
                    assert!(span.contains(&millis), "{zone} {granularity:?} {time} {span:?}");
                    let inside = [span.start, span.start + (span.end - span.start) / 2, span.end - 1, millis];
                    for at in inside {
                        assert_eq!(bucket_at(at), bucket, "{zone} {granularity:?} {time} {at}");
                    }
                }
            }
        }
    }

    /// Times near changes of the clock: by half an hour, across midnight, at 00:01 and at odd seconds.
    #[test]
    fn times_on_the_clock_are_in_the_buckets_of_their_texts() {
        use Granularity::{Day, Hour, Minute, Month};
        for (zone, start) in [
            ("America/St_Johns", "2005-04-02T23:00:00"),
            ("America/St_Johns", "2006-10-28T23:00:00"),
            ("America/Nuuk", "2026-03-28T21:00:00"),
            ("America/Caracas", "2016-05-01T00:00:00"),
            ("Asia/Pyongyang", "2018-05-04T22:00:00"),
            ("Africa/Monrovia", "1972-01-06T23:30:00"),
            ("Australia/Lord_Howe", "2026-04-04T23:00:00"),
            ("Europe/Oslo", "2026-10-24T23:00:00"),
            ("UTC", "2026-10-24T23:00:00"),
        ] {
            let start = format!("{start}Z").parse::<Timestamp>().unwrap().as_millisecond();
            for granularity in [Minute, Hour, Day, Month] {
                let buckets = TimeBuckets::new(granularity, &zone.parse().unwrap()).unwrap();
                let mut found: Option<(Range<i64>, TimeBucket)> = None;
                for at in (0..900).map(|number| start + number * 20_000) {
                    let known = found.take().filter(|(span, _)| span.contains(&at));
                    let (span, bucket) = known.unwrap_or_else(|| buckets.span_on_the_clock(at).unwrap());
                    let text = Timestamp::from_millisecond(at).unwrap().to_string();
                    let text = text.trim_end_matches('Z');
                    assert_eq!(
                        Some(bucket),
                        buckets.bucket_of(&json!(text)),
                        "{zone} {granularity:?} {text}"
                    );
                    found = Some((span, bucket));
                }
            }
        }
    }

    #[test]
    fn the_hour_that_comes_twice_is_two_groups() {
        // Clocks in Oslo go back at 01:00 UTC on 2026-10-25.
        check(Granularity::Hour, "Europe/Oslo", "2026-10-25T00:30:00Z", Some("2026-10-25T02:00:00+02:00"));
        check(Granularity::Hour, "Europe/Oslo", "2026-10-25T01:30:00Z", Some("2026-10-25T02:00:00+01:00"));
        check(Granularity::Minute, "Asia/Kolkata", "2026-10-25T01:30:59Z", Some("2026-10-25T07:00:00+05:30"));
        check(Granularity::Hour, "Asia/Kolkata", "2026-10-25T01:20:59Z", Some("2026-10-25T06:00:00+05:30"));
        check(Granularity::Hour, "UTC", "1969-12-31T23:59:59Z", Some("1969-12-31T23:00:00+00:00"));
        check(Granularity::Minute, "UTC", "1950-06-01T00:00:59.999Z", Some("1950-06-01T00:00:00+00:00"));
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
