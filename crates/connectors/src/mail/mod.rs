//! E-mails as records: decoded headers, the text, and the names and texts of attachments.
//!
//! * `eml`: the reader of single messages, `emlx`: of those of Apple Mail, `outlook`: of Outlook, `mbox`: the importer of mailbox files, `separator`: the lines between messages
//! * `limits`: limits that are checked before parsing
//! * `headers`: values of single headers, `header_bytes`: headers in UTF-8 for the parser
//! * `identity`: the fields that distinguish two messages with the same message id
//! * `text`: the texts of a message and of forwarded messages, `attachments`: those of attachments
//! * `alternatives`: the choice of a body, `charset`: texts with a wrong character set, `flowed`: flowed paragraphs
//! * `protected`: parts that only another program can read

mod alternatives;
mod attachments;
mod charset;
mod eml;
mod emlx;
mod flowed;
mod header_bytes;
mod headers;
mod identity;
mod limits;
mod mbox;
mod outlook;
mod protected;
mod separator;
mod text;

pub(crate) use eml::{MESSAGES, read_mail};
pub(crate) use emlx::{begins_with_count, read_emlx};
pub(crate) use mbox::{import_mailbox, read_mailbox};
pub(crate) use outlook::read_msg;

use std::panic::{AssertUnwindSafe, catch_unwind};

use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::RecordData;
use mail_parser::{Addr, Address, HeaderValue, Message, MessageParser};
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::attachments::AttachmentFields;
use self::header_bytes::headers_in_utf8;
use self::headers::{addresses, date_of, labels};
use self::identity::identity;
use self::limits::{SearchAllowance, prepare};
use self::text::Texts;
use super::attached::AttachmentReader;

/// The parts of a message that become a record.
#[derive(Debug)]
pub(crate) struct MailRecord {
    pub(crate) key: String,
    pub(crate) data: RecordData,
    /// Fields that distinguish it from another message with the same key.
    pub(crate) identity: RecordData,
    pub(crate) emitted_at: Option<String>,
}

/// Parses a message. A panic of the parser is returned as an error, so that the import continues.
pub(crate) fn read_message(raw: &[u8], attachments: &dyn AttachmentReader) -> Result<MailRecord, String> {
    catch_unwind(AssertUnwindSafe(|| parse_message(raw, attachments)))
        .unwrap_or_else(|_panic| Err("an internal error stopped its parser; please report it".to_owned()))
}

fn parse_message(raw: &[u8], attachments: &dyn AttachmentReader) -> Result<MailRecord, String> {
    let mut allowance = SearchAllowance::default();
    let prepared = prepare(raw, &mut allowance)?;
    let message = MessageParser::default().parse(&*prepared).ok_or("it has no headers")?;
    let emitted_at = date_of(&message);
    let key = message_key(&message, raw);
    let identity = identity(&message, emitted_at.as_deref());
    // The identity has the headers as version 0.1.0 read them.
    let recoded = headers_in_utf8(&prepared).filter(|recoded| prepare(recoded, &mut allowance).is_ok());
    let recoded = recoded.as_deref().and_then(|raw| MessageParser::default().parse(raw));
    let message = recoded.unwrap_or(message);
    let texts = Texts::read(&message, &mut allowance, attachments);
    let data = message_fields(&message, texts, &key, emitted_at.as_deref());
    Ok(MailRecord { key, data, identity, emitted_at })
}

/// Returns the key of a message: its message id, or a hash of the whole message.
fn message_key(message: &Message<'_>, raw: &[u8]) -> String {
    let id = message.message_id().map(str::trim).filter(|id| !id.is_empty());
    id.map_or_else(|| format!("sha256-{}", hexadecimal(&Sha256::digest(raw))), str::to_owned)
}

fn message_fields(message: &Message<'_>, texts: Texts<'_>, key: &str, date: Option<&str>) -> RecordData {
    let (body, AttachmentFields { names, texts }) = texts.into_fields();
    let mut data = RecordData::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            data.insert(name.to_owned(), value);
        }
    };
    let sender = message.from().and_then(Address::first);
    let references = ids(message.references());
    put("subject", message.subject().map(Value::from));
    put("from", message.from().map(addresses));
    put("from.address", sender.and_then(Addr::address).map(Value::from));
    put("from.name", sender.and_then(Addr::name).map(Value::from));
    put("to", message.to().map(addresses));
    put("cc", message.cc().map(addresses));
    put("date", date.map(Value::from));
    put("message_id", message.message_id().map(Value::from));
    put("in_reply_to", message.in_reply_to().as_text().map(Value::from));
    put("thread_id", Some(thread_id(message, &references).unwrap_or(key).into()));
    put("references", list(references));
    put("labels", labels(message));
    put("attachments", list(names));
    put("body", Some(body.into()));
    data.extend(texts);
    data
}

/// Returns the id of the conversation: that of the mail provider, else the id of its first message.
fn thread_id<'a>(message: &'a Message<'_>, references: &[&'a str]) -> Option<&'a str> {
    let provider = message.header("X-GM-THRID").and_then(HeaderValue::as_text).map(str::trim);
    let parents = || ids(message.in_reply_to());
    provider
        .filter(|id| !id.is_empty())
        .or(references.first().copied())
        .or_else(|| parents().first().copied())
}

/// Returns the message ids of a header.
fn ids<'a>(header: &'a HeaderValue<'_>) -> Vec<&'a str> {
    let ids = header.as_text_list().unwrap_or_default().iter();
    ids.map(|id| id.trim()).filter(|id| !id.is_empty()).collect()
}

fn list<Item: Into<Value>>(items: Vec<Item>) -> Option<Value> {
    (!items.is_empty()).then(|| items.into_iter().map(Into::into).collect())
}

#[cfg(test)]
mod tests;
