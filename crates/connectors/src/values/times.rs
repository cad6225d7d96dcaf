//! Dates and times as text.
//!
//! A date becomes `2026-04-01`. A time becomes `2026-04-01T10:00:00+02:00`, and UTC is assumed if it has no offset.

use fetchwell_core::record::parse_timestamp;
use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::Offset;
use serde_json::Value;

/// Maximum length of a time in bytes.
const MAX_TIME_BYTES: usize = 40;

/// Seconds from 1601 to 1970.
const SECONDS_TO_1970: i64 = 11_644_473_600;

/// The order of the numbers of a date, such as `04/05/2026`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateOrder {
    DayMonthYear,
    MonthDayYear,
    YearMonthDay,
}

/// Date formats that are the same in every country.
const DAYS: [&str; 13] = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d %B %Y",
    "%d. %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %d %Y",
    "%B %d %Y",
];

const DAYS_DAY_FIRST: [&str; 3] = ["%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y"];

const DAYS_MONTH_FIRST: [&str; 3] = ["%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y"];

const CLOCKS: [&str; 5] = ["%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M%p"];

/// Unix timestamps from 2001 to 2100. A number in this range is a time in seconds, one in a thousand times the range
/// is a time in milliseconds.
const EPOCH_SECONDS: std::ops::Range<i64> = 978_307_200..4_102_444_800;

/// Parses a text as a time.
pub(super) fn read_time(text: &str, order: DateOrder) -> Option<String> {
    let text = text.trim();
    if text.len() > MAX_TIME_BYTES || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if text.contains('T') && parse_timestamp(text).is_some() {
        return Some(text.to_owned());
    }
    // The format of `Tue Mar 03 10:00:00 +0000 2026`.
    if let Ok(time) = Timestamp::strptime("%a %b %d %H:%M:%S %z %Y", text) {
        return Some(time.to_string());
    }
    let Some(colon) = text.find(':') else { return Some(read_day(text, order)?.to_string()) };
    let before = text.get(..colon)?;
    let hour = before.trim_end_matches(|character: char| character.is_ascii_digit()).len();
    let day = read_day(text.get(..hour)?.trim_end_matches([' ', ',', 'T', 't']), order)?;
    let (clock, offset) = split_offset(text.get(hour..)?);
    let clock = CLOCKS.iter().find_map(|format| Time::strptime(format, clock.trim()).ok())?;
    let time = offset.to_timestamp(day.to_datetime(clock)).ok()?;
    Some(match offset {
        Offset::UTC => time.to_string(),
        offset => time.display_with_offset(offset).to_string(),
    })
}

fn read_day(text: &str, order: DateOrder) -> Option<Date> {
    // The format of `Wed, 1 Apr 2026`.
    let text = match text.split_once(',') {
        Some((weekday, day)) if weekday.bytes().all(|byte| byte.is_ascii_alphabetic()) => day.trim(),
        _ => text,
    };
    let numeric = match order {
        DateOrder::DayMonthYear => DAYS_DAY_FIRST.as_slice(),
        DateOrder::MonthDayYear => DAYS_MONTH_FIRST.as_slice(),
        // Dates with the year first are among those of every country.
        DateOrder::YearMonthDay => &[],
    };
    let runs: Vec<usize> =
        text.split(|c: char| !c.is_ascii_digit()).map(str::len).filter(|len| *len > 0).collect();
    let has_year = runs.contains(&4) && runs.iter().all(|len| matches!(len, 1 | 2 | 4));
    let is_short = runs == [2, 2, 2];
    let formats =
        DAYS.iter().chain(numeric).filter(|format| if format.ends_with("%y") { is_short } else { has_year });
    formats.into_iter().find_map(|format| Date::strptime(format, text).ok())
}

/// Splits a time of day from its UTC offset.
fn split_offset(text: &str) -> (&str, Offset) {
    let text = text.trim();
    for zone in ["Z", "z", "UTC", "GMT"] {
        if let Some(clock) = text.strip_suffix(zone) {
            return (clock, Offset::UTC);
        }
    }
    let Some((at, sign)) = text.char_indices().rfind(|(_, character)| matches!(character, '+' | '-')) else {
        return (text, Offset::UTC);
    };
    let (clock, written) = text.split_at(at);
    let digits: String = written.chars().filter(char::is_ascii_digit).collect();
    let (hours, minutes) = match digits.len() {
        2 => (digits.parse().ok(), Some(0)),
        4 => (
            digits.get(..2).and_then(|hours| hours.parse().ok()),
            digits.get(2..).and_then(|minutes| minutes.parse().ok()),
        ),
        _ => (None, None),
    };
    let seconds = hours.zip(minutes).map(|(hours, minutes): (i32, i32)| hours * 3_600 + minutes * 60);
    let seconds = seconds.map(|seconds| if sign == '-' { -seconds } else { seconds });
    match seconds.and_then(|seconds| Offset::from_seconds(seconds).ok()) {
        Some(offset) => (clock, offset),
        None => (text, Offset::UTC),
    }
}

