//! A time that a query names, as ranking sees it.

use fetchwell_source::{DatePrecision, SearchDate};

/// Nearness of a record within a day of the time: of another time zone, or written the day after.
const NEAR: f32 = 0.5;

/// Number of seconds before and behind a time that count as near.
const MARGIN: i64 = 24 * 60 * 60;

/// Time that a query names, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    start: i64,
    end: i64,
    precision: DatePrecision,
}

impl TimeWindow {
    /// Creates the window of a date.
    pub(crate) fn new(date: &SearchDate) -> Self {
        Self { start: date.start.as_second(), end: date.end.as_second(), precision: date.precision }
    }

    /// Returns the first second that counts as near.
    #[must_use]
    pub fn after(self) -> i64 {
        self.start.saturating_sub(MARGIN)
    }

    /// Returns the first second that no longer counts as near.
    #[must_use]
    pub fn before(self) -> i64 {
        self.end.saturating_add(MARGIN)
    }

    /// Returns the nearness of a record by its second: 1 within the time, 0 for a record without a time.
    pub(crate) fn nearness(self, time: Option<i64>) -> f32 {
        match time {
            Some(time) if (self.start..self.end).contains(&time) => 1.0,
            Some(time) if (self.after()..self.before()).contains(&time) => NEAR,
            _ => 0.0,
        }
    }

    /// Returns the weight of the time beside the rarest word of the query. A year says less than a day.
    pub(crate) fn weight(self) -> f32 {
        match self.precision {
            DatePrecision::Day => 1.0,
            DatePrecision::Week => 0.9,
            DatePrecision::Month => 0.8,
            DatePrecision::Quarter => 0.7,
            DatePrecision::Year => 0.5,
        }
    }

    /// Returns true for a time of a quarter or less, of which records are shown if a query has no other words.
    #[must_use]
    pub fn is_narrow(self) -> bool {
        self.precision < DatePrecision::Year
    }
}

/// Returns the share of the words of a date in percent: they match texts with the same date, and are in many others.
pub(crate) fn word_share(precision: DatePrecision) -> u8 {
    match precision {
        DatePrecision::Day | DatePrecision::Week => 20,
        DatePrecision::Month | DatePrecision::Quarter => 35,
        DatePrecision::Year => 60,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_within_a_day_is_near() {
        let window = TimeWindow { start: 1_000_000, end: 1_086_400, precision: DatePrecision::Day };
        for (time, expect) in [
            (Some(1_000_000), 1.0),
            (Some(1_086_399), 1.0),
            (Some(1_086_400), NEAR),
            (Some(913_600), NEAR),
            (Some(913_599), 0.0),
            (Some(i64::MIN), 0.0),
            (None, 0.0),
        ] {
            assert!((window.nearness(time) - expect).abs() < f32::EPSILON, "{time:?}");
        }
    }
}
