//! The fields that distinguish two messages with the same message id.
//!
//! A message id should be unique, but some mailers and mailing lists reuse it. The second message with an id gets a
//! key with a hash of its `identity`. **Invariant:** these are the record fields of version 0.1.0, whatever fields
//! records have today, so that an import of the same mailbox always gives the same keys.

use fetchwell_core::record::RecordData;
use mail_parser::{Message, MimeHeaders};
use serde_json::Value;

use super::headers::{addresses, labels};
use super::limits::unmask;
use super::text::digest_messages;

pub(super) fn identity(message: &Message<'_>, date: Option<&str>) -> RecordData {
    let mut data = RecordData::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            data.insert(name.to_owned(), value);
        }
    };
    put("subject", message.subject().map(Value::from));
    put("from", message.from().map(addresses));
    put("to", message.to().map(addresses));
    put("cc", message.cc().map(addresses));
    put("date", date.map(Value::from));
    put("message_id", message.message_id().map(Value::from));
    put("in_reply_to", message.in_reply_to().as_text().map(Value::from));
    put("labels", labels(message));
    let names = message.attachments().filter_map(|part| part.attachment_name());
    let names: Vec<Value> = names.map(|name| Value::from(unmask(name))).collect();
    put("attachments", Some(Value::Array(names)).filter(|names| names != &Value::Array(Vec::new())));
    put("body", Some(Value::from(own_text(message).replace("\r\n", "\n").trim_end())));
    data
}

/// Returns the texts of a message, without those of attached messages, using the HTML conversion of `mail_parser`.
fn own_text(message: &Message<'_>) -> String {
    let attached = digest_messages(message);
    let texts = message.text_body.iter().enumerate().filter(|(_, id)| !attached.contains(id));
    let texts: Vec<String> =
        texts.filter_map(|(at, _)| message.body_text(at)).map(|text| unmask(&text).into_owned()).collect();
    texts.join("\n\n")
}