/// Returns the time that is so many seconds after the beginning of 1601, in which Windows and Chrome count.
pub(crate) fn time_since_1601(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds.checked_sub(SECONDS_TO_1970)?).ok()
}

/// Converts a value of a record to a time: a string, or seconds or milliseconds since 1970.
pub(crate) fn time_of_value(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => read_time(text, DateOrder::MonthDayYear),
        Value::Number(number) => {
            #[expect(clippy::cast_possible_truncation, reason = "times are far from the limits")]
            let number = number.as_i64().or_else(|| number.as_f64().map(|number| number as i64))?;
            let time = match (EPOCH_SECONDS.contains(&number), EPOCH_SECONDS.contains(&(number / 1_000))) {
                (true, _) => Timestamp::from_second(number),
                (false, true) => Timestamp::from_millisecond(number),
                (false, false) => return None,
            };
            Some(time.ok()?.to_string())
        }
        // An object of JSON-LD, such as `{"@value": "2026-04-01"}`.
        Value::Object(fields) => {
            fields.get("@value").filter(|value| value.is_string()).and_then(time_of_value)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn common_time_formats_are_parsed() {
        for (text, expect) in [
            ("2026-04-01", "2026-04-01"),
            ("2026/4/1", "2026-04-01"),
            ("01.04.2026", "2026-04-01"),
            ("1.4.2026", "2026-04-01"),
            ("01.04.26", "2026-04-01"),
            ("04/01/2026", "2026-04-01"),
            ("1-Apr-2026", "2026-04-01"),
            ("1 April 2026", "2026-04-01"),
            ("April 1, 2026", "2026-04-01"),
            ("Wed, 1 Apr 2026", "2026-04-01"),
            ("2026-04-01 10:00:00", "2026-04-01T10:00:00Z"),
            ("2026-04-01T10:00", "2026-04-01T10:00:00Z"),
            ("2026-04-01T10:00:00.5Z", "2026-04-01T10:00:00.5Z"),
            ("2026-04-01T10:00:00+02:00", "2026-04-01T10:00:00+02:00"),
            ("2026-04-01 10:00:00+0200", "2026-04-01T10:00:00+02:00"),
            ("2026-04-01 10:00:00 UTC", "2026-04-01T10:00:00Z"),
            ("01.04.2026 10:00", "2026-04-01T10:00:00Z"),
            ("4/1/2026, 1:05 PM", "2026-04-01T13:05:00Z"),
            ("Apr 1, 2026 12:30 AM", "2026-04-01T00:30:00Z"),
            ("Wed, 1 Apr 2026 10:00:00 -0330", "2026-04-01T10:00:00-03:30"),
            ("Wed Apr 01 10:00:00 +0000 2026", "2026-04-01T10:00:00Z"),
        ] {
            assert_eq!(read_time(text, DateOrder::MonthDayYear).as_deref(), Some(expect), "{text}");
        }
        assert_eq!(read_time("13/04/2026", DateOrder::DayMonthYear).as_deref(), Some("2026-04-13"));
        assert_eq!(
            read_time("02-04-2026 9:05", DateOrder::DayMonthYear).as_deref(),
            Some("2026-04-02T09:05:00Z")
        );
    }

    #[test]
    fn other_texts_are_not_times() {
        for text in [
            "",
            "soon",
            "1.2.3",
            "1.10.20",
            "10.0.0.1",
            "12",
            "2026",
            "20260401",
            "2026-13-01",
            "32.01.2026",
            "10:00",
            "13/04/2026",
            "1/2/2026/3",
            "May",
            "call 2026-04-01",
            "0026-04-01 x",
            "a:b",
            "1.2.2026:5",
        ] {
            assert_eq!(read_time(text, DateOrder::MonthDayYear), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_seconds_or_milliseconds_since_1970() {
        assert_eq!(time_of_value(&json!(1_775_037_600)).as_deref(), Some("2026-04-01T10:00:00Z"));
        assert_eq!(time_of_value(&json!(1_775_037_600_000_i64)).as_deref(), Some("2026-04-01T10:00:00Z"));
        assert_eq!(time_of_value(&json!({"@value": "2026-04-01"})).as_deref(), Some("2026-04-01"));
        for value in [json!(12), json!(null), json!(["2026-04-01"]), json!({"a": "2026-04-01"})] {
            assert_eq!(time_of_value(&value), None, "{value}");
        }
    }
}
