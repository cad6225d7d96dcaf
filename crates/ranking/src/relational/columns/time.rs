//! Timestamps and dates as numbers, from which their text is made again.
//!
//! Timestamps of the usual forms and dates are the millisecond since 1970 in UTC times four, plus the form. Other forms are far
//! from these numbers: those with up to six digits of a second, a space, an offset or no zone are microseconds times the number
//! of forms, plus the form, and timestamps in UTC with more digits are nanoseconds in the same way. Texts of other forms, and of
//! years that do not fit, stay texts.

use fetchwell_core::record::parse_time;
use serde_json::Value;

/// Number of the usual forms that a number distinguishes.
const FORMS: i64 = 4;

/// Units of a second, and seconds of a day.
const MICROS: i64 = 1_000_000;
pub(super) const NANOS: i64 = 1_000_000_000;
pub(super) const DAY: i64 = 86_400;

/// First second of the year 0000, and the last one that has timestamps: 9999-12-30T22:00:00Z.
pub(super) const FIRST: i64 = -62_167_219_200;
pub(super) const LAST: i64 = 253_402_207_200;

/// Numbers from this one on, and below its negative, are of other forms: those of the usual ones are less than 2^50.
const OTHER: i64 = 1 << 52;

/// Seconds of the years 1950, 1970 and 2100, between which timestamps of other forms are numbers.
const YEAR_1950: i64 = -631_152_000;
const YEAR_2100: i64 = 4_102_444_800;

/// Offsets from UTC in quarters of an hour, from -12:00 to +14:00, and in hours.
const FIRST_QUARTER: i64 = -48;
const QUARTERS: i64 = 105;
const FIRST_HOUR: i64 = -12;
const HOURS: i64 = 27;

/// Numbers of zones: UTC, none, quarters of an hour and hours.
const ZONES: i64 = 2 + QUARTERS + HOURS;

/// Numbers of digits of a microsecond, and of forms of timestamps in microseconds.
const DIGITS: i64 = 7;
const MICRO_FORMS: i64 = ZONES * 2 * DIGITS;

/// Forms of timestamps in nanoseconds: nine digits, or seven or eight without zeros at the end.
const NANO_FORMS: i64 = 2;

const _: () = assert!((YEAR_2100 - YEAR_1950) * MICROS <= (i64::MAX - OTHER) / MICRO_FORMS);
const _: () = assert!(YEAR_2100 * NANOS <= (i64::MAX - OTHER) / NANO_FORMS);

/// Zone of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    /// UTC, written as `Z`.
    Utc,
    /// No zone: the time is compared as one in UTC.
    Local,
    /// Offset such as `+05:30`, in quarters of an hour.
    Quarters(i64),
    /// Offset such as `+02`, in hours.
    Hours(i64),
}

/// Form of the text of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Date such as `2026-04-01`.
    Date,
    Time {
        zone: Zone,
        has_space: bool,
        digits: u8,
    },
}

/// Time with the form of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Time {
    /// Second since 1970 in UTC, which a text without a zone is taken as.
    seconds: i64,
    nanos: i64,
    form: Form,
}

/// Place of a time among others, as filters and lists order them. Two places are equal if the times count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct TimeOrder {
    day: i64,
    /// False for a date, which is before the times of its day.
    is_time: bool,
    nanos: i64,
}

impl TimeOrder {
    /// Returns the place of a timestamp.
    pub(super) fn of_timestamp(seconds: i64, nanos: i64) -> Self {
        let form = Form::Time { zone: Zone::Utc, has_space: false, digits: 9 };
        Time { seconds, nanos, form }.order()
    }

    /// Returns the place of a text; `None` for a text that is no time.
    pub(in super::super) fn of_text(text: &str) -> Option<Self> {
        let Some(timestamp) = parse_time(text) else { return encode(text).map(order) };
        let nanos = timestamp.as_nanosecond();
        let seconds = i64::try_from(nanos.div_euclid(NANOS.into())).ok()?;
        let nanos = i64::try_from(nanos.rem_euclid(NANOS.into())).ok()?;
        (FIRST..=LAST).contains(&seconds).then(|| Self::of_timestamp(seconds, nanos))
    }

