//! The events of an invitation in a message (iTIP, RFC 5546) as text: each field on a line with its name.

use std::fmt::Write as _;

use fetchwell_core::record::html_text::html_to_text;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::content_line::{ContentLine, content_lines};
use super::ics::person;
use super::recurrence::describe_rule;
use super::zones::Zones;

/// Maximum number of events of a message that are read.
const MAX_EVENTS: usize = 100;

/// Returns the events and tasks of a calendar as text, or `None` for a text that is no calendar. A calendar without any
/// is named.
pub(crate) fn invitation_text(calendar: &str) -> Option<String> {
    let start = calendar.trim_start_matches('\u{FEFF}').trim_start();
    start.get(..15).filter(|line| line.eq_ignore_ascii_case("BEGIN:VCALENDAR"))?;
    let (mut texts, zones) = (Vec::new(), Zones::read(calendar));
    let (mut method, mut event, mut inner) = (String::new(), None::<Event>, 0_usize);
    for line in content_lines(calendar) {
        let value = line.text().trim().to_ascii_uppercase();
        match (line.name.as_str(), &mut event) {
            ("BEGIN", Some(_)) => inner += 1,
            ("END", Some(_)) if inner > 0 => inner -= 1,
            ("END", Some(_)) => texts.extend(event.take().map(|event| event.text(&method))),
            ("BEGIN", None) if texts.len() < MAX_EVENTS && matches!(value.as_str(), "VEVENT" | "VTODO") => {
                event = Some(Event { is_task: value == "VTODO", ..Event::default() });
            }
            ("METHOD", None) => method = value,
            // Lines of alarms belong to them.
            (_, Some(event)) if inner == 0 => event.set(&line, &zones),
            _ => {}
        }
    }
    // A message that was cut may end within an event.
    texts.extend(event.map(|event| event.text(&method)));
    Some(if texts.is_empty() { "[A calendar without events]".to_owned() } else { texts.join("\n\n") })
}

/// An event that is being read.
#[derive(Debug, Default)]
struct Event {
    is_task: bool,
    title: String,
    start: String,
    end: String,
    duration: Option<Span>,
    place: String,
    link: String,
    organizer: String,
    attendees: Vec<String>,
    repeats: String,
    is_cancelled: bool,
    comment: String,
    description: String,
}

impl Event {
    fn set(&mut self, line: &ContentLine, zones: &Zones) {
        let text = || line.text().trim().to_owned();
        let time = || zones.calendar_time(line).map(|time| time.shown().to_owned()).unwrap_or_default();
        match line.name.as_str() {
            "SUMMARY" => self.title = text(),
            "DTSTART" => self.start = time(),
            "DTEND" | "DUE" => self.end = time(),
            "DURATION" => self.duration = line.raw.trim().parse().ok(),
            "LOCATION" => self.place = text().replace('\n', ", "),
            "URL" | "X-GOOGLE-CONFERENCE" | "X-MICROSOFT-SKYPETEAMSMEETINGURL" => self.link = text(),
            "ORGANIZER" => self.organizer = person(line),
            "ATTENDEE" => self.attendees.push(attendee(line)),
            "RRULE" => self.repeats = describe_rule(&line.raw),
            "STATUS" => self.is_cancelled = line.raw.trim().eq_ignore_ascii_case("CANCELLED"),
            "COMMENT" => self.comment = text(),
            "DESCRIPTION" => self.description = readable(text()),
            _ => {}
        }
    }

    /// Returns the text of the event, as a message with this method has it.
    fn text(self, method: &str) -> String {
        let heading = match method {
            "CANCEL" => "Cancelled",
            _ if self.is_cancelled => "Cancelled",
            "REPLY" => "Reply to an invitation",
            "COUNTER" => "Proposal for another time",
            "DECLINECOUNTER" => "Declined proposal for another time",
            "REQUEST" | "ADD" => "Invitation",
            _ if self.is_task => "Task",
            _ => "Event",
        };
        let end = if self.end.is_empty() { self.end_after_duration() } else { self.end };
        let title = if self.title.is_empty() { "(no title)" } else { &self.title };
        let mut written = format!("{heading}: {title}");
        let attendees = self.attendees.join(", ");
        for (name, value) in [
            ("Start", &self.start),
            (if self.is_task { "Due" } else { "End" }, &end),
            ("Place", &self.place),
            ("Link", &self.link),
            ("Organizer", &self.organizer),
            ("Attendees", &attendees),
            ("Repeats", &self.repeats),
            ("Comment", &self.comment),
        ] {
            if !value.is_empty() {
                let _ = write!(written, "\n{name}: {value}");
            }
        }
        if !self.description.is_empty() {
            let _ = write!(written, "\n\n{}", self.description);
        }
        written
    }

    /// Returns the end of an event that has a duration, or an empty text.
    fn end_after_duration(&self) -> String {
        let Some(duration) = self.duration else { return String::new() };
        let is_day = !self.start.contains('T');
        let end = match (self.start.parse::<Timestamp>(), self.start.parse::<DateTime>()) {
            (Ok(start), _) => {
                let end = start.to_zoned(TimeZone::UTC).checked_add(duration);
                end.ok().map(|end| end.timestamp().to_string())
            }
            (Err(_), Ok(day)) if is_day => day.date().checked_add(duration).ok().map(|end| end.to_string()),
            (Err(_), Ok(floating)) => floating.checked_add(duration).ok().map(|end| end.to_string()),
            (Err(_), Err(_)) => None,
        };
        end.unwrap_or_default()
    }
}

