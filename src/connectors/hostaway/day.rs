//! Days and moments of the sample. Its time begins and ends with the same days on every run: no clock is looked at.

use jiff::civil::{Date, date};
use jiff::{Span, ToSpan as _};

/// The first day on which a stay begins.
pub(super) const FIRST_DAY: Date = date(2025, 1, 1);

/// How many days there are on which stays begin: to the end of February 2026.
pub(super) const DAYS: u64 = 424;

/// A day so many days later, or earlier.
pub(super) fn later(day: Date, days: i64) -> Date {
    day.checked_add(days.days()).unwrap_or(day)
}

/// A month so many months after the first.
pub(super) fn month(number: i64) -> Date {
    FIRST_DAY.checked_add(Span::new().months(number)).unwrap_or(FIRST_DAY)
}

/// A moment of a day, so many seconds after midnight UTC: `2025-01-01T09:30:00Z`.
pub(super) fn moment(day: Date, second: u64) -> String {
    let (hour, minute, second) = (second / 3_600 % 24, second / 60 % 60, second % 60);
    format!("{day}T{hour:02}:{minute:02}:{second:02}Z")
}
