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

/// Parses a time without a zone, such as `2026-04-01T10:00`, or a date as its midnight. A time has minutes.
pub fn parse_local_time(text: &str) -> Option<DateTime> {
    let has_zone = |rest: &str| rest.bytes().any(|byte| !matches!(byte, b'0'..=b'9' | b':' | b'.' | b','));
    let is_time =
        text.as_bytes().get(13) == Some(&b':') && text.get(14..).is_some_and(|rest| !has_zone(rest));
    if (text.len() == 10 || is_time) && begins_like_a_day(text) { text.parse().ok() } else { None }
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
    if text.len() <= 10 {
        return None;
    }
    match parse_local_time(text) {
        Some(time) => Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp()),
        None => parse_timestamp(text),
    }
}

/// Returns a time in UTC with nine digits of a second, a form in which times sort as strings.
pub fn comparable(text: &str) -> Option<String> {
    let timestamp = parse_time(text)?;
    let mut written = String::with_capacity(30);
    write!(written, "{timestamp:.9}").ok()?;
    Some(written)
}

/// Returns a text in the form in which texts and times sort together: a time in that of [`comparable`].
pub fn ordered(text: &str) -> String {
    comparable(text).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_a_zone_are_in_utc() {
        for text in [
            "2026-04-01T10:00",
            "2026-04-01 10:00:00",
            "2026-04-01T10:00:00.000",
            "2026-04-01T12:00:00+02:00",
        ] {
            assert_eq!(comparable(text).as_deref(), Some("2026-04-01T10:00:00.000000000Z"), "{text}");
        }
        let others = "2026-04-01; 2026-04-01 10; 2026-04-01 123456; 2026-04-01T10+02; 2026-04-01[x]; \
            2026-04-01T10:00:00[Europe/Oslo]; 2026-04-01 Trip.pdf; 2026-04-01 10:00 o'clock; 2026-13-01T10:00; 2026-04-01T24:00";
        for text in others.split("; ") {
            assert_eq!(comparable(text), None, "{text}");
        }
    }
}
