//! Rules of recurring events (RFC 5545, section 3.3.10) in words.

use std::fmt::Write as _;

/// Days of the week by their names in rules.
const DAYS: [(&str, &str); 7] = [
    ("MO", "Monday"),
    ("TU", "Tuesday"),
    ("WE", "Wednesday"),
    ("TH", "Thursday"),
    ("FR", "Friday"),
    ("SA", "Saturday"),
    ("SU", "Sunday"),
];

/// Returns a rule in words, such as `every 2 weeks on Monday, Friday until 2026-12-31`. Parts of other kinds are left out.
pub(super) fn describe_rule(rule: &str) -> String {
    let rule = rule.trim().to_ascii_uppercase();
    let part = |name: &str| {
        rule.split(';')
            .filter_map(|part| part.split_once('='))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    };
    let unit = match part("FREQ") {
        Some("SECONDLY") => "second",
        Some("MINUTELY") => "minute",
        Some("HOURLY") => "hour",
        Some("DAILY") => "day",
        Some("WEEKLY") => "week",
        Some("MONTHLY") => "month",
        Some("YEARLY") => "year",
        _ => return "yes".to_owned(),
    };
    let mut words = match part("INTERVAL").and_then(|interval| interval.parse::<u32>().ok()) {
        Some(interval) if interval > 1 => format!("every {interval} {unit}s"),
        _ => format!("every {unit}"),
    };
    if let Some(days) = part("BYDAY") {
        let days: Vec<String> = days.split(',').filter_map(day_in_words).collect();
        let _ = write!(words, " on {}", days.join(", "));
    }
    if let Some(days) = part("BYMONTHDAY") {
        let _ = write!(words, " on day {}", days.replace(',', ", "));
    }
    if let Some((year, month, day)) = part("UNTIL").and_then(|until| {
        let (year, rest) = until.split_at_checked(4)?;
        let (month, rest) = rest.split_at_checked(2)?;
        Some((year, month, rest.get(..2)?))
    }) {
        let _ = write!(words, " until {year}-{month}-{day}");
    }
    if let Some(count) = part("COUNT") {
        let _ = write!(words, ", {count} times");
    }
    words
}

/// Returns a day such as `MO` or `-1FR` in words.
fn day_in_words(day: &str) -> Option<String> {
    let (number, name) = day.trim().split_at_checked(day.trim().len().checked_sub(2)?)?;
    let (_, name) = DAYS.iter().find(|(known, _)| *known == name)?;
    Some(match number.trim_start_matches('+') {
        "" => (*name).to_owned(),
        "1" => format!("the first {name}"),
        "2" => format!("the second {name}"),
        "3" => format!("the third {name}"),
        "4" => format!("the fourth {name}"),
        "-1" => format!("the last {name}"),
        number => format!("{name} number {number}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_described() {
        for (rule, expect) in [
            ("FREQ=DAILY", "every day"),
            (
                "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;UNTIL=20261231T000000Z",
                "every 2 weeks on Monday, Friday until 2026-12-31",
            ),
            ("FREQ=MONTHLY;BYDAY=-1FR;COUNT=10", "every month on the last Friday, 10 times"),
            ("freq=monthly;bymonthday=1,15", "every month on day 1, 15"),
            ("FREQ=YEARLY;BYDAY=5SU", "every year on Sunday number 5"),
            ("FREQ=WEEKLY;BYDAY=;UNTIL=2;INTERVAL=0", "every week on "),
            ("", "yes"),
        ] {
            assert_eq!(describe_rule(rule), expect, "{rule}");
        }
    }
}