/// Returns an attendee with the answer to the invitation, such as `Ann <ann@x.test> (accepted)`.
fn attendee(line: &ContentLine) -> String {
    let answer = line.parameter("PARTSTAT").map(str::to_ascii_lowercase);
    let known = ["accepted", "declined", "tentative", "delegated", "completed"];
    match answer.filter(|answer| known.contains(&answer.as_str())) {
        Some(answer) => format!("{} ({answer})", person(line)),
        None => person(line),
    }
}

/// Returns a description without markup, which some programs write.
fn readable(text: String) -> String {
    let lower = text.to_ascii_lowercase();
    if ["</", "<br", "<p>"].iter().any(|tag| lower.contains(tag)) { html_to_text(&text) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(method: &str, event: &str) -> String {
        format!(
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:{method}\r\nBEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        )
    }

    #[test]
    fn events_are_readable() {
        let full = "UID:inv1\r\nDTSTART;TZID=Europe/Oslo:20240308T140000\r\nDTEND:20240308T150000Z\r\nSUMMARY:Roadmap\\, \
             review\r\nLOCATION:Room Kingfisher\r\nORGANIZER;CN=\"Berg, Ann\":mailto:ann@x.test\r\nATTENDEE;PARTSTAT=\
             ACCEPTED;CN=Bo:mailto:bo@x.test\r\nATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:cy@x.test\r\nRRULE:FREQ=WEEKLY;\
             BYDAY=FR\r\nDESCRIPTION:Bring the\\nquarterly numbers\r\nBEGIN:VALARM\r\nDESCRIPTION:no\r\nEND:VALARM";
        for (method, event, expect) in [
            (
                "REQUEST",
                full,
                "Invitation: Roadmap, review\nStart: 2024-03-08T13:00:00Z\nEnd: 2024-03-08T15:00:00Z\nPlace: Room \
                 Kingfisher\nOrganizer: Berg, Ann <ann@x.test>\nAttendees: Bo <bo@x.test> (accepted), cy@x.test\n\
                 Repeats: every week on Friday\n\nBring the\nquarterly numbers",
            ),
            ("CANCEL", "SUMMARY:A", "Cancelled: A"),
            ("PUBLISH", "SUMMARY:A\r\nSTATUS:CANCELLED", "Cancelled: A"),
            (
                "REPLY",
                "SUMMARY:A\r\nATTENDEE;PARTSTAT=DECLINED:mailto:bo@x.test\r\nCOMMENT:Ill",
                "Reply to an invitation: A\nAttendees: bo@x.test (declined)\nComment: Ill",
            ),
            (
                "REQUEST",
                "DTSTART:20240308T140000Z\r\nDURATION:PT1H30M\r\nX-GOOGLE-CONFERENCE:https://meet.test/a",
                "Invitation: (no title)\nStart: 2024-03-08T14:00:00Z\nEnd: 2024-03-08T15:30:00Z\nLink: https://meet.test/a",
            ),
            // A time without a zone is the same hour in every zone.
            (
                "REQUEST",
                "SUMMARY:Tea\r\nDTSTART:20240308T140000\r\nDURATION:PT1H30M",
                "Invitation: Tea\nStart: 2024-03-08T14:00:00\nEnd: 2024-03-08T15:30:00",
            ),
            (
                "PUBLISH",
                "SUMMARY:Day\r\nDTSTART;VALUE=DATE:20240308\r\nDURATION:P2D\r\nDESCRIPTION:<b>One</b><br>two",
                "Event: Day\nStart: 2024-03-08\nEnd: 2024-03-10\n\nOne\ntwo",
            ),
        ] {
            assert_eq!(invitation_text(&calendar(method, event)).as_deref(), Some(expect), "{event}");
        }
    }

    #[test]
    fn calendars_without_events_and_other_texts_are_recognized() {
        let busy = "begin:vcalendar\nBEGIN:VFREEBUSY\nEND:VFREEBUSY\nEND:VCALENDAR";
        assert_eq!(invitation_text(busy).as_deref(), Some("[A calendar without events]"));
        let cut = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Cut";
        assert_eq!(invitation_text(cut).as_deref(), Some("Event: Cut"));
        assert_eq!(invitation_text("id,name\n1,Ann"), None);
        let many = format!("BEGIN:VCALENDAR\n{}", "BEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT\n".repeat(1_000));
        assert_eq!(invitation_text(&many).unwrap().matches("Event: x").count(), MAX_EVENTS);
        for shape in [
            "BEGIN:VEVENT\n",
            "BEGIN:VEVENT\nDURATION:P9999999999D\nDTSTART:99991231T235959Z\nEND:VEVENT\n",
            "RRULE:;\n",
        ] {
            let text = format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\n{}", shape.repeat(10_000));
            assert!(invitation_text(&text).is_some());
        }
    }
}