    /// Returns true for a time, and false for a date.
    pub(super) fn is_time(self) -> bool {
        self.is_time
    }
}

impl Zone {
    /// Returns the number of the zone.
    fn number(self) -> i64 {
        match self {
            Self::Utc => 0,
            Self::Local => 1,
            Self::Quarters(quarters) => 2 + quarters - FIRST_QUARTER,
            Self::Hours(hours) => 2 + QUARTERS + hours - FIRST_HOUR,
        }
    }

    fn from_number(number: i64) -> Self {
        match number {
            0 => Self::Utc,
            1 => Self::Local,
            _ if number < 2 + QUARTERS => Self::Quarters(number - 2 + FIRST_QUARTER),
            _ => Self::Hours(number - 2 - QUARTERS + FIRST_HOUR),
        }
    }

    /// Returns the seconds that the clock of the zone is ahead of UTC.
    fn offset(self) -> i64 {
        match self {
            Self::Utc | Self::Local => 0,
            Self::Quarters(quarters) => quarters * 900,
            Self::Hours(hours) => hours * 3_600,
        }
    }

    /// Parses the end of a text; `None` for other spellings of an offset, such as `-00:00`.
    fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [] => return Some(Self::Local),
            [b'Z'] => return Some(Self::Utc),
            _ => {}
        }
        let sign = match bytes.first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = digits(bytes, 1, 3)?;
        let zone = match bytes.len() {
            3 => Self::Hours(sign * hours),
            6 if bytes.get(3) == Some(&b':') => {
                let minutes = digits(bytes, 4, 6).filter(|minutes| minutes % 15 == 0 && *minutes < 60)?;
                Self::Quarters(sign * (hours * 4 + minutes / 15))
            }
            _ => return None,
        };
        let is_known = match zone {
            Self::Quarters(0) | Self::Hours(0) => sign == 1,
            Self::Quarters(quarters) => (FIRST_QUARTER..FIRST_QUARTER + QUARTERS).contains(&quarters),
            Self::Hours(hours) => (FIRST_HOUR..FIRST_HOUR + HOURS).contains(&hours),
            Self::Utc | Self::Local => true,
        };
        is_known.then_some(zone)
    }
}

impl Form {
    /// Returns the number of a usual form.
    fn usual(self) -> Option<i64> {
        match self {
            Self::Time { zone: Zone::Utc, has_space: false, digits: 0 } => Some(0),
            Self::Time { zone: Zone::Utc, has_space: false, digits: 3 } => Some(1),
            Self::Date => Some(2),
            Self::Time { .. } => None,
        }
    }
}

