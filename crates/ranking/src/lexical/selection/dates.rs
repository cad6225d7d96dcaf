//! Leaves dates out of a text, with the times beside them.
//!
//! A date is numeric with a year of four digits (`2026-03-12`, `12.3.2026`), or the name of a month beside a day or a year
//! (`12 March`, `Mar 12, 2026`). Other numbers stay: they may be what distinguishes two texts.

/// Names of months in English and German. Shorter forms of at least three letters count, too.
const MONTHS: [&str; 18] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "januar",
    "februar",
    "märz",
    "mai",
    "oktober",
    "dezember",
];

/// Other short forms of months.
const SHORT_MONTHS: [&str; 4] = ["sept", "jun", "jul", "mrz"];

/// Names of weekdays in English and German. Forms of two or three letters count, too.
const WEEKDAYS: [&str; 14] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "montag",
    "dienstag",
    "mittwoch",
    "donnerstag",
    "freitag",
    "samstag",
    "sonntag",
];

/// Words between a date and a time.
const BEFORE_TIME: [&str; 2] = ["at", "um"];

/// Words behind a time.
const BEHIND_TIME: [&str; 7] = ["am", "pm", "uhr", "gmt", "utc", "cet", "cest"];

/// Meaning of a piece between white space for a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A whole date.
    Date,
    Day,
    Month,
    Year,
    Weekday,
    Time,
    /// Half of the day or zone behind a time.
    Zone,
    BeforeTime,
    Other,
}

/// Returns the pieces of a text between white space, without those of dates.
pub(super) fn without_dates(text: &str) -> Vec<&str> {
    let pieces: Vec<&str> = text.split_whitespace().collect();
    let kinds: Vec<Kind> = pieces.iter().map(|piece| kind_of(piece)).collect();
    let mut left = Vec::with_capacity(pieces.len());
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        match date_length(kinds.get(at..).unwrap_or_default()) {
            0 => {
                left.push(*piece);
                at += 1;
            }
            length => at += length,
        }
    }
    left
}

/// Returns the number of pieces of the date that a text begins with; 0 if it begins with something else.
fn date_length(kinds: &[Kind]) -> usize {
    let length = match kinds {
        [Kind::Weekday, rest @ ..] => match day_length(rest) {
            0 => 0,
            length => length + 1,
        },
        _ => day_length(kinds),
    };
    let behind = kinds.get(length..).unwrap_or_default();
    if length == 0 { 0 } else { length + time_length(behind) }
}

/// Returns the number of pieces of a date without a weekday and a time.
fn day_length(kinds: &[Kind]) -> usize {
    match kinds {
        [Kind::Day, Kind::Month, Kind::Year, ..] | [Kind::Month, Kind::Day, Kind::Year, ..] => 3,
        [Kind::Day, Kind::Month, ..] | [Kind::Month, Kind::Day | Kind::Year, ..] => 2,
        [Kind::Date, ..] => 1,
        _ => 0,
    }
}

/// Returns the number of pieces of the time behind a date.
fn time_length(kinds: &[Kind]) -> usize {
    let start = match kinds {
        [Kind::BeforeTime, Kind::Time, ..] => 2,
        [Kind::Time, ..] => 1,
        _ => return 0,
    };
    let zones = kinds.iter().skip(start).take_while(|kind| **kind == Kind::Zone);
    start + zones.count()
}

fn kind_of(piece: &str) -> Kind {
    let core = piece.trim_matches(|character: char| character.is_ascii_punctuation());
    if core.starts_with(|character: char| character.is_ascii_digit()) {
        let is_zone = piece.starts_with(['+', '-']) && number(core, 4..=4).is_some();
        return if is_zone { Kind::Zone } else { kind_of_number(core) };
    }
    let is_capital = core.starts_with(char::is_uppercase);
    let is_any = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(core));
    if core.len() > 12 || core.len() < 2 || (!is_capital && !is_any(&BEFORE_TIME) && !is_any(&BEHIND_TIME)) {
        return Kind::Other;
    }
    let word = core.to_lowercase();
    // `may` and `mar` are words; months have a capital.
    let is_short_form =
        |name: &&str| name.starts_with(&word) && (word.len() == 3 || word.len() == name.len());
    if is_capital && (MONTHS.iter().any(is_short_form) || SHORT_MONTHS.contains(&&*word)) {
        return Kind::Month;
    }
    if is_capital
        && WEEKDAYS
            .iter()
            .any(|name| name.starts_with(&word) && (word.len() <= 3 || word.len() == name.len()))
    {
        return Kind::Weekday;
    }
    match &*word {
        word if BEFORE_TIME.contains(&word) => Kind::BeforeTime,
        word if BEHIND_TIME.contains(&word) => Kind::Zone,
        _ => Kind::Other,
    }
}

