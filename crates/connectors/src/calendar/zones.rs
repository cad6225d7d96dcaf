//! The time zones of a calendar: those of the IANA database, those that the calendar defines itself (`VTIMEZONE`), and those
//! that Windows names.
//!
//! Programs name zones in their own ways: `Eastern Standard Time` of Outlook, `/mozilla.org/20070129_1/Europe/Oslo`,
//! `tzone://Microsoft/Custom` of Exchange. A definition becomes a zone in the notation of POSIX, with its latest rules. It
//! counts for the calendar that has it: a file can have several calendars, each with its own `Customized Time Zone`.

use std::collections::HashMap;

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};

use super::content_line::{ContentLine, content_lines};
use super::windows_zones::iana_name;

/// Maximum length in bytes of a name that is looked up in the IANA database.
const MAX_NAME_BYTES: usize = 200;

/// The zones that the calendars of a file define.
#[derive(Debug, Default)]
pub(super) struct Zones {
    /// Zones of each calendar by name. The first ones are those outside of any calendar.
    calendars: Vec<HashMap<String, TimeZone>>,
    /// The first zone of each name in the file.
    first: HashMap<String, TimeZone>,
    /// Index of the calendar whose events are read.
    current: usize,
}

/// A day or time of a calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CalendarTime {
    /// An instant, or a day such as `2026-04-01`.
    Fixed(String),
    /// A time without a zone, such as `2026-04-01T10:00:00`: the same hour in every zone.
    Floating(String),
}

impl CalendarTime {
    /// Returns the text to show: a floating time has no zone.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Fixed(text) | Self::Floating(text) => text,
        }
    }

    /// Returns the text to order by: a floating time counts as UTC.
    pub(super) fn ordered(self) -> String {
        match self {
            Self::Fixed(text) => text,
            Self::Floating(text) => format!("{text}Z"),
        }
    }
}

impl Zones {
    /// Reads the definitions of the calendars of a file.
    pub(super) fn read(calendars: &str) -> Self {
        let mut zones = Self { calendars: vec![HashMap::new()], ..Self::default() };
        let mut definition = None::<Definition>;
        for line in content_lines(calendars) {
            let is_zone = || line.text().trim().eq_ignore_ascii_case("VTIMEZONE");
            match (line.name.as_str(), &mut definition) {
                ("BEGIN", None) if is_zone() => definition = Some(Definition::default()),
                ("BEGIN", None) if is_calendar(&line) => zones.calendars.push(HashMap::new()),
                ("END", Some(_)) if is_zone() => {
                    let ended = definition.take().unwrap_or_default();
                    if let Some((zone, own)) = ended.zone().zip(zones.calendars.last_mut()) {
                        zones.first.entry(ended.name.clone()).or_insert_with(|| zone.clone());
                        own.insert(ended.name, zone);
                    }
                }
                (_, Some(definition)) => definition.set(&line),
                _ => {}
            }
        }
        zones
    }

    /// Continues with the zones of the next calendar.
    pub(super) fn next_calendar(&mut self) {
        self.current += 1;
    }

    /// Returns a day as `2026-04-01`, or a time in RFC 3339. A time of a zone that is unknown counts as UTC.
    pub(super) fn time(&self, line: &ContentLine) -> Option<String> {
        Some(self.calendar_time(line)?.ordered())
    }

    /// Returns a day, a time in RFC 3339, or a time without a zone. A time of a zone that is unknown counts as UTC.
    pub(super) fn calendar_time(&self, line: &ContentLine) -> Option<CalendarTime> {
        let text = line.raw.trim();
        if let Ok(day) = Date::strptime("%Y%m%d", text).or_else(|_| Date::strptime("%Y-%m-%d", text)) {
            return Some(CalendarTime::Fixed(day.to_string()));
        }
        let local = text.trim_end_matches(['Z', 'z']);
        let local = DateTime::strptime("%Y%m%dT%H%M%S", local)
            .or_else(|_| DateTime::strptime("%Y-%m-%dT%H:%M:%S", local))
            .ok()?;
        let zone = match line.parameter("TZID") {
            _ if text.ends_with(['Z', 'z']) => TimeZone::UTC,
            Some(zone) => self.find(zone.trim()),
            None => return Some(CalendarTime::Floating(local.to_string())),
        };
        Some(CalendarTime::Fixed(local.to_zoned(zone).ok()?.timestamp().to_string()))
    }

    /// Returns the zone with a name: that of the IANA database, of this calendar, of another one in the file, of Windows, or
    /// of the offset at its start; otherwise UTC.
    pub(super) fn find(&self, name: &str) -> TimeZone {
        let defined = || {
            let own = self.calendars.get(self.current).and_then(|zones| zones.get(name));
            own.or_else(|| self.first.get(name)).cloned()
        };
        let of_windows = || iana_name(name).and_then(|name| TimeZone::get(name).ok());
        let found = known(name).or_else(defined).or_else(of_windows).or_else(|| zone_of_title(name));
        found.unwrap_or(TimeZone::UTC)
    }
}

/// Returns true for the first line of a calendar.
pub(super) fn is_calendar(line: &ContentLine) -> bool {
    line.text().trim().eq_ignore_ascii_case("VCALENDAR")
}

