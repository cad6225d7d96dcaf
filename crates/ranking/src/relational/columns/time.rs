//! Timestamps and dates of usual forms as numbers, from which their text is made again.
//!
//! A number is the millisecond since 1970 in UTC times four, plus the form of the text. Texts of other forms stay texts.

use serde_json::Value;

/// Number of forms that a number distinguishes.
const FORMS: i64 = 4;

/// Milliseconds of a day.
pub(super) const DAY: i64 = 86_400_000;

/// First millisecond of the year 0000, and the last one that is a timestamp: 9999-12-30T22:00:00.999Z.
pub(super) const FIRST: i64 = -62_167_219_200_000;
pub(super) const LAST: i64 = 253_402_207_200_999;

/// Form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum TimeForm {
    /// Timestamp such as `2026-04-01T10:00:00Z`.
    Seconds,
    /// Timestamp such as `2026-04-01T10:00:00.000Z`.
    Millis,
    /// Date such as `2026-04-01`.
    Date,
}

impl TimeForm {
    fn number(self) -> i64 {
        match self {
            Self::Seconds => 0,
            Self::Millis => 1,
            Self::Date => 2,
        }
    }
}

/// Returns the number of a text; `None` for a text of another form.
pub(super) fn encode(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let form = match bytes.len() {
        20 => TimeForm::Seconds,
        24 => TimeForm::Millis,
        10 => TimeForm::Date,
        _ => return None,
    };
    let digits = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits.iter().all(u8::is_ascii_digit).then_some(())?;
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    };
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let mut millis = days_from_civil(year, month, day) * DAY;
    if form != TimeForm::Date {
        let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        millis += ((hour * 60 + minute) * 60 + second) * 1_000;
    }
    if form == TimeForm::Millis {
        millis += digits(20, 23)?;
    }
    if form != TimeForm::Date && millis > LAST {
        return None;
    }
    let number = millis * FORMS + form.number();
    // A day that its month does not have, and other separators, are written differently.
    (self::text(number) == text).then_some(number)
}

/// Returns the millisecond and the form of a number.
pub(in super::super) fn decode(number: i64) -> (i64, TimeForm) {
    let form = match number.rem_euclid(FORMS) {
        0 => TimeForm::Seconds,
        1 => TimeForm::Millis,
        _ => TimeForm::Date,
    };
    (number.div_euclid(FORMS), form)
}

/// Returns the number of a millisecond in a form.
pub(super) fn number(millis: i64, form: TimeForm) -> i64 {
    millis * FORMS + form.number()
}

/// Returns the text of a number.
pub(super) fn text(number: i64) -> String {
    let (millis, form) = decode(number);
    let (year, month, day) = civil_from_days(millis.div_euclid(DAY));
    let of_day = millis.rem_euclid(DAY);
    let (second, milli) = (of_day / 1_000, of_day % 1_000);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    match form {
        TimeForm::Date => format!("{year:04}-{month:02}-{day:02}"),
        TimeForm::Seconds => format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"),
        TimeForm::Millis => {
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
        }
    }
}

/// Returns the text of a number as a JSON value.
pub(super) fn value(number: i64) -> Value {
    Value::String(text(number))
}

/// Returns the number of days from 1970-01-01 to a day of the Gregorian calendar (Howard Hinnant, `days_from_civil`).
pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// Returns year, month and day of a number of days since 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * of_era + of_era / 4 - of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    (of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use fetchwell_core::record::parse_timestamp;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn usual_forms_are_numbers_and_others_stay_texts() {
        for text in [
            "2026-04-01T10:00:00Z",
            "2026-04-01T10:00:00.120Z",
            "2024-02-29",
            "0000-01-01T00:00:00Z",
            "9999-12-30T22:00:00.999Z",
            "1969-12-31T23:59:59.001Z",
        ] {
            assert_eq!(encode(text).map(super::text).as_deref(), Some(text));
        }
        for text in [
            "9999-12-31T23:59:59.999Z",
            "2026-02-29",
            "2026-04-31T10:00:00Z",
            "2026-04-01T24:00:00Z",
            "2026-04-01T10:00:60Z",
            "2026-04-01t10:00:00z",
            "2026-04-01 10:00:00Z",
            "2026-04-01T10:00:00+00",
            "2026-04-01T10:00:00,120Z",
            "+026-04-01",
            "２-04-01",
            "",
        ] {
            assert_eq!(encode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_timestamps(millis in FIRST..=LAST, is_exact in any::<bool>()) {
            let millis = if is_exact { millis.div_euclid(1_000) * 1_000 } else { millis };
            let form = if is_exact { TimeForm::Seconds } else { TimeForm::Millis };
            let number = number(millis, form);
            let text = text(number);
            prop_assert_eq!(encode(&text), Some(number));
            prop_assert_eq!(parse_timestamp(&text).map(jiff::Timestamp::as_millisecond), Some(millis));
            prop_assert_eq!(decode(number), (millis, form));
        }
    }
}
