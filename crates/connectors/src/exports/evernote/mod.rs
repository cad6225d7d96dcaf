//! The reader of notes that Evernote exported (`.enex`): a record for each note.
//!
//! * `resources`: a reader that leaves out the content of attached files
//!
//! The file is read note by note, so its size does not matter to memory.

mod resources;

use std::io::{BufRead, BufReader};

use fetchwell_core::record::RecordData;
use fetchwell_core::record::html_text::html_to_text;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use quick_xml::Reader;
use quick_xml::events::Event;

use self::resources::WithoutResources;
use super::super::intake::Intake;
use super::super::item::{FileKind, FileRecord, Item, ReadError};
use super::super::meter::Meter;
use super::super::office::referenced_character;

/// Stream of notes.
const STREAM: &str = "documents";

/// Maximum nesting of elements.
const MAX_DEPTH: usize = 100;

/// Reads the notes of an export.
pub(crate) fn read_enex(item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let (path, changed_at) = (item.path.clone(), item.changed_at.clone());
    let meter = Meter::default();
    meter.record_starts();
    let reader = meter.watch(WithoutResources::new(item.into_reader()));
    let mut number = 0_u64;
    each_note(BufReader::with_capacity(1 << 16, reader), &mut |note| {
        number += 1;
        meter.record_starts();
        let place = format!("{path}: note {number}");
        Ok(note.into_record(&path, changed_at.clone()).take_into(&place, intake)?)
    })?;
    if number == 0 {
        return Err("it has no notes".into());
    }
    Ok(())
}

/// The fields of a note.
#[derive(Debug, Default, PartialEq, Eq)]
struct Note {
    title: String,
    /// Content in ENML, an XHTML with elements of its own.
    content: String,
    created: String,
    updated: String,
    author: String,
    url: String,
    tags: Vec<String>,
    attachments: Vec<String>,
    tasks: Vec<String>,
}

