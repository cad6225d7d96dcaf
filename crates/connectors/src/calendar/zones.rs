//! The time zones of a calendar: those of the IANA database, and those that the calendar defines itself (`VTIMEZONE`).
//!
//! Programs name zones in their own ways: `Eastern Standard Time` of Outlook, `/mozilla.org/20070129_1/Europe/Oslo`. A
//! definition becomes a zone in the notation of POSIX, with its latest rules.

use std::collections::HashMap;

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};

use super::content_line::{ContentLine, content_lines};

/// Maximum length in bytes of a name that is looked up in the IANA database.
const MAX_NAME_BYTES: usize = 200;

/// The zones that a calendar defines, by name.
#[derive(Debug, Default)]
pub(super) struct Zones {
    defined: HashMap<String, TimeZone>,
}

impl Zones {
    /// Reads the definitions of a calendar.
    pub(super) fn read(calendar: &str) -> Self {
        let mut zones = Self::default();
        let mut definition = None::<Definition>;
        for line in content_lines(calendar) {
            let is_zone = || line.text().trim().eq_ignore_ascii_case("VTIMEZONE");
            match (line.name.as_str(), &mut definition) {
                ("BEGIN", None) if is_zone() => definition = Some(Definition::default()),
                ("END", Some(_)) if is_zone() => {
                    let ended = definition.take().unwrap_or_default();
                    if let Some(zone) = ended.zone() {
                        zones.defined.insert(ended.name, zone);
                    }
                }
                (_, Some(definition)) => definition.set(&line),
                _ => {}
            }
        }
        zones
    }

    /// Returns a day as `2026-04-01`, or a time in RFC 3339. A time of a zone that is unknown counts as UTC.
    pub(super) fn time(&self, line: &ContentLine) -> Option<String> {
        let text = line.raw.trim();
        if let Ok(day) = Date::strptime("%Y%m%d", text).or_else(|_| Date::strptime("%Y-%m-%d", text)) {
            return Some(day.to_string());
        }
        let local = text.trim_end_matches(['Z', 'z']);
        let local = DateTime::strptime("%Y%m%dT%H%M%S", local)
            .or_else(|_| DateTime::strptime("%Y-%m-%dT%H:%M:%S", local))
            .ok()?;
        let zone = line.parameter("TZID").filter(|_| !text.ends_with(['Z', 'z']));
        let zone = zone.map_or(TimeZone::UTC, |zone| self.find(zone));
        Some(local.to_zoned(zone).ok()?.timestamp().to_string())
    }

    /// Returns the zone with a name, or UTC.
    pub(super) fn find(&self, name: &str) -> TimeZone {
        let found = known(name).or_else(|| self.defined.get(name).cloned());
        found.unwrap_or(TimeZone::UTC)
    }
}

/// Returns the zone of the IANA database with a name, also after the prefix of a program.
fn known(name: &str) -> Option<TimeZone> {
    let endings = name.match_indices('/').filter_map(|(at, _)| name.get(at + 1..));
    let mut names = std::iter::once(name).chain(endings).filter(|_| name.len() <= MAX_NAME_BYTES);
    names.find_map(|name| TimeZone::get(name).ok())
}

/// A definition that is being read.
#[derive(Debug, Default)]
struct Definition {
    name: String,
    /// Name in the IANA database, if the program wrote it.
    location: String,
    periods: Vec<Period>,
}

/// Standard or daylight saving time from a start on.
#[derive(Debug, Default)]
struct Period {
    is_daylight: bool,
    start: Option<DateTime>,
    offset: Option<Offset>,
    /// Yearly rule of its start, without one that has ended.
    rule: Option<String>,
}

impl Definition {
    fn set(&mut self, line: &ContentLine) {
        let text = line.text();
        let text = text.trim();
        match (line.name.as_str(), self.periods.last_mut()) {
            ("TZID", _) => text.clone_into(&mut self.name),
            ("X-LIC-LOCATION", _) => text.clone_into(&mut self.location),
            ("BEGIN", _) => {
                let is_daylight = text.eq_ignore_ascii_case("DAYLIGHT");
                self.periods.push(Period { is_daylight, ..Period::default() });
            }
            ("DTSTART", Some(period)) => period.start = DateTime::strptime("%Y%m%dT%H%M%S", text).ok(),
            ("TZOFFSETTO", Some(period)) => period.offset = parse_offset(text),
            ("RRULE", Some(period)) => period.rule = Some(text.to_ascii_uppercase()),
            _ => {}
        }
    }

    /// Returns the zone of the latest periods, or `None` without an offset.
    fn zone(&self) -> Option<TimeZone> {
        if let Some(zone) = known(&self.location) {
            return Some(zone);
        }
        let latest = |is_daylight: bool| {
            let periods = self.periods.iter().filter(|period| period.is_daylight == is_daylight);
            periods.max_by_key(|period| period.start)
        };
        let (standard, daylight) = (latest(false), latest(true));
        let rules = standard.and_then(Period::posix).zip(daylight.and_then(Period::posix));
        if let Some(((offset, ends), (saving, starts))) = rules {
            let notation = format!("STD{offset}DST{saving},{starts},{ends}");
            return TimeZone::posix(&notation).ok();
        }
        let last = standard.into_iter().chain(daylight).max_by_key(|period| period.start)?;
        last.offset.map(TimeZone::fixed)
    }
}

