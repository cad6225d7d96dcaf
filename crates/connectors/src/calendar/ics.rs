//! The reader of calendars: a record for each event, task and journal entry.

use fetchwell_core::fit::first_characters;

use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::content_line::{ContentLine, content_lines};
use super::zones::{Zones, is_calendar};

/// Stream of events, tasks and journal entries.
const STREAM: &str = "events";

/// Maximum length of the name of a calendar in characters. Every event has it.
const MAX_NAME: usize = 200;

/// Reads a calendar.
pub(crate) fn read_ics(item: &mut Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let text = item.read_text()?;
    let (mut calendar, mut zones) = (String::new(), Zones::read(&text));
    let (mut component, mut inner, mut number) = (None::<Component>, 0_usize, 0_usize);
    for line in content_lines(&text) {
        let value = || line.text().trim().to_ascii_uppercase();
        match (line.name.as_str(), &mut component) {
            ("BEGIN", Some(_)) => inner += 1,
            ("END", Some(_)) if inner > 0 => inner -= 1,
            ("END", Some(_)) => {
                if let Some(ended) = component.take() {
                    number += 1;
                    let place = format!("{}: item {number}", item.path);
                    ended.into_record(item, number).take_into(&place, intake)?;
                }
            }
            ("BEGIN", None) if matches!(value().as_str(), "VEVENT" | "VTODO" | "VJOURNAL") => {
                component = Some(Component::new(item, &value(), &calendar));
            }
            ("BEGIN", None) if is_calendar(&line) => zones.next_calendar(),
            ("X-WR-CALNAME", None) => calendar = first_characters(&line.text(), MAX_NAME).to_owned(),
            // Lines of alarms belong to them.
            (_, Some(component)) if inner == 0 => component.set(&line, &zones),
            _ => {}
        }
    }
    if component.is_some() {
        return Err("it ends within an event".into());
    }
    if number == 0 {
        return Err("it has no events".into());
    }
    Ok(())
}

/// An event that is being read.
struct Component {
    record: FileRecord,
    uid: String,
    /// Start of the occurrence that this event replaces.
    recurrence: String,
    /// Start or due time, for the order of events.
    time: Option<String>,
    attendees: Vec<String>,
    body: String,
}

impl Component {
    fn new(item: &Item<'_>, kind: &str, calendar: &str) -> Self {
        let mut record = FileRecord::for_item(STREAM, item);
        // The title is the first field.
        record.put_text("title", "(no title)");
        let kind = match kind {
            "VTODO" => "task",
            "VJOURNAL" => "journal",
            _ => "event",
        };
        record.put_text("kind", kind);
        record.put_text("calendar", calendar);
        let (uid, recurrence, body) = (String::new(), String::new(), String::new());
        Self { record, uid, recurrence, time: None, attendees: Vec::new(), body }
    }

    fn set(&mut self, line: &ContentLine, zones: &Zones) {
        let record = &mut self.record;
        let time = || zones.time(line).unwrap_or_default();
        match line.name.as_str() {
            "SUMMARY" => record.put_text("title", &line.text()),
            "DTSTART" => self.set_time("start", line, zones),
            "DTEND" => self.set_time("end", line, zones),
            "DUE" => self.set_time("due", line, zones),
            "COMPLETED" => record.put_text("completed", &time()),
            "LOCATION" => record.put_text("location", &line.text()),
            "STATUS" => record.put_text("status", &line.text().to_ascii_lowercase()),
            "URL" => record.put_text("url", &line.text()),
            "RRULE" => record.put_text("repeats", &line.text()),
            "CATEGORIES" => record.put_list("categories", line.pieces(',')),
            "ORGANIZER" => record.put_text("organizer", &person(line)),
            "ATTENDEE" => self.attendees.push(person(line)),
            "DESCRIPTION" => self.body = line.text(),
            "UID" => self.uid = line.text().trim().to_owned(),
            "RECURRENCE-ID" => self.recurrence = zones.time(line).unwrap_or_else(|| line.text()),
            "DTSTAMP" | "CREATED" | "LAST-MODIFIED" => {
                let name = if line.name == "CREATED" { "created_at" } else { "modified_at" };
                record.put_text(name, &time());
            }
            _ => {}
        }
    }

    /// Sets a day, or a time that may have no zone.
    fn set_time(&mut self, field: &str, line: &ContentLine, zones: &Zones) {
        let Some(time) = zones.calendar_time(line) else { return };
        self.record.put_text(field, time.shown());
        if field == "start" || field == "due" && self.time.is_none() {
            self.time = Some(time.ordered());
        }
    }

    /// Returns the record. Its key is the id of the event, and its time the start.
    fn into_record(self, item: &Item<'_>, number: usize) -> FileRecord {
        let Self { mut record, uid, recurrence, time, attendees, body } = self;
        let id = if uid.is_empty() { format!("{}/{number}", item.path) } else { uid };
        record.key = if recurrence.is_empty() { id } else { format!("{id}/{recurrence}") };
        record.put_list("attendees", attendees);
        record.put_text("path", &item.path);
        record.put_text("body", &body);
        let created = record.data.get("created_at").and_then(|time| time.as_str()).map(str::to_owned);
        record.emitted_at = time.or(created).or(record.emitted_at);
        record.identity = Some(record.data.clone());
        record
    }
}

/// Returns a person as `Ann <ann@x.test>`.
pub(super) fn person(line: &ContentLine) -> String {
    let text = line.text();
    let address = text.trim();
    let address = address
        .get(..7)
        .filter(|scheme| scheme.eq_ignore_ascii_case("mailto:"))
        .map_or(address, |_| address.get(7..).unwrap_or_default());
    match line.parameter("CN") {
        Some(name) if name != address => format!("{name} <{address}>"),
        _ => address.to_owned(),
    }
}