impl Time {
    /// Parses a text; `None` for one of no form. The text of the time is the parsed one.
    fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let has = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
        if !(10..=35).contains(&bytes.len()) || !has(4, b'-') || !has(7, b'-') {
            return None;
        }
        let (year, month, day) = (digits(bytes, 0, 4)?, digits(bytes, 5, 7)?, digits(bytes, 8, 10)?);
        let days = days_from_civil(year, month, day);
        // Its month must have the day.
        if !(1..=12).contains(&month) || civil_from_days(days) != (year, month, day) {
            return None;
        }
        let days = days * DAY;
        if bytes.len() == 10 {
            return Some(Self { seconds: days, nanos: 0, form: Form::Date });
        }
        let (hour, minute, second) = (digits(bytes, 11, 13)?, digits(bytes, 14, 16)?, digits(bytes, 17, 19)?);
        let has_space = has(10, b' ');
        let is_separated = (has_space || has(10, b'T')) && has(13, b':') && has(16, b':');
        if !is_separated || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let rest = bytes.get(19..)?;
        let fraction = if rest.first() == Some(&b'.') {
            rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count()
        } else {
            0
        };
        let zone = if fraction > 0 { rest.get(fraction + 1..)? } else { rest };
        let digits_of_second = u8::try_from(fraction).ok().filter(|digits| *digits <= 9)?;
        let mut nanos = digits(rest, 1, 1 + fraction)?;
        (fraction..9).for_each(|_| nanos *= 10);
        let zone = Zone::parse(zone)?;
        let seconds = days + (hour * 60 + minute) * 60 + second - zone.offset();
        Some(Self { seconds, nanos, form: Form::Time { zone, has_space, digits: digits_of_second } })
    }

    /// Returns the number of the time; `None` for one that does not fit.
    fn number(self) -> Option<i64> {
        let Self { seconds, nanos, form } = self;
        if let Some(usual) = form.usual() {
            let fits = form == Form::Date || seconds <= LAST;
            return fits.then_some((seconds * 1_000 + nanos / MICROS) * FORMS + usual);
        }
        let Form::Time { zone, has_space, digits } = form else { return None };
        if digits > 6 {
            let fits = zone == Zone::Utc && !has_space && (0..YEAR_2100).contains(&seconds);
            let is_trimmed = i64::from(digits < 9);
            return fits.then(|| i64::MIN + (seconds * NANOS + nanos) * NANO_FORMS + is_trimmed);
        }
        let fits = (YEAR_1950..YEAR_2100).contains(&seconds);
        fits.then(|| {
            let form = (zone.number() * 2 + i64::from(has_space)) * DIGITS + i64::from(digits);
            OTHER + ((seconds - YEAR_1950) * MICROS + nanos / 1_000) * MICRO_FORMS + form
        })
    }

    /// Returns the time of a number.
    fn from_number(number: i64) -> Self {
        let utc = |digits| Form::Time { zone: Zone::Utc, has_space: false, digits };
        if number >= OTHER {
            let (micros, form) = ((number - OTHER) / MICRO_FORMS, (number - OTHER) % MICRO_FORMS);
            let (style, digits) = (form / DIGITS, u8::try_from(form % DIGITS).unwrap_or_default());
            let form = Form::Time { zone: Zone::from_number(style / 2), has_space: style % 2 == 1, digits };
            return Self { seconds: micros / MICROS + YEAR_1950, nanos: micros % MICROS * 1_000, form };
        }
        if number < -OTHER {
            let number = number.wrapping_sub(i64::MIN);
            let (seconds, nanos) = (number / NANO_FORMS / NANOS, number / NANO_FORMS % NANOS);
            let digits = match number % NANO_FORMS {
                0 => 9,
                _ if nanos % 100 == 0 => 7,
                _ => 8,
            };
            return Self { seconds, nanos, form: utc(digits) };
        }
        let millis = number.div_euclid(FORMS);
        let form = match number.rem_euclid(FORMS) {
            0 => utc(0),
            1 => utc(3),
            _ => Form::Date,
        };
        Self { seconds: millis.div_euclid(1_000), nanos: millis.rem_euclid(1_000) * MICROS, form }
    }

    fn text(self) -> String {
        let zone = if let Form::Time { zone, .. } = self.form { zone } else { Zone::Utc };
        let seconds = self.seconds + zone.offset();
        let (year, month, day) = civil_from_days(seconds.div_euclid(DAY));
        let Form::Time { has_space, digits, .. } = self.form else {
            return format!("{year:04}-{month:02}-{day:02}");
        };
        let of_day = seconds.rem_euclid(DAY);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        let separator = if has_space { ' ' } else { 'T' };
        let mut text = format!("{year:04}-{month:02}-{day:02}{separator}{hour:02}:{minute:02}:{second:02}");
        if digits > 0 {
            let fraction = self.nanos / 10_i64.pow(9 - u32::from(digits));
            text.push_str(&format!(".{fraction:0width$}", width = digits.into()));
        }
        let sign = if zone.offset() < 0 { '-' } else { '+' };
        let minutes = zone.offset().abs() / 60;
        match zone {
            Zone::Utc => text.push('Z'),
            Zone::Local => {}
            Zone::Quarters(_) => text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)),
            Zone::Hours(_) => text.push_str(&format!("{sign}{:02}", minutes / 60)),
        }
        text
    }

    fn order(self) -> TimeOrder {
        let (day, of_day) = (self.seconds.div_euclid(DAY), self.seconds.rem_euclid(DAY));
        TimeOrder { day, is_time: self.form != Form::Date, nanos: of_day * NANOS + self.nanos }
    }
}

