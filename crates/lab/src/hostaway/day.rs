//! Dates and timestamps of the sample. They are the same on every run, because no clock is used.

use jiff::civil::{Date, date};
use jiff::{Span, ToSpan as _};

/// First day on which a stay starts.
pub(super) const FIRST_DAY: Date = date(2025, 1, 1);

/// Number of days on which stays start: to the end of February 2026.
pub(super) const DAYS: u64 = 424;

/// Returns the date `days` days later, or earlier if negative.
pub(super) fn later(day: Date, days: i64) -> Date {
    day.checked_add(days.days()).unwrap_or(day)
}

/// Returns the first day of a month. `number` 0 is the first month of the sample.
pub(super) fn month(number: i64) -> Date {
    FIRST_DAY.checked_add(Span::new().months(number)).unwrap_or(FIRST_DAY)
}

/// Returns a timestamp on a day, `second` seconds after midnight UTC: `2025-01-01T09:30:00Z`.
pub(super) fn timestamp(day: Date, second: u64) -> String {
    let (hour, minute, second) = (second / 3_600 % 24, second / 60 % 60, second % 60);
    format!("{day}T{hour:02}:{minute:02}:{second:02}Z")
}