/// Returns the offset of a title that Outlook shows, such as `(UTC+01:00) Amsterdam, Berlin`. It has no daylight saving time.
fn zone_of_title(title: &str) -> Option<TimeZone> {
    let (offset, _cities) = title.strip_prefix('(')?.split_once(')')?;
    let offset = offset.strip_prefix("UTC").or_else(|| offset.strip_prefix("GMT"))?;
    parse_offset(&offset.replace(':', "")).map(TimeZone::fixed)
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
    /// Returns the offset and the yearly start in the notation of POSIX, such as `5:00:00` and `M11.1.0/2:00:00`, or
    /// `J81/0:00:00` for the same day of every year.
    fn posix(&self) -> Option<(String, String)> {
        let (seconds, start) = (self.offset?.seconds(), self.start?);
        let rule = self.rule.as_deref().filter(|rule| !rule.contains("UNTIL="))?;
        let part = |name: &str| {
            rule.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')).map(str::trim)
        };
        let number = |name: &str| part(name).map(|text| text.split(',').next()?.trim().parse::<i8>().ok());
        let month = number("BYMONTH").unwrap_or(Some(start.month()))?;
        let day = match part("BYDAY") {
            Some(weekday) => weekday_of(weekday, month, number("BYMONTHDAY").flatten())?,
            // Days of POSIX leave out 29 February, as this year does.
            None => {
                let day = number("BYMONTHDAY").unwrap_or(Some(start.day()))?;
                format!("J{}", Date::new(2001, month, day).ok()?.day_of_year())
            }
        };
        // The sign of POSIX is that of the zone's way to UTC.
        let sign = if seconds > 0 { "-" } else { "" };
        let seconds = seconds.unsigned_abs();
        let offset = format!("{sign}{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let time = format!("{}:{:02}:{:02}", start.hour(), start.minute(), start.second());
        Some((offset, format!("{day}/{time}")))
    }
}

/// Returns a weekday of a month in the notation of POSIX. `rule` is `1SU`, `-1SU`, or `SU` with the first day of its week in
/// the month.
fn weekday_of(rule: &str, month: i8, first_day: Option<i8>) -> Option<String> {
    let (ordinal, day) = rule.split_at_checked(rule.len().checked_sub(2)?)?;
    let day = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"].iter().position(|name| *name == day)?;
    let week = match ordinal.trim_start_matches('+') {
        "" => first_day?.checked_sub(1)? / 7 + 1,
        "-1" => 5,
        ordinal => ordinal.parse().ok().filter(|week| (1..=5).contains(week))?,
    };
    Some(format!("M{month}.{week}.{day}"))
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
        check("", "W. Europe Standard Time", "2024-07-10T10:00", "2024-07-10T08:00:00Z");
        check("", "w. europe standard time", "2024-01-10T10:00", "2024-01-10T09:00:00Z");
        check("", "tzone://Microsoft/Utc", "2026-07-01T12:00", "2026-07-01T12:00:00Z");
        check("", "(UTC-03:30) Newfoundland", "2026-07-01T12:00", "2026-07-01T15:30:00Z");
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
    fn custom_zones_of_exchange_have_their_own_rules() {
        let custom = |name: &str, days: &str| {
            format!(
                "BEGIN:VTIMEZONE\nTZID:{name}\nBEGIN:STANDARD\nDTSTART:16010101T000000\nTZOFFSETFROM:+0430\n\
                TZOFFSETTO:+0330\nRRULE:FREQ=YEARLY;BYMONTH=9{days}\nEND:STANDARD\nBEGIN:DAYLIGHT\n\
                DTSTART:16010321T000000\nTZOFFSETFROM:+0330\nTZOFFSETTO:+0430\nRRULE:FREQ=YEARLY\nEND:DAYLIGHT\n\
                END:VTIMEZONE"
            )
        };
        for name in ["Customized Time Zone", "tzone://Microsoft/Custom"] {
            for days in [";BYMONTHDAY=21", ";BYDAY=3MO"] {
                let zone = custom(name, days);
                check(&zone, name, "2026-07-01T12:00", "2026-07-01T07:30:00Z");
                check(&zone, name, "2026-03-20T12:00", "2026-03-20T08:30:00Z");
                check(&zone, name, "2026-03-22T12:00", "2026-03-22T07:30:00Z");
                check(&zone, name, "2026-12-01T12:00", "2026-12-01T08:30:00Z");
            }
        }
    }

    #[test]
    fn each_calendar_of_a_file_has_its_own_zones() {
        let calendar = |offset: &str| {
            format!(
                "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:Custom\nBEGIN:STANDARD\nDTSTART:16010101T000000\n\
                TZOFFSETTO:{offset}\nEND:STANDARD\nEND:VTIMEZONE\nEND:VCALENDAR\n"
            )
        };
        let mut zones =
            Zones::read(&[calendar("+0100"), calendar("-0500"), "BEGIN:VCALENDAR\n".to_owned()].concat());
        for hours in [1, -5, 1] {
            zones.next_calendar();
            assert_eq!(zones.find("Custom"), TimeZone::fixed(Offset::constant(hours)));
        }
    }

    #[test]
    fn broken_definitions_are_no_zones() {
        for offset in ["x", "+99999999", "-", "+ä1"] {
            let text = format!(
                "BEGIN:VTIMEZONE\nTZID:Z\nBEGIN:STANDARD\nTZOFFSETTO:{offset}\nRRULE:FREQ=YEARLY;BYDAY=S\nEND:VTIMEZONE"
            );
            assert_eq!(Zones::read(&text).find("Z"), TimeZone::UTC, "{offset}");
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
        let line = content_lines("D:20260401T100000").next().unwrap();
        let floating = Zones::default().calendar_time(&line).unwrap();
        assert_eq!(
            (floating.shown(), floating.clone().ordered().as_str()),
            ("2026-04-01T10:00:00", "2026-04-01T10:00:00Z")
        );
    }
}