/// Returns the number of a text; `None` for a text of another form.
pub(super) fn encode(text: &str) -> Option<i64> {
    let time = Time::parse(text)?;
    // Eight digits that end with a zero have no number.
    time.number().filter(|number| Time::from_number(*number) == time)
}

/// Returns the millisecond of a timestamp since 1970; `None` for a date and for a time without a zone.
pub(in super::super) fn millis(number: i64) -> Option<i64> {
    let Time { seconds, nanos, form } = Time::from_number(number);
    match form {
        Form::Date | Form::Time { zone: Zone::Local, .. } => None,
        Form::Time { .. } => Some(seconds * 1_000 + nanos / MICROS),
    }
}

/// Returns the millisecond on the clock since 1970 of a time without a zone, or of the midnight of a date.
pub(in super::super) fn clock_millis(number: i64) -> i64 {
    let Time { seconds, nanos, .. } = Time::from_number(number);
    seconds * 1_000 + nanos / MICROS
}

/// Returns the place of a number among times.
pub(in super::super) fn order(number: i64) -> TimeOrder {
    Time::from_number(number).order()
}

/// Returns the text of a number.
pub(super) fn text(number: i64) -> String {
    Time::from_number(number).text()
}

/// Returns a timestamp as a JSON value.
pub(super) fn timestamp(seconds: i64, nanos: i64) -> Value {
    let form = Form::Time { zone: Zone::Utc, has_space: false, digits: 9 };
    Value::String(Time { seconds, nanos, form }.text())
}

/// Returns the text of a number as a JSON value.
pub(super) fn value(number: i64) -> Value {
    Value::String(text(number))
}

