//! The reader of chats that Telegram Desktop exported as JSON (`result.json`): a record for each message, of one chat
//! or of all.
//!
//! The file is read message by message, so its size does not matter to memory.

use std::fmt;
use std::io::BufReader;

use fetchwell_core::fit::first_characters;
use fetchwell_core::record::RecordData;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::super::meter::Meter;
use super::objects::{text_at, time_of_seconds, title_from};

/// Stream of messages.
const STREAM: &str = "messages";

/// Value of a file that the export left out.
const NOT_INCLUDED: &str = "(File";

/// Reads the messages of an export.
pub(crate) fn read_telegram(item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let meter = Meter::default();
    meter.record_starts();
    let path = item.path.clone();
    let reader = BufReader::with_capacity(1 << 16, meter.watch(item.into_reader()));
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut export = Export { meter, path: &path, intake, chat: Chat::default(), number: 0, failed: None };
    let read = Place::Chat.seed(&mut export).deserialize(&mut json);
    match (export.failed, read) {
        (Some(error), _) => Err(error.into()),
        (None, Err(error)) => Err(format!("its JSON is broken: {error}").into()),
        (None, Ok(())) => Ok(()),
    }
}

struct Export<'e, 'i> {
    meter: Meter,
    path: &'e str,
    intake: &'e mut Intake<'i>,
    chat: Chat,
    /// Number of messages so far.
    number: u64,
    /// Error that ends the import; the parser only knows its own errors.
    failed: Option<super::super::ImportError>,
}

/// The chat that is read.
#[derive(Debug, Default)]
struct Chat {
    id: String,
    /// Name, which is missing for the own notes and for accounts that were deleted.
    name: String,
    /// Kind of chat, such as `personal_chat`.
    kind: String,
}

impl Chat {
    fn shown_name(&self) -> &str {
        match (self.name.as_str(), self.kind.as_str()) {
            ("", "saved_messages") => "Saved Messages",
            ("", _) => "Deleted account",
            (name, _) => name,
        }
    }
}

/// A place in an export.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A chat, or the object of all chats.
    Chat,
    /// The object with the list of chats.
    List,
    Chats,
    Messages,
}

impl Place {
    fn seed<'s, 'e, 'i>(self, export: &'s mut Export<'e, 'i>) -> Reader<'s, 'e, 'i> {
        Reader { place: self, export }
    }
}

