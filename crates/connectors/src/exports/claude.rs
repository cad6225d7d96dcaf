//! The reader of Claude's `conversations.json`: a record for each conversation.

use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::objects::{each_object, text_at};

/// Stream of conversations.
const STREAM: &str = "conversations";

/// Reads the conversations of an export.
pub(crate) fn read_claude(item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let (path, changed_at) = (item.path.clone(), item.changed_at.clone());
    each_object(item, &mut |number, conversation| {
        let place = format!("{path}: conversation {number}");
        let id = text_at(&conversation, "uuid");
        if id.is_empty() {
            intake.reject(&place, "it has no uuid");
            return Ok(());
        }
        let [created, updated] = ["created_at", "updated_at"].map(|field| text_at(&conversation, field));
        let time = Some(created.to_owned()).filter(|time| !time.is_empty()).or_else(|| changed_at.clone());
        let mut record = FileRecord {
            stream: STREAM.to_owned(),
            key: id.to_owned(),
            data: RecordData::new(),
            emitted_at: time,
            identity: None,
        };
        let messages = messages(&conversation);
        let title = text_at(&conversation, "name").trim();
        record.put_text("title", if title.is_empty() { "Untitled" } else { title });
        record.put_text("url", &format!("https://claude.ai/chat/{id}"));
        record.put_text("created_at", created);
        record.put_text("updated_at", updated);
        record.data.insert("messages".to_owned(), Value::from(messages.len()));
        record.put_text("path", &path);
        record.put_text("body", &messages.join("\n\n"));
        Ok(record.take_into(&place, intake)?)
    })
}

/// Returns the messages, each after the name of its author and with the texts of its attachments.
fn messages(conversation: &RecordData) -> Vec<String> {
    let messages = conversation.get("chat_messages").and_then(Value::as_array);
    messages.into_iter().flatten().filter_map(Value::as_object).filter_map(message_text).collect()
}

fn message_text(message: &RecordData) -> Option<String> {
    let author = if text_at(message, "sender") == "human" { "You" } else { "Claude" };
    let content = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = content.filter_map(|part| part.get("text")?.as_str()).collect();
    let text = if texts.is_empty() { text_at(message, "text").to_owned() } else { texts.join("\n") };
    let attachments = message.get("attachments").and_then(Value::as_array).into_iter().flatten();
    let attached = attachments.filter_map(|attachment| {
        let (name, text) =
            (attachment.get("file_name")?.as_str()?, attachment.get("extracted_content")?.as_str()?);
        Some(format!("\n\n--- {name} ---\n{text}"))
    });
    let text = [text.trim().to_owned()].into_iter().chain(attached).collect::<String>();
    (!text.is_empty()).then(|| format!("{author}: {text}"))
}