/// Calls `visit` with each note.
fn each_note(
    reader: impl BufRead,
    visit: &mut dyn FnMut(Note) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut reader = Reader::from_reader(reader);
    reader.config_mut().allow_dangling_amp = true;
    let (mut buffer, mut open, mut text) = (Vec::new(), Vec::<String>::new(), String::new());
    let mut note = Note::default();
    loop {
        buffer.clear();
        let position = reader.buffer_position();
        let event = reader.read_event_into(&mut buffer);
        match event.map_err(|error| format!("its XML is broken at byte {position}: {error}"))? {
            Event::Start(start) => {
                if open.len() >= MAX_DEPTH {
                    return Err(format!("its XML is nested more than {MAX_DEPTH} levels deep").into());
                }
                open.push(start.name().0.to_owned());
                text.clear();
            }
            Event::End(_) => {
                let Some(name) = open.pop() else { continue };
                let parent = open.last().map(String::as_str).unwrap_or_default();
                note.set(parent, &name, std::mem::take(&mut text));
                if name == "note" {
                    visit(std::mem::take(&mut note))?;
                }
            }
            Event::Text(piece) => text.push_str(&piece.xml10_content()),
            Event::CData(piece) => text.push_str(&piece.xml10_content()),
            Event::GeneralRef(reference) => text.extend(referenced_character(&reference)),
            Event::Eof if open.is_empty() => return Ok(()),
            Event::Eof => {
                return Err("its XML ends within an element; notes before that place are imported".into());
            }
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

impl Note {
    /// Sets the field of an element.
    fn set(&mut self, parent: &str, name: &str, text: String) {
        match (parent, name) {
            ("note", "title") => self.title = text,
            ("note", "content") => self.content = text,
            ("note", "created") => self.created = time_of(&text),
            ("note", "updated") => self.updated = time_of(&text),
            ("note", "tag") => self.tags.push(text.trim().to_owned()),
            ("note-attributes", "author") => self.author = text,
            ("note-attributes", "source-url") => self.url = text,
            ("resource-attributes", "file-name") => self.attachments.push(text.trim().to_owned()),
            ("task", "title") => self.tasks.push(text.trim().to_owned()),
            _ => {}
        }
    }

    /// Returns the record. Its key is the time at which the note was created, because an export has no ids.
    fn into_record(self, path: &str, changed_at: Option<String>) -> FileRecord {
        let time = [&self.created, &self.updated].into_iter().find(|time| !time.is_empty()).cloned();
        let mut record = FileRecord {
            stream: STREAM.to_owned(),
            key: format!("{path}/{}", time.as_deref().unwrap_or(self.title.trim())),
            data: RecordData::new(),
            emitted_at: time.or(changed_at),
            identity: None,
        };
        let body = html_to_text(&without_encrypted(&self.content));
        let tasks: Vec<String> = self.tasks.iter().map(|task| format!("- {task}")).collect();
        let body = [body.trim().to_owned(), tasks.join("\n")];
        let body = body.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        let title = self.title.trim();
        record.put_text("title", if title.is_empty() { "Untitled" } else { title });
        record.put_text("path", path);
        record.put_text("format", FileKind::Enex.as_str());
        record.put_text("author", &self.author);
        record.put_text("url", &self.url);
        record.put_list("tags", self.tags);
        record.put_list("attachments", self.attachments);
        record.put_text("created_at", &self.created);
        record.put_text("modified_at", &self.updated);
        record.put_text("body", &body);
        record.identity = Some(record.data.clone());
        record
    }
}

/// Returns a time such as `20240102T030405Z` in RFC 3339, or an empty text.
fn time_of(text: &str) -> String {
    let time = DateTime::strptime("%Y%m%dT%H%M%SZ", text.trim()).ok();
    let time = time.and_then(|time| time.to_zoned(TimeZone::UTC).ok());
    time.map(|time| time.timestamp().to_string()).unwrap_or_default()
}

/// Returns the content of a note without its encrypted texts.
fn without_encrypted(content: &str) -> String {
    let mut pieces = content.split("<en-crypt");
    let mut written = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        written.push_str(piece.split_once("</en-crypt>").map_or("", |(_encrypted, after)| after));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(enex: &str) -> Result<Vec<Note>, String> {
        let mut notes = Vec::new();
        let read = each_note(enex.as_bytes(), &mut |note| {
            notes.push(note);
            Ok(())
        });
        match read {
            Ok(()) => Ok(notes),
            Err(ReadError::Rejected(problem)) => Err(problem.text),
            Err(ReadError::Ended(error)) => Err(error.to_string()),
        }
    }

    #[test]
    fn notes_have_their_fields() {
        let enex = "<?xml version='1.0'?><!DOCTYPE en-export SYSTEM 'x.dtd'><en-export><note><title>A &amp; b</title>\
            <content><![CDATA[<?xml version=\"1.0\"?><en-note><div>stork <en-crypt hint='x'>U2FsdGVk</en-crypt>body</div></en-note>]]></content>\
            <created>20240102T030405Z</created><tag>birds</tag><tag>water</tag>\
            <note-attributes><source-url>https://x.test/1</source-url><author>Ann</author></note-attributes>\
            <resource><data encoding='base64'></data><resource-attributes><file-name>a.pdf</file-name></resource-attributes></resource>\
            <task><title>Buy &#x1F41F;</title></task></note><note><title>Second</title></note></en-export>";
        let read = notes(enex).unwrap();
        assert_eq!(
            (read.len(), read[0].title.as_str(), read[0].url.as_str()),
            (2, "A & b", "https://x.test/1")
        );
        assert_eq!(
            (&read[0].tags, &read[0].attachments),
            (&vec!["birds".to_owned(), "water".to_owned()], &vec!["a.pdf".to_owned()])
        );
        let record = read.into_iter().next().unwrap().into_record("a.enex", None);
        assert_eq!(
            (record.key.as_str(), record.emitted_at.as_deref()),
            ("a.enex/2024-01-02T03:04:05Z", Some("2024-01-02T03:04:05Z"))
        );
        assert_eq!(record.data["body"], "stork body\n\n- Buy \u{1F41F}");
    }

    #[test]
    fn broken_exports_are_rejected() {
        for (enex, expect) in [
            ("<en-export><note>".to_owned(), "ends within an element"),
            ("<en-export></note>".to_owned(), "its XML is broken"),
            ("<a>".repeat(1_000), "nested more than 100"),
        ] {
            assert!(notes(&enex).unwrap_err().contains(expect), "{expect}");
        }
    }
}
