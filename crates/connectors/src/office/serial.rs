//! Days, times and durations as the numbers that workbooks of Excel have for them.

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, ToSpan};
use serde_json::Value;

/// Numbers of the built-in formats that show a day or time.
const DATE_FORMATS: [std::ops::RangeInclusive<u32>; 4] = [14..=22, 27..=36, 45..=47, 50..=58];

/// Number of the built-in format `[h]:mm:ss`.
const DURATION_FORMAT: u32 = 46;

/// Number of days from 1900 to the end of the year 9999.
const MAX_SERIAL: f64 = 2_958_466.0;

/// Meaning of a number of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeStyle {
    /// A day, a time of a day, or both.
    Date,
    /// Hours, minutes and seconds, without a day.
    Duration,
}

impl TimeStyle {
    /// Returns what a built-in format shows, if it is a part of a day, time or duration.
    pub(super) fn from_built_in(format: u32) -> Option<Self> {
        match format {
            DURATION_FORMAT => Some(Self::Duration),
            _ => DATE_FORMATS.iter().any(|range| range.contains(&format)).then_some(Self::Date),
        }
    }

    /// Returns what a number format shows, if it is a part of a day, time or duration. A duration has its largest unit in
    /// brackets: `[h]:mm`.
    pub(super) fn from_format(code: &str) -> Option<Self> {
        let lower = code.to_ascii_lowercase();
        let has_unit = ["[h", "[m]", "[mm]", "[s"].iter().any(|unit| lower.contains(unit));
        let style = if has_unit { Self::Duration } else { Self::Date };
        let (mut is_quoted, mut is_bracketed, mut is_escaped) = (false, false, false);
        let mut characters = code.chars();
        let shows_time = characters.any(|character| {
            let is_literal = is_quoted || is_bracketed || is_escaped;
            is_escaped = false;
            match character {
                '"' => is_quoted = !is_quoted,
                '[' if !is_quoted => is_bracketed = true,
                ']' => is_bracketed = false,
                '\\' | '_' | '*' if !is_literal => is_escaped = true,
                _ => {}
            }
            !is_literal && matches!(character, 'd' | 'D' | 'm' | 'M' | 'y' | 'Y' | 'h' | 'H' | 's' | 'S')
        });
        (shows_time || has_unit).then_some(style)
    }

    /// Returns the day, time or duration that a number of days is.
    pub(super) fn value(self, serial: f64, starts_in_1904: bool) -> Option<Value> {
        match self {
            Self::Date => date_of_serial(serial, starts_in_1904),
            Self::Duration => duration_of_serial(serial),
        }
    }
}

/// Returns the hours, minutes and seconds of a number of days.
fn duration_of_serial(serial: f64) -> Option<Value> {
    if !(0.0..MAX_SERIAL).contains(&serial) {
        return None;
    }
    let seconds = format!("{:.0}", serial * 86_400.0).parse::<u64>().ok()?;
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    Some(Value::from(format!("{:02}:{:02}:{seconds:02}", minutes / 60, minutes % 60)))
}

/// Returns the day or time of a number of days since 1900 or 1904. Numbers below 1 are times of day.
fn date_of_serial(serial: f64, starts_in_1904: bool) -> Option<Value> {
    if serial > 0.0 && serial < 1.0 {
        return duration_of_serial(serial);
    }
    if !(1.0..MAX_SERIAL).contains(&serial) {
        return None;
    }
    // Excel counts 29 February 1900, which did not exist.
    let (year, month, day) = if starts_in_1904 {
        (1904, 1, 1)
    } else if serial < 60.0 {
        (1899, 12, 31)
    } else {
        (1899, 12, 30)
    };
    let start = Date::new(year, month, day).ok()?;
    let days = format!("{:.0}", serial.trunc()).parse::<i64>().ok()?;
    let date = start.checked_add(days.days()).ok()?;
    if serial.fract() == 0.0 {
        return Some(Value::from(date.to_string()));
    }
    let seconds = format!("{:.0}", serial.fract() * 86_400.0).parse::<i64>().ok()?;
    let time: DateTime = date.at(0, 0, 0, 0).checked_add(SignedDuration::from_secs(seconds)).ok()?;
    Some(Value::from(format!("{}Z", time.strftime("%Y-%m-%dT%H:%M:%S"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_days() {
        for (serial, in_1904, expect) in [
            (1.0, false, Some("1900-01-01")),
            (59.0, false, Some("1900-02-28")),
            (61.0, false, Some("1900-03-01")),
            (46_113.0, false, Some("2026-04-01")),
            (46_113.5, false, Some("2026-04-01T12:00:00Z")),
            (44_651.0, true, Some("2026-04-01")),
            (0.343_75, false, Some("08:15:00")),
            (0.0, false, None),
            (1e300, false, None),
            (f64::NAN, false, None),
        ] {
            assert_eq!(date_of_serial(serial, in_1904), expect.map(Value::from), "{serial}");
        }
    }

    #[test]
    fn durations_are_hours() {
        for (serial, expect) in
            [(1.25, Some("30:00:00")), (0.0, Some("00:00:00")), (0.000_7, Some("00:01:00")), (-1.0, None)]
        {
            assert_eq!(duration_of_serial(serial), expect.map(Value::from), "{serial}");
        }
    }

    #[test]
    fn formats_that_show_dates_are_recognized() {
        for (code, expect) in [
            ("yyyy-mm-dd", Some(TimeStyle::Date)),
            ("h:mm", Some(TimeStyle::Date)),
            ("[h]:mm:ss", Some(TimeStyle::Duration)),
            ("[mm]:ss", Some(TimeStyle::Duration)),
            ("[Blue]d.m.yy", Some(TimeStyle::Date)),
            ("0.00", None),
            ("[Red]0.00", None),
            ("0 \"days\"", None),
            ("#,##0\\ \\d", None),
        ] {
            assert_eq!(TimeStyle::from_format(code), expect, "{code}");
        }
    }
}
