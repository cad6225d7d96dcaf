//! Times in the operators of a query: ages, and dates with their year first.

use fetchwell_core::record::parse_timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// Maximum number of digits of an age.
const MAX_AGE_DIGITS: usize = 5;

/// Returns the time before `now` by an age such as `30d`, `12h`, `2w`, `6m` or `1y`, or a date.
pub fn parse_since(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.to_ascii_lowercase();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).filter(|_| digits <= MAX_AGE_DIGITS)?;
    let age = match (number.parse::<i64>(), unit) {
        (Ok(hours), "h") => Span::new().try_hours(hours),
        (Ok(days), "d") => Span::new().try_days(days),
        (Ok(weeks), "w") => Span::new().try_weeks(weeks),
        (Ok(months), "m") => Span::new().try_months(months),
        (Ok(years), "y") => Span::new().try_years(years),
        _ => return parse_date(&text),
    };
    let since = now.to_zoned(TimeZone::UTC).checked_sub(age.ok()?).ok()?;
    Some(since.timestamp())
}

/// Parses a year, a month, a day or a time. Without an offset it is in UTC.
pub(super) fn parse_date(text: &str) -> Option<Timestamp> {
    if let Some(time) = parse_timestamp(&text.to_ascii_uppercase()) {
        return Some(time);
    }
    let has_year = text.bytes().take_while(u8::is_ascii_digit).count() == 4;
    let start: DateTime = match text.len() {
        _ if !has_year => return None,
        4 => Date::new(text.parse().ok()?, 1, 1).ok()?.into(),
        7 => format!("{text}-01").parse::<Date>().ok()?.into(),
        _ => text.to_ascii_uppercase().parse().ok()?,
    };
    Some(start.to_zoned(TimeZone::UTC).ok()?.timestamp())
}
