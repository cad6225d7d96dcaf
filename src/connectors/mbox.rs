//! `import mbox`: a mailbox file, a record per message.
//!
//! A record has the decoded headers people look for, the decoded text of the message as `body` (HTML as
//! text when there is nothing else) and the names of its attachments. Its key is the message id.

use std::collections::HashSet;
use std::io::BufRead;
use std::panic::catch_unwind;
use std::path::Path;

use mail_parser::{Addr, Address, HeaderValue, Message, MessageParser, MimeHeaders, PartType};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::ImportError;
use super::intake::{Draft, Intake, Repeated};
use super::lines::{Line, MAX_LINE_BYTES, next_line};
use super::mail_limits::{self, is_digest, unmask};
use crate::record::RecordData;

/// Imports every message of `reader` into `stream`; `path` names it in errors.
///
/// # Errors
///
/// The file is not a mailbox or cannot be read, the store cannot be written, or the user stopped the
/// import.
pub fn import_mbox(
    reader: &mut impl BufRead,
    path: &Path,
    stream: &str,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let mut mailbox = Mailbox { line: Vec::new(), number: 0, after_blank: true };
    let unreadable =
        |error: std::io::Error| ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() };
    if !mailbox.find_first(reader).map_err(unreadable)? {
        let problem = "its first line does not start with `From `, a sender and a date".to_owned();
        return Err(ImportError::WrongKind { path: path.to_owned(), expected: "an mbox file", problem });
    }
    while let Some((line, message)) = mailbox.next_message(reader).map_err(unreadable)? {
        let Some(raw) = message else {
            intake.reject(&line, &format!("the message is longer than {MAX_LINE_BYTES} bytes"));
            continue;
        };
        match read_message(&raw) {
            Ok(MailRecord { key, data, emitted_at }) => {
                // An id should be of one message, and mailers and lists do not keep to it.
                let (key, bytes, repeated) = (Some(Value::from(key)), raw.len(), Repeated::KeptApart);
                intake.take(&line, Draft { stream, key, data: Some(data), emitted_at, bytes, repeated })?;
            }
            Err(reason) => intake.reject(&line, &reason),
        }
    }
    Ok(())
}

/// The parts of a message that become a record.
struct MailRecord {
    key: String,
    data: RecordData,
    emitted_at: Option<String>,
}

/// Parses a message. A message that stops the parser is an error like any other, so that the import goes on.
fn read_message(raw: &[u8]) -> Result<MailRecord, String> {
    catch_unwind(|| parse_message(raw))
        .unwrap_or_else(|_panic| Err("an internal error stopped its parser; please report it".to_owned()))
}

fn parse_message(raw: &[u8]) -> Result<MailRecord, String> {
    let prepared = mail_limits::prepare(raw)?;
    let message = MessageParser::default().parse(&*prepared).ok_or("it has no headers")?;
    let emitted_at = message.date().filter(|date| date.is_valid()).map(mail_parser::DateTime::to_rfc3339);
    let data = message_fields(&message, emitted_at.as_deref());
    Ok(MailRecord { key: message_key(&message, raw), data, emitted_at })
}

/// Cuts a mailbox into messages: one starts at a line `From `, a sender and a date, after a blank line.
///
/// `mail_parser` can cut mailboxes too, but it takes every line that starts with `From ` for a start,
/// which breaks messages whose text has one, and keeps a message of any length in memory.
struct Mailbox {
    line: Vec<u8>,
    number: u64,
    after_blank: bool,
}

type NextMessage = Option<(u64, Option<Vec<u8>>)>;

impl Mailbox {
    fn find_first(&mut self, reader: &mut impl BufRead) -> std::io::Result<bool> {
        loop {
            self.number += 1;
            match next_line(reader, &mut self.line)? {
                Line::Whole if self.line.is_empty() => {}
                Line::Whole => return Ok(is_start(&self.line)),
                Line::TooLong | Line::End => return Ok(false),
            }
        }
    }

    /// The message whose `From ` line is in the buffer, with that line's number; `None` at the end.
    fn next_message(&mut self, reader: &mut impl BufRead) -> std::io::Result<NextMessage> {
        if !is_start(&self.line) {
            return Ok(None);
        }
        let start = self.number;
        let mut message = Some(Vec::new());
        self.after_blank = false;
        loop {
            self.number += 1;
            match next_line(reader, &mut self.line)? {
                Line::End => {
                    self.line.clear();
                    return Ok(Some((start, message)));
                }
                Line::Whole if self.after_blank && is_start(&self.line) => {
                    return Ok(Some((start, message)));
                }
                Line::TooLong => message = None,
                Line::Whole => {
                    self.after_blank = self.line.is_empty();
                    message = message.and_then(|message| append(message, &self.line));
                }
            }
        }
    }
}

