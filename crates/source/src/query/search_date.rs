//! A time that a query names in plain text.

use std::ops::Range;

use jiff::Timestamp;

/// A time that a query names in plain text, such as `5 March 2025` or `last week`. It raises records of that time and
/// excludes none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchDate {
    /// First instant of the time.
    pub start: Timestamp,
    /// First instant after the time.
    pub end: Timestamp,
    /// Length of the time.
    pub precision: DatePrecision,
    /// Place of its words in [`super::SearchText::words`], in bytes. Both readings of `3/5/2025` have the same place.
    pub place: Range<usize>,
}

/// Length of a time that a query names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatePrecision {
    /// One whole day.
    Day,
    /// Some days, such as a week.
    Week,
    /// A whole month.
    Month,
    /// A quarter of a year.
    Quarter,
    /// A whole year.
    Year,
}