/// A reader of the value at a place.
struct Reader<'s, 'e, 'i> {
    place: Place,
    export: &'s mut Export<'e, 'i>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.place {
            Place::Chat | Place::List => deserializer.deserialize_map(self),
            Place::Chats | Place::Messages => deserializer.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Reader<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.place {
            Place::Chat | Place::List => "an object with messages",
            Place::Chats => "a list of chats",
            Place::Messages => "a list of messages",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            self.export.meter.record_starts();
            match (self.place, name.as_str()) {
                (Place::Chat, "name") => self.export.chat.name = name_of(&fields.next_value()?),
                (Place::Chat, "type") => self.export.chat.kind = name_of(&fields.next_value()?),
                (Place::Chat, "id") => self.export.chat.id = name_of(&fields.next_value()?),
                (Place::Chat, "messages") => fields.next_value_seed(Place::Messages.seed(self.export))?,
                (Place::Chat, "chats" | "left_chats") => {
                    fields.next_value_seed(Place::List.seed(self.export))?;
                }
                (Place::List, "list") => fields.next_value_seed(Place::Chats.seed(self.export))?,
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if matches!(self.place, Place::Chats) {
            loop {
                self.export.chat = Chat::default();
                if items.next_element_seed(Place::Chat.seed(self.export))?.is_none() {
                    return Ok(());
                }
            }
        }
        while let Some(message) = items.next_element::<Value>()? {
            self.export.meter.record_starts();
            if let Err(error) = self.export.take(&message) {
                self.export.failed = Some(error);
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

impl Export<'_, '_> {
    fn take(&mut self, message: &Value) -> Result<(), super::super::ImportError> {
        self.number += 1;
        let place = format!("{}: message {}", self.path, self.number);
        let Some(message) = message.as_object() else {
            self.intake.reject(&place, "it is not an object");
            return Ok(());
        };
        // Joins, calls and changes of the name.
        if text_at(message, "type") == "service" {
            return Ok(());
        }
        let (id, time) = (message.get("id").map(text_of).unwrap_or_default(), time_of(message));
        match (id.as_str(), time) {
            ("", _) => self.intake.reject(&place, "it has no id"),
            (_, None) => self.intake.reject(&place, "it has no date"),
            (id, Some(time)) => self.record(message, id, &time).take_into(&place, self.intake)?,
        }
        Ok(())
    }

    fn record(&self, message: &RecordData, id: &str, time: &str) -> FileRecord {
        let chat = if self.chat.id.is_empty() { self.path } else { &self.chat.id };
        let mut record = FileRecord {
            stream: STREAM.to_owned(),
            key: format!("{chat}/{id}"),
            data: RecordData::new(),
            emitted_at: Some(time.to_owned()),
            identity: None,
        };
        let (text, files) = (message_text(message), attachments(message));
        record.put_text("title", title_from(&text, files.first().map(String::as_str).unwrap_or_default()));
        record.put_text("channel", self.chat.shown_name());
        record.put_text("from", text_at(message, "from"));
        record.put_text("date", time);
        record.put_text("edited_at", &seconds_at(message, "edited_unixtime").unwrap_or_default());
        record.put_text("forwarded_from", text_at(message, "forwarded_from"));
        let reply = message.get("reply_to_message_id").map(text_of).unwrap_or_default();
        record.put_text("reply_to", &if reply.is_empty() { reply } else { format!("{chat}/{reply}") });
        record.put_list("attachments", files);
        record.put_text("path", self.path);
        record.put_text("body", &text);
        record.identity = Some(record.data.clone());
        record
    }
}

/// Returns the time of a message. One without a zone counts as UTC.
fn time_of(message: &RecordData) -> Option<String> {
    let local = || text_at(message, "date").parse::<jiff::civil::DateTime>().ok();
    seconds_at(message, "date_unixtime").or_else(|| Some(format!("{}Z", local()?)))
}

fn seconds_at(message: &RecordData, field: &str) -> Option<String> {
    text_at(message, field).parse().ok().and_then(time_of_seconds)
}

/// Returns the name or the id of a chat, truncated: every message of the chat has it.
fn name_of(value: &Value) -> String {
    const MAX_NAME: usize = 200;
    first_characters(&text_of(value), MAX_NAME).to_owned()
}

/// Returns a string or a number as text.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Returns the text of a message: a string, or pieces with the targets of links. A poll has a question and answers.
fn message_text(message: &RecordData) -> String {
    let mut text = match message.get("text") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(pieces)) => pieces.iter().map(piece_text).collect(),
        _ => String::new(),
    };
    if let Some(poll) = message.get("poll").and_then(Value::as_object) {
        let answers = poll.get("answers").and_then(Value::as_array).into_iter().flatten();
        let answers =
            answers.filter_map(|answer| answer.get("text")?.as_str()).map(|answer| format!("- {answer}"));
        let lines: Vec<String> =
            [text, text_at(poll, "question").to_owned()].into_iter().chain(answers).collect();
        text = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    }
    text
}

fn piece_text(piece: &Value) -> String {
    let Some(object) = piece.as_object() else { return text_of(piece) };
    let (text, target) = (text_at(object, "text"), text_at(object, "href"));
    if target.is_empty() || target == text { text.to_owned() } else { format!("{text} ({target})") }
}

/// Returns the names of the files, and of a contact or place.
fn attachments(message: &RecordData) -> Vec<String> {
    let name_at = |field: &str| {
        let name = text_at(message, field).rsplit('/').next().unwrap_or_default();
        if name.starts_with(NOT_INCLUDED) { "" } else { name }
    };
    let file = [text_at(message, "file_name"), name_at("file")].into_iter().find(|name| !name.is_empty());
    let photo = Some(name_at("photo")).filter(|name| !name.is_empty());
    let kind = || Some(text_at(message, "media_type")).filter(|kind| !kind.is_empty());
    file.or(photo).or_else(kind).into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_have_their_text_and_files() {
        for (message, text, files) in [
            (json!({"text": "plain"}), "plain", vec![]),
            (
                json!({"text": ["see ", {"type": "link", "text": "https://x.test"}, {"type": "text_link", "text": " here", "href": "https://y.test"}]}),
                "see https://x.test here (https://y.test)",
                vec![],
            ),
            (
                json!({"text": "", "poll": {"question": "Which?", "answers": [{"text": "A"}, {"text": "B"}]}}),
                "Which?\n- A\n- B",
                vec![],
            ),
            (json!({"text": "", "photo": "photos/photo_1.jpg"}), "", vec!["photo_1.jpg"]),
            (
                json!({"text": "", "file": "(File not included. Change data exporting settings to download.)", "media_type": "voice_message"}),
                "",
                vec!["voice_message"],
            ),
            (json!({"text": "", "file": "files/a.bin", "file_name": "Plan.pdf"}), "", vec!["Plan.pdf"]),
        ] {
            let message = message.as_object().unwrap();
            assert_eq!(
                (message_text(message).as_str(), attachments(message)),
                (text, files.into_iter().map(str::to_owned).collect())
            );
        }
    }

    #[test]
    fn chats_without_a_name_are_named_by_their_type() {
        for (name, kind, expect) in [
            ("Ana", "personal_chat", "Ana"),
            ("", "personal_chat", "Deleted account"),
            ("", "saved_messages", "Saved Messages"),
        ] {
            let chat = Chat { id: String::new(), name: name.to_owned(), kind: kind.to_owned() };
            assert_eq!(chat.shown_name(), expect);
        }
    }

    #[test]
    fn times_are_those_of_the_zone_if_there_is_one() {
        for (message, expect) in [
            (
                json!({"date": "2024-05-01T10:00:00", "date_unixtime": "1714550400"}),
                Some("2024-05-01T08:00:00Z"),
            ),
            (json!({"date": "2024-05-01T10:00:00"}), Some("2024-05-01T10:00:00Z")),
            (json!({"date": "soon"}), None),
        ] {
            assert_eq!(time_of(message.as_object().unwrap()).as_deref(), expect);
        }
    }
}