impl Period {
    /// Returns the offset and the yearly start in the notation of POSIX, such as `5:00:00` and `M11.1.0/2:00:00`.
    fn posix(&self) -> Option<(String, String)> {
        let (seconds, start) = (self.offset?.seconds(), self.start?);
        let rule = self.rule.as_deref().filter(|rule| !rule.contains("UNTIL="))?;
        let part = |name: &str| {
            rule.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')).map(str::trim)
        };
        let month: u8 = part("BYMONTH")?.parse().ok()?;
        let (ordinal, day) = part("BYDAY")?.split_at_checked(part("BYDAY")?.len().checked_sub(2)?)?;
        let day = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"].iter().position(|name| *name == day)?;
        let week = match ordinal.trim_start_matches('+') {
            "" => {
                let first: u8 = part("BYMONTHDAY")?.split(',').next()?.parse().ok()?;
                first.checked_sub(1)? / 7 + 1
            }
            "-1" => 5,
            ordinal => ordinal.parse().ok().filter(|week| (1..=5).contains(week))?,
        };
        // The sign of POSIX is that of the zone's way to UTC.
        let sign = if seconds > 0 { "-" } else { "" };
        let seconds = seconds.unsigned_abs();
        let offset = format!("{sign}{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let time = format!("{}:{:02}:{:02}", start.hour(), start.minute(), start.second());
        Some((offset, format!("M{month}.{week}.{day}/{time}")))
    }
}

/// Parses an offset such as `-0500` or `+053000`.
fn parse_offset(text: &str) -> Option<Offset> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = |from: usize| digits.get(from..from + 2).map_or(Some(0), |two| two.parse::<i32>().ok());
    let seconds = number(0)? * 3_600 + number(2)? * 60 + number(4)?;
    Offset::from_seconds(sign * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(definition: &str, zone: &str, local: &str, expect: &str) {
        let zones = Zones::read(&format!("BEGIN:VCALENDAR\n{definition}\nEND:VCALENDAR\n"));
        let local: DateTime = local.parse().unwrap();
        let time = local.to_zoned(zones.find(zone)).unwrap().timestamp().to_string();
        assert_eq!(time, expect, "{zone} {local}");
    }

    #[test]
    fn zones_of_programs_are_found() {
        check("", "Europe/Oslo", "2026-07-01T12:00", "2026-07-01T10:00:00Z");
        check("", "/mozilla.org/20070129_1/America/New_York", "2026-01-01T12:00", "2026-01-01T17:00:00Z");
        check("", "Nowhere", "2026-07-01T12:00", "2026-07-01T12:00:00Z");
        let located = "BEGIN:VTIMEZONE\nTZID:Local\nX-LIC-LOCATION:Asia/Tokyo\nEND:VTIMEZONE";
        check(located, "Local", "2026-07-01T12:00", "2026-07-01T03:00:00Z");
    }

    #[test]
    fn definitions_are_read() {
        let outlook = "BEGIN:VTIMEZONE\nTZID:Eastern Standard Time\n\
            BEGIN:STANDARD\nDTSTART:16010101T020000\nTZOFFSETFROM:-0400\nTZOFFSETTO:-0500\n\
            RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=1SU;BYMONTH=11\nEND:STANDARD\n\
            BEGIN:DAYLIGHT\nDTSTART:16010101T020000\nTZOFFSETFROM:-0500\nTZOFFSETTO:-0400\n\
            RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=2SU;BYMONTH=3\nEND:DAYLIGHT\nEND:VTIMEZONE";
        check(outlook, "Eastern Standard Time", "2026-01-15T12:00", "2026-01-15T17:00:00Z");
        check(outlook, "Eastern Standard Time", "2026-03-08T12:00", "2026-03-08T16:00:00Z");
        check(outlook, "Eastern Standard Time", "2026-11-01T12:00", "2026-11-01T17:00:00Z");
        let fixed = "BEGIN:VTIMEZONE\nTZID:India\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETTO:+0530\n\
            END:STANDARD\nEND:VTIMEZONE";
        check(fixed, "India", "2026-07-01T12:00", "2026-07-01T06:30:00Z");
        let east = "BEGIN:VTIMEZONE\nTZID:Mine\nBEGIN:STANDARD\nDTSTART:19961027T030000\nTZOFFSETTO:+0100\n\
            RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\nEND:STANDARD\nBEGIN:DAYLIGHT\nDTSTART:19810329T020000\n\
            TZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\nEND:DAYLIGHT\nEND:VTIMEZONE";
        check(east, "Mine", "2026-07-01T12:00", "2026-07-01T10:00:00Z");
        check(east, "Mine", "2026-12-01T12:00", "2026-12-01T11:00:00Z");
    }

    #[test]
    fn broken_definitions_are_no_zones() {
        for offset in ["x", "+99999999", "-", "+ä1"] {
            let text = format!(
                "BEGIN:VTIMEZONE\nTZID:Z\nBEGIN:STANDARD\nTZOFFSETTO:{offset}\nRRULE:FREQ=YEARLY;BYDAY=S\nEND:VTIMEZONE"
            );
            assert!(Zones::read(&text).defined.values().all(|zone| *zone == TimeZone::UTC), "{offset}");
        }
    }

    #[test]
    fn times_have_a_zone() {
        for (text, expect) in [
            ("D:20260401", Some("2026-04-01")),
            ("D:20260401T100000Z", Some("2026-04-01T10:00:00Z")),
            ("D;TZID=Europe/Oslo:20260401T100000", Some("2026-04-01T08:00:00Z")),
            ("D;TZID=Nowhere:20260401T100000", Some("2026-04-01T10:00:00Z")),
            ("D:1985-04-12", Some("1985-04-12")),
            ("D:--0412", None),
            ("D:20261301", None),
        ] {
            let line = content_lines(text).next().unwrap();
            assert_eq!(Zones::default().time(&line).as_deref(), expect, "{text}");
        }
    }
}
