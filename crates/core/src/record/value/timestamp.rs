//! Timestamps that are written as text.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// Parses a timestamp with its offset from UTC. Checks the shape of the text first, because most texts are no
/// timestamp.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    if text.len() >= 17 && begins_like_a_day(text) { text.parse().ok() } else { None }
}

/// Parses a time without a zone, such as `2026-04-01T10:00`, or a date as its midnight.
pub fn parse_local_time(text: &str) -> Option<DateTime> {
    if begins_like_a_day(text) { text.parse().ok() } else { None }
}

/// Returns true if a text has the shape of a date, of which most texts have no part.
fn begins_like_a_day(text: &str) -> bool {
    let bytes = text.as_bytes();
    (10..=40).contains(&bytes.len())
        && bytes.first().is_some_and(u8::is_ascii_digit)
        && bytes.get(4) == Some(&b'-')
        && bytes.get(7) == Some(&b'-')
}

/// Parses the day that a text begins with, as its start in UTC.
pub fn start_of_day(text: &str) -> Option<Timestamp> {
    let day: Date = text.get(..10)?.parse().ok()?;
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Parses a timestamp, or a time without a zone as one in UTC. A date is no time.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let local = || {
        let time = if text.len() > 10 { parse_local_time(text)? } else { return None };
        Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    parse_timestamp(text).or_else(local)
}

/// Returns a time in UTC with nine digits of a second, a form in which times sort as strings.
pub fn comparable(text: &str) -> Option<String> {
    let timestamp = parse_time(text)?;
    let mut written = String::with_capacity(30);
    write!(written, "{timestamp:.9}").ok()?;
    Some(written)
}