/// Returns the kind of a piece that begins with a digit.
fn kind_of_number(core: &str) -> Kind {
    let (date, time) = core.split_once(['T', 't']).map_or((core, None), |(date, time)| (date, Some(time)));
    if is_numeric_date(date)
        && time.is_none_or(|time| is_clock(time.split(['+', '-', 'Z', 'z', '.']).next().unwrap_or_default()))
    {
        return Kind::Date;
    }
    let clock = core.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let suffix = core.get(clock.len()..).unwrap_or_default().to_ascii_lowercase();
    if is_clock(clock) && (suffix.is_empty() || suffix == "am" || suffix == "pm") {
        return Kind::Time;
    }
    let is_ordinal = matches!(&*suffix, "" | "st" | "nd" | "rd" | "th");
    if is_ordinal && number(clock, 1..=2).is_some_and(|day| (1..=31).contains(&day)) {
        return Kind::Day;
    }
    if suffix.is_empty() && is_year(clock) { Kind::Year } else { Kind::Other }
}

fn is_numeric_date(text: &str) -> bool {
    let Some(separator) = text.chars().find(|character| matches!(character, '-' | '.' | '/')) else {
        return false;
    };
    let parts: Vec<&str> = text.split(separator).collect();
    let is_day = |text: &str, max: u32| number(text, 1..=2).is_some_and(|day| (1..=max).contains(&day));
    match parts[..] {
        [year, month, day] if year.len() == 4 => is_year(year) && is_day(month, 12) && is_day(day, 31),
        // The month is first in America.
        [one, other, year] => {
            is_year(year) && is_day(one, 31) && is_day(other, 31) && (is_day(one, 12) || is_day(other, 12))
        }
        _ => false,
    }
}

fn is_clock(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_part = |text: &str, max: u32| number(text, 1..=2).is_some_and(|part| part <= max);
    match parts[..] {
        [hour, minute] => is_part(hour, 24) && is_part(minute, 59),
        [hour, minute, second] => is_part(hour, 24) && is_part(minute, 59) && is_part(second, 60),
        _ => false,
    }
}

fn is_year(text: &str) -> bool {
    number(text, 4..=4).is_some_and(|year| (1900..2100).contains(&year))
}

/// Returns the number that a text of so many digits is.
fn number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits && digits.contains(&text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_the_times_beside_them_are_left_out() {
        for (text, expect) in [
            ("sent 2026-03-12 to all", "sent to all"),
            ("sent 2026-03-12T10:11:12Z, to all", "sent to all"),
            ("On Mon, 12 Mar 2026 at 10:12 AM, Ann wrote:", "On Ann wrote:"),
            ("Date: Thu, 12 Mar 2026 10:12:13 +0200 (CET)", "Date:"),
            ("Am 12.3.2026 um 10:12 Uhr schrieb Ann:", "Am schrieb Ann:"),
            ("Rent for March 2026.", "Rent for"),
            ("due March 3rd, 2026 or (4/5/2026)", "due or"),
            ("Donnerstag, 12. März", ""),
        ] {
            assert_eq!(without_dates(text).join(" "), expect, "{text}");
        }
    }

    #[test]
    fn other_numbers_stay() {
        for text in [
            "invoice 1234 of 12",
            "version 1.2.3 and 10.2.26",
            "invoice 12 may be late",
            "order 2026",
            "at 10:12",
            "room 31 on Monday",
            "host 10.0.0.1",
            "12/99/2026 and 2026-13-01",
            "march 12 to the sea",
            "part 3 Margin 4",
        ] {
            assert_eq!(without_dates(text).join(" "), text);
        }
    }
}
