//! Spans of days: a day, a week, a month, a quarter, a year.

use std::fmt;
use std::ops::Range;

use fetchwell_source::{DatePrecision, SearchDate};
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// First and last year of a date.
const YEARS: std::ops::RangeInclusive<i16> = 1000..=2200;

/// A date at the beginning of some tokens.
pub(super) struct FoundDate {
    /// Number of tokens.
    pub(super) length: usize,
    /// Its readings, one or two.
    pub(super) spans: Vec<Span>,
}

/// Days from the first to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    first: Date,
    last: Date,
    precision: DatePrecision,
}

impl Span {
    /// Returns the span of a day, month and year in numbers; `None` for a day that no calendar has.
    pub(super) fn of_day(year: i16, month: i16, day: i16) -> Option<Self> {
        Some(Self::day(date(year, month, day)?))
    }

    /// Returns the span of one day.
    pub(super) fn day(day: Date) -> Self {
        Self { first: day, last: day, precision: DatePrecision::Day }
    }

    /// Returns the span of some days; `None` if they are in the wrong order.
    pub(super) fn days(first: Date, last: Date) -> Option<Self> {
        (first <= last).then_some(Self { first, last, precision: DatePrecision::Week })
    }

    /// Returns the week of a day, from Monday to Sunday.
    pub(super) fn week(day: Date) -> Option<Self> {
        let since_monday = i64::from(day.weekday().to_monday_zero_offset());
        let first = day.checked_sub(since_monday.days()).ok()?;
        Self::days(first, first.checked_add(6.days()).ok()?)
    }

    /// Returns the span of a month.
    pub(super) fn month(year: i16, month: i16) -> Option<Self> {
        let first = date(year, month, 1)?;
        Some(Self { first, last: first.last_of_month(), precision: DatePrecision::Month })
    }

    /// Returns the span of a quarter, 1 to 4.
    pub(super) fn quarter(year: i16, quarter: i16) -> Option<Self> {
        if !(1..=4).contains(&quarter) {
            return None;
        }
        let first = date(year, quarter * 3 - 2, 1)?;
        let last = date(year, quarter * 3, 1)?.last_of_month();
        Some(Self { first, last, precision: DatePrecision::Quarter })
    }

    /// Returns the span of a year.
    pub(super) fn year(year: i16) -> Option<Self> {
        Some(Self { first: date(year, 1, 1)?, last: date(year, 12, 31)?, precision: DatePrecision::Year })
    }

    /// Returns true for one day.
    pub(super) fn is_day(&self) -> bool {
        self.precision == DatePrecision::Day
    }

    /// Returns the first day.
    pub(super) fn first(&self) -> Date {
        self.first
    }

    /// Returns the time of the span in a time zone; `None` if it is out of the range of timestamps.
    pub(super) fn to_search_date(self, zone: &TimeZone, place: Range<usize>) -> Option<SearchDate> {
        let start = self.first.to_zoned(zone.clone()).ok()?.timestamp();
        let end = self.last.tomorrow().ok()?.to_zoned(zone.clone()).ok()?.timestamp();
        Some(SearchDate { start, end, precision: self.precision, place })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, precision } = self;
        match precision {
            DatePrecision::Day => write!(f, "{first}"),
            DatePrecision::Month => write!(f, "{:04}-{:02}", first.year(), first.month()),
            DatePrecision::Year => write!(f, "{:04}", first.year()),
            DatePrecision::Week | DatePrecision::Quarter => write!(f, "{first} to {last}"),
        }
    }
}

fn date(year: i16, month: i16, day: i16) -> Option<Date> {
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    Date::new(year, month, day).ok().filter(|_| YEARS.contains(&year))
}
