//! The reader of ChatGPT's `conversations.json`: a record for each conversation.

use fetchwell_core::record::RecordData;
use serde_json::Value;

use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::objects::{each_object, text_at, time_of_seconds};

/// Stream of conversations.
const STREAM: &str = "conversations";

/// Reads the conversations of an export.
pub(crate) fn read_chatgpt(item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let blank = FileRecord::for_item(STREAM, &item);
    let path = item.path.clone();
    each_object(item, &mut |number, conversation| {
        let place = format!("{path}: conversation {number}");
        let record = FileRecord {
            stream: blank.stream.clone(),
            key: blank.key.clone(),
            data: RecordData::new(),
            emitted_at: blank.emitted_at.clone(),
            identity: None,
        };
        match fill(record, &conversation, &path) {
            Some(record) => record.take_into(&place, intake)?,
            None => intake.reject(&place, "it has no id"),
        }
        Ok(())
    })
}

fn fill(mut record: FileRecord, conversation: &RecordData, path: &str) -> Option<FileRecord> {
    let ids = ["conversation_id", "id"].map(|field| text_at(conversation, field));
    let id = ids.into_iter().find(|id| !id.is_empty())?;
    let messages = messages(conversation);
    let [created, updated] = ["create_time", "update_time"].map(|field| {
        conversation.get(field).and_then(Value::as_f64).and_then(time_of_seconds).unwrap_or_default()
    });
    let title = text_at(conversation, "title").trim();
    record.put_text("title", if title.is_empty() { "New chat" } else { title });
    record.put_text("url", &format!("https://chatgpt.com/c/{id}"));
    record.put_text("created_at", &created);
    record.put_text("updated_at", &updated);
    record.put_text("model", text_at(conversation, "default_model_slug"));
    record.data.insert("messages".to_owned(), Value::from(messages.len()));
    record.put_text("path", path);
    record.put_text("body", &messages.join("\n\n"));
    id.clone_into(&mut record.key);
    record.emitted_at = Some(created).filter(|time| !time.is_empty()).or(record.emitted_at);
    Some(record)
}

/// Returns the messages of the branch that is shown, the first one first, each after the name of its author.
fn messages(conversation: &RecordData) -> Vec<String> {
    let Some(nodes) = conversation.get("mapping").and_then(Value::as_object) else { return Vec::new() };
    let mut branch = Vec::new();
    let mut next = conversation.get("current_node").and_then(Value::as_str);
    // A loop of parents ends after as many steps as there are nodes.
    while let Some(node) = next.and_then(|id| nodes.get(id)).filter(|_| branch.len() < nodes.len()) {
        branch.push(node);
        next = node.get("parent").and_then(Value::as_str);
    }
    branch.reverse();
    let branch = if branch.is_empty() { nodes.values().collect() } else { branch };
    branch.into_iter().filter_map(message_text).collect()
}

fn message_text(node: &Value) -> Option<String> {
    let message = node.get("message")?;
    let author = match message.pointer("/author/role")?.as_str()? {
        "user" => "You",
        "assistant" => "ChatGPT",
        _system_or_tool => return None,
    };
    if message.pointer("/metadata/is_visually_hidden_from_conversation").is_some_and(|hidden| hidden == true)
    {
        return None;
    }
    let content = message.get("content")?;
    let parts = content.get("parts").and_then(Value::as_array);
    // A part is a text, a picture, or a recording with its transcript.
    let parts =
        parts.into_iter().flatten().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()));
    let text: Vec<&str> = parts.chain(content.get("text").and_then(Value::as_str)).collect();
    let text = without_citations(&text.join("\n"));
    (!text.trim().is_empty()).then(|| format!("{author}: {}", text.trim()))
}

/// Returns a text without its references to sources: `U+E200 cite U+E202 turn0search1 U+E201`.
fn without_citations(text: &str) -> String {
    let mut pieces = text.split('\u{E200}');
    let mut written = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        written.push_str(piece.split_once('\u{E201}').map_or(piece, |(_reference, after)| after));
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_branch_that_is_shown_is_read() {
        let message =
            |role: &str, text: &str| json!({"author": {"role": role}, "content": {"parts": [text]}});
        let conversation = json!({"current_node": "c", "mapping": {
            "r": {"parent": null, "message": null},
            "s": {"parent": "r", "message": message("system", "secret")},
            "a": {"parent": "s", "message": message("user", "Hi")},
            "b": {"parent": "a", "message": message("assistant", "other branch")},
            "c": {"parent": "a", "message": message("assistant", "Hello")},
        }});
        assert_eq!(messages(conversation.as_object().unwrap()), ["You: Hi", "ChatGPT: Hello"]);
        let spoken = json!({"author": {"role": "user"}, "content": {"content_type": "multimodal_text", "parts": [
            {"content_type": "audio_transcription", "text": "spoken \u{E200}cite\u{E202}turn0search1\u{E201}words"},
            {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1"},
        ]}});
        assert_eq!(message_text(&json!({"message": spoken})).unwrap(), "You: spoken words");
        let endless =
            json!({"current_node": "a", "mapping": {"a": {"parent": "a", "message": message("user", "x")}}});
        assert_eq!(messages(endless.as_object().unwrap()), ["You: x"]);
    }
}