/// Returns the number that digits from one place to another are.
fn digits(bytes: &[u8], from: usize, to: usize) -> Option<i64> {
    let digits = if from == to { &[] } else { bytes.get(from..to)? };
    digits.iter().all(u8::is_ascii_digit).then_some(())?;
    Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
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
    use fetchwell_core::record::{comparable, ordered};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_forms_are_numbers_and_others_stay_texts() {
        for text in [
            "2026-04-01T10:00:00Z",
            "2026-04-01T10:00:00.120Z",
            "2024-02-29",
            "0000-01-01T00:00:00Z",
            "9999-12-30T22:00:00.999Z",
            "1969-12-31T23:59:59.001Z",
            "2026-04-01T10:00:00+02:00",
            "2026-04-01T01:00:00.123456-03:30",
            "2026-04-01 10:00:00.5+00",
            "2026-04-01 10:00:00.123456+00:00",
            "2026-04-01 10:00:00",
            "2026-04-01T10:00:00.123456",
            "2026-04-01T10:00:00.123456789Z",
            "2026-04-01T10:00:00.1234560Z",
            "2026-04-01T10:00:00.12345678Z",
            "1950-01-01T00:00:00+00:00",
            "2099-12-31T23:59:59.999999Z",
        ] {
            assert_eq!(encode(text).map(super::text).as_deref(), Some(text));
        }
        let others = "9999-12-31T23:59:59.999Z; 2026-02-29; 2026-04-31T10:00:00Z; 2026-04-01T24:00:00Z; \
            2026-04-01T10:00:60Z; 2026-04-01t10:00:00z; 2026-04-01 10:00; 2026-04-01T10:00:00,120Z; \
            2026-04-01T10:00:00.Z; 2026-04-01T10:00:00-00:00; 2026-04-01T10:00:00+02:10; \
            2026-04-01T10:00:00+01:75; 2026-04-01T10:00:00-00; 2026-04-01T10:00:00+15:00; \
            2026-04-01T10:00:00+0200; 2026-04-01T10:00:00.12345600Z; 2026-04-01T10:00:00.123456789+00:00; \
            2026-04-01T10:00:00.1234567891Z; 2026-02-30 10:00:00; 1949-12-31T23:59:59.5Z; \
            2100-01-01T00:00:00+00:00; +026-04-01; ２-04-01";
        for text in others.split("; ").chain([""]) {
            assert_eq!(encode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn numbers_give_their_texts(
            text in "(20|19|00)[0-9]{2}[-/][0-1][0-9][-:][0-3][0-9]([T tZ][0-2][0-9]:[0-6][0-9]:[0-6][0-9]([.,][0-9]{0,10})?(Z|z|[+-][0-1][0-9](:?[0-9][05])?)?)?",
        ) {
            if let Some(number) = encode(&text) {
                prop_assert_eq!(super::text(number), text);
            }
        }
    }

    fn any_time() -> impl Strategy<Value = String> {
        let second = prop_oneof![Just(1_790_000_000), 1_789_990_000..1_790_090_000_i64, YEAR_1950..YEAR_2100];
        let zone = prop_oneof![
            Just(Zone::Utc),
            Just(Zone::Local),
            (FIRST_QUARTER..FIRST_QUARTER + QUARTERS).prop_map(Zone::Quarters),
            (FIRST_HOUR..FIRST_HOUR + HOURS).prop_map(Zone::Hours),
        ];
        let nanos = prop_oneof![Just(0), Just(500_000_000), 0..NANOS];
        let time = (second, nanos, zone, any::<bool>(), 0..=9_u8).prop_map(
            |(seconds, nanos, zone, has_space, digits)| {
                Time { seconds, nanos, form: Form::Time { zone, has_space, digits } }.text()
            },
        );
        prop_oneof![
            9 => time,
            1 => (0..40_000_i64).prop_map(|day| {
                Time { seconds: day * DAY, nanos: 0, form: Form::Date }.text()
            }),
        ]
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_timestamps(seconds in FIRST..=LAST, millis in 0..1_000_i64, digits in prop::sample::select(vec![0, 3])) {
            let nanos = if digits == 0 { 0 } else { millis * MICROS };
            let time = Time { seconds, nanos, form: Form::Time { zone: Zone::Utc, has_space: false, digits } };
            let number = encode(&time.text()).unwrap();
            prop_assert_eq!(Time::from_number(number), time);
            let timestamp = parse_time(&time.text()).map(jiff::Timestamp::as_millisecond);
            prop_assert_eq!(timestamp, Some(seconds * 1_000 + nanos / MICROS));
            prop_assert_eq!(timestamp, super::millis(number));
        }

        #[test]
        fn times_are_ordered_as_their_texts(a in any_time(), b in any_time()) {
            if let (Some(first), Some(second)) = (encode(&a), encode(&b)) {
                prop_assert_eq!((text(first), text(second)), (a.clone(), b.clone()));
                prop_assert_eq!(order(first).cmp(&order(second)), ordered(&a).cmp(&ordered(&b)));
                prop_assert_eq!(TimeOrder::of_text(&ordered(&a)), Some(order(first)));
                prop_assert_eq!(order(first).is_time(), comparable(&a).is_some());
            }
        }

        #[test]
        fn usual_forms_of_these_years_are_numbers(time in any_time()) {
            let digits = time.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
            prop_assert!(encode(&time).is_some() || digits > 6, "{}", time);
        }
    }
}