/// Whether a line starts a message: `From ann@x.test Wed Apr  1 10:00:00 2026`, the date as C's `asctime` writes
/// it. Some mailers put a time zone before or after the year; the sender may be anything.
fn is_start(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ") else { return false };
    let words = String::from_utf8_lossy(rest);
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    (0..words.len()).any(|at| {
        let Some([weekday, month, day, time, after @ ..]) = words.get(at..) else { return false };
        WEEKDAYS.contains(weekday)
            && MONTHS.contains(month)
            && day.parse().is_ok_and(|day: u8| (1..=31).contains(&day))
            && is_time(time)
            && after.iter().take(2).any(|word| is_year(word))
    })
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `10:00`, `10:00:00`
fn is_time(word: &str) -> bool {
    let is_number =
        |piece: &str| (1..=2).contains(&piece.len()) && piece.bytes().all(|byte| byte.is_ascii_digit());
    (2..=3).contains(&word.split(':').count()) && word.split(':').all(is_number)
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Adds a line, without the `>` that protects a `From ` in the text. `None` when it becomes too long.
fn append(mut message: Vec<u8>, line: &[u8]) -> Option<Vec<u8>> {
    let text = line.iter().position(|byte| *byte != b'>').unwrap_or(line.len());
    let is_protected = text > 0 && line.get(text..).is_some_and(|rest| rest.starts_with(b"From "));
    message.extend_from_slice(line.get(usize::from(is_protected)..).unwrap_or_default());
    message.push(b'\n');
    (message.len() <= MAX_LINE_BYTES).then_some(message)
}

fn message_key(message: &Message<'_>, raw: &[u8]) -> String {
    let id = message.message_id().map(str::trim).filter(|id| !id.is_empty());
    id.map_or_else(|| format!("sha256-{}", hex(&Sha256::digest(raw))), str::to_owned)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn message_fields(message: &Message<'_>, date: Option<&str>) -> RecordData {
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
    put("body", Some(Value::from(body_of(message).replace("\r\n", "\n").trim_end())));
    data
}

/// Returns the texts of a message. A message of a digest is an attached message, which has no header that says so.
fn body_of(message: &Message<'_>) -> String {
    let digests = message.parts.iter().filter_map(|part| match &part.body {
        PartType::Multipart(ids) if part.content_type()?.subtype().is_some_and(is_digest) => Some(ids),
        _ => None,
    });
    let is_untyped = |id: &&u32| {
        let part = usize::try_from(**id).ok().and_then(|at| message.parts.get(at));
        part.is_some_and(|part| part.content_type().is_none())
    };
    let attached: HashSet<u32> = digests.flatten().filter(is_untyped).copied().collect();
    let texts = message.text_body.iter().enumerate().filter(|(_, id)| !attached.contains(id));
    let texts: Vec<String> =
        texts.filter_map(|(at, _)| message.body_text(at)).map(|text| unmask(&text).into_owned()).collect();
    texts.join("\n\n")
}

/// The labels that mail providers add to exports.
fn labels(message: &Message<'_>) -> Option<Value> {
    let HeaderValue::Text(text) = message.header("X-Gmail-Labels")? else { return None };
    Some(text.split(',').map(str::trim).filter(|label| !label.is_empty()).map(Value::from).collect())
}

fn addresses(address: &Address<'_>) -> Value {
    let write = |addr: &Addr<'_>| match (addr.name(), addr.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default().to_owned(),
    };
    Value::from(address.iter().map(write).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::json;

    use super::*;

    fn messages(text: &str) -> Vec<(u64, String)> {
        let mut reader = Cursor::new(text.as_bytes());
        let mut mailbox = Mailbox { line: Vec::new(), number: 0, after_blank: true };
        assert!(mailbox.find_first(&mut reader).unwrap());
        let mut found = Vec::new();
        while let Some((line, raw)) = mailbox.next_message(&mut reader).unwrap() {
            found.push((line, String::from_utf8(raw.unwrap()).unwrap()));
        }
        found
    }

    #[test]
    fn a_message_starts_after_a_blank_line_only() {
        let text = "From a@x Mon Apr  6 09:00:00 2026\nSubject: 1\n\nFirst line\nFrom here on it goes on\n>From me\n>>From him\n\nFrom b@x Tue Apr  7 09:00:00 2026\nSubject: 2\n\nx\n";
        assert_eq!(
            messages(text),
            [
                (1, "Subject: 1\n\nFirst line\nFrom here on it goes on\nFrom me\n>From him\n\n".to_owned()),
                (9, "Subject: 2\n\nx\n".to_owned()),
            ]
        );
    }

    #[test]
    fn a_paragraph_that_begins_with_from_is_text() {
        let text = "From a@x Mon Apr  6 09:00:00 2026\nSubject: 1\n\nOne\n\nFrom Monday on we meet at 10:00.\n\nFrom May 1 2026\n";
        assert_eq!(
            messages(text),
            [(1, "Subject: 1\n\nOne\n\nFrom Monday on we meet at 10:00.\n\nFrom May 1 2026\n".to_owned())]
        );
    }

    #[test]
    fn every_mailer_writes_the_date_a_little_differently() {
        for line in [
            "From ann@x.test Wed Apr  1 10:00:00 2026",
            "From - Wed Apr 01 10:00:00 2026",
            "From 1234@xxx Wed Apr 01 10:00:00 +0000 2026",
            "From ann@x.test Wed Apr  1 10:00:00 CEST 2026",
            "From \"Ann B\" <ann@x.test> Wed Apr  1 10:00 2026 remote from host",
            "From ann@x.test Wed Apr  1 10:00:00 2026 +0200",
        ] {
            assert!(is_start(line.as_bytes()), "{line}");
        }
        for line in [
            "From ",
            "From ann@x.test",
            "From Wed to Fri",
            "From Wed Apr 1 on, at 10:00 in 2026",
            ">From a Wed Apr 1 10:00:00 2026",
        ] {
            assert!(!is_start(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn headers_and_text_are_decoded() {
        let raw = "Message-ID: <m1@x.test>\nFrom: =?utf-8?q?Ren=C3=A9?= <rene@x.test>\nTo: a@x.test, B <b@x.test>\n\
            Subject: =?utf-8?b?w4lww6k=?=\nDate: Wed, 1 Apr 2026 10:00:00 +0200\nX-Gmail-Labels: Inbox,Work/Bills\n\
            Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nCaf=C3=A9=\n au lait\n";
        let message = MessageParser::default().parse(raw.as_bytes()).unwrap();
        assert_eq!(message_key(&message, raw.as_bytes()), "m1@x.test");
        assert_eq!(
            Value::Object(message_fields(&message, Some("2026-04-01T10:00:00+02:00"))),
            json!({
                "subject": "Épé", "from": "René <rene@x.test>", "to": "a@x.test, B <b@x.test>",
                "date": "2026-04-01T10:00:00+02:00", "message_id": "m1@x.test",
                "labels": ["Inbox", "Work/Bills"], "body": "Café au lait",
            })
        );
    }

    #[track_caller]
    fn check_body(raw: &str, attachments: &Value, body: &str) {
        let read = read_message(raw.as_bytes()).unwrap();
        assert_eq!(read.data.get("attachments").unwrap_or(&Value::Null), attachments, "{raw}");
        assert_eq!(read.data.get("body"), Some(&json!(body)), "{raw}");
    }

    #[test]
    fn an_attached_message_is_an_attachment_and_no_text() {
        let attached = "Content-Type: message/rfc822; name=\"rfc822.eml\"\n\nSubject: inner\n\ninner text\n";
        let outer = |kind: &str, parts: &str| {
            format!("Subject: x\nContent-Type: multipart/{kind}; boundary=b\n\n--b\n{parts}\n--b--\n")
        };
        let text = "Content-Type: text/plain\n\nContent-Type: message/rfc822\n";
        check_body(
            &outer("mixed", &format!("{text}--b\n{attached}")),
            &json!(["rfc822.eml"]),
            "Content-Type: message/rfc822",
        );
        let digest = "\nSubject: inner\n\ninner text\n--b\n\nSubject: other\n\nother text";
        check_body(
            &outer("digest", &format!("{text}--b\n{digest}")),
            &Value::Null,
            "Content-Type: message/rfc822",
        );
        check_body(&format!("Subject: x\n{attached}"), &json!(["rfc822.eml"]), "");
    }

    #[test]
    fn a_message_nested_a_million_deep_is_read() {
        let nested = "Content-Type: message/rfc822\n\n".repeat(1_000_000);
        check_body(&format!("Subject: x\n{nested}"), &Value::Null, "");
        let open = |level: u32| format!("Content-Type: multipart/mixed; boundary=b{level}.\n\n--b{level}.\n");
        let close = |level: u32| format!("\n--b{level}.--\n");
        let multiparts: String = (0..1_000).map(open).collect();
        let ends: String = (0..1_000).rev().map(close).collect();
        check_body(&format!("Subject: x\n{multiparts}\ntext\n{ends}"), &Value::Null, "text");
    }

    #[test]
    fn html_of_any_shape_becomes_text() {
        for shape in ["<div>", "<", ">", "&", "&lt;", "<!--", "<style>", "<a href=\"", "</p>", "é<"] {
            let raw = format!("Content-Type: text/html; charset=utf-8\n\n{}", shape.repeat(300_000));
            assert!(read_message(raw.as_bytes()).is_ok(), "{shape}");
        }
    }

    #[test]
    fn headers_of_any_shape_are_read() {
        for shape in
            ["(", "<", "\"", "=?aa?q?", "=?utf-8?b?YQ", "a <a@b>, ", "\n ", ";a*1=", "\\", "@", ",", "[", ":"]
        {
            for name in ["From", "Subject", "Date", "Received", "References", "X-Gmail-Labels", "List-Id"] {
                let raw = format!("{name}: {}\n\nx\n", shape.repeat(100_000 / shape.len()));
                let _ = read_message(raw.as_bytes());
            }
        }
    }

    #[test]
    fn a_message_without_an_id_is_known_by_its_content() {
        let raw = b"Subject: x\n\ny\n";
        let message = MessageParser::default().parse(&raw[..]).unwrap();
        let key = message_key(&message, raw);
        assert!(key.starts_with("sha256-") && key.len() == 7 + 64, "{key}");
    }
}
