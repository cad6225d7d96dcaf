//! The importer of mailbox files (mbox): one record per message. The key of a record is the message id.

use std::collections::VecDeque;
use std::io::BufRead;
use std::path::Path;

use serde_json::Value;

use super::super::ImportError;
use super::super::attached::AttachmentReader;
use super::super::intake::{Draft, DuplicatePolicy, Intake, Piece, PieceSink, parse_ahead};
use super::super::item::text_bytes_of;
use super::super::lines::{Line, MAX_LINE_BYTES, next_line};
use super::separator::{HeaderCheck, is_start};
use super::{MailRecord, read_message};

/// Imports every message of `reader` into `stream`. `path` names the file in errors.
///
/// # Errors
///
/// The file is not a mailbox or cannot be read, the store cannot be written, or the user stopped the
/// import.
pub(crate) fn import_mailbox(
    reader: &mut impl BufRead,
    path: &Path,
    stream: &str,
    attachments: &dyn AttachmentReader,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    MailboxImport { path, stream, origin: None, attachments }.read(reader, intake)
}

/// Imports every message of a mailbox in a folder or archive. `path` is its path there.
pub(crate) fn read_mailbox(
    reader: &mut impl BufRead,
    path: &str,
    stream: &str,
    attachments: &dyn AttachmentReader,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let (origin, path) = (Some(path), Path::new(path));
    MailboxImport { path, stream, origin, attachments }.read(reader, intake)
}

/// The import of a mailbox.
struct MailboxImport<'a> {
    path: &'a Path,
    stream: &'a str,
    /// Path in a folder, which records have as a field, and which rejections name.
    origin: Option<&'a str>,
    attachments: &'a dyn AttachmentReader,
}

impl MailboxImport<'_> {
    /// Imports every message.
    fn read(&self, reader: &mut impl BufRead, intake: &mut Intake<'_>) -> Result<(), ImportError> {
        let Self { path, stream, origin, attachments } = *self;
        let mut mailbox = Mailbox::default();
        let unreadable = |error: std::io::Error| ImportError::Unreadable {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        if !mailbox.find_first(reader).map_err(unreadable)? {
            let problem =
                "its first line does not start with `From ` and a date, and no header follows it".to_owned();
            return Err(ImportError::WrongKind { path: path.to_owned(), expected: "an mbox file", problem });
        }
        let parse = |raw: Vec<u8>| {
            let record = read_message(&raw, attachments)?;
            let is_complete = !attachments.is_stopped() || !record.data.contains_key("attachments");
            // Texts of attachments may be longer than the message.
            let bytes = raw.len().max(text_bytes_of(&record.data));
            Ok((record, bytes, is_complete))
        };
        let read = |send: &mut PieceSink<'_, u64, Vec<u8>>| {
            while let Some((line, message)) = mailbox.next_message(reader).map_err(unreadable)? {
                let content =
                    message.ok_or_else(|| format!("the message is longer than {MAX_LINE_BYTES} bytes"));
                let bytes = content.as_ref().map_or(0, Vec::len);
                send(Piece { place: line, content, bytes })?;
            }
            Ok(())
        };
        let stop = intake.stop_flag();
        parse_ahead(stop, &parse, read, &mut |line, message| match message {
            // The next import reads it again.
            Ok((_half_read, _, false)) => Err(ImportError::Stopped),
            Ok((MailRecord { key, mut data, identity, emitted_at }, bytes, true)) => {
                if let Some(origin) = origin {
                    data.shift_insert(0, "path".to_owned(), Value::from(origin));
                }
                // A message id should be unique, but some mailers and mailing lists reuse it.
                let (key, repeated) = (Some(Value::from(key)), DuplicatePolicy::KeptApart(identity));
                let place = place(origin, line);
                intake.report_attachments(&place, &data);
                let draft = Draft { stream, key, data: Some(data), emitted_at, bytes, repeated };
                intake.take_ahead(&place, draft)
            }
            Err(reason) => {
                intake.reject(&place(origin, line), &reason);
                Ok(())
            }
        })
    }
}

/// Returns the place of a message in a report: its line, after the path of its mailbox in a folder.
fn place(origin: Option<&str>, line: u64) -> String {
    origin.map_or_else(|| line.to_string(), |path| format!("{path}:{line}"))
}

/// Maximum number of lines after a line with `From ` that are read to find headers.
const MAX_LINES_AHEAD: usize = 64;

/// Number of bytes after which no further line is read ahead.
const MAX_BYTES_AHEAD: usize = 64 * 1024;

/// A parser that splits a mailbox into messages: one starts at a line with `From `, a sender and a date, or with `From `
/// and headers on the next lines, after a blank line.
///
/// `mail_parser` can split mailboxes too, but it takes every line that starts with `From ` for a start, which breaks
/// messages with such a line in their text, and it keeps a message of any length in memory.
#[derive(Default)]
struct Mailbox {
    line: Vec<u8>,
    number: u64,
    after_blank: bool,
    /// Lines that were read to find headers, and are read again.
    ahead: VecDeque<AheadLine>,
}

/// A line that was read ahead.
struct AheadLine {
    kind: Line,
    text: Vec<u8>,
}

type NextMessage = Option<(u64, Option<Vec<u8>>)>;

impl Mailbox {
    /// Finds the first line that is not blank. Returns true if it starts a message.
    fn find_first(&mut self, reader: &mut impl BufRead) -> std::io::Result<bool> {
        loop {
            match self.read_line(reader)? {
                Line::Whole if self.line.is_empty() => {}
                Line::Whole => return self.is_separator(reader),
                Line::TooLong | Line::End => return Ok(false),
            }
        }
    }

    fn read_line(&mut self, reader: &mut impl BufRead) -> std::io::Result<Line> {
        self.number += 1;
        match self.ahead.pop_front() {
            Some(AheadLine { kind, text }) => {
                self.line = text;
                Ok(kind)
            }
            None => next_line(reader, &mut self.line),
        }
    }

    /// Returns true if the line in the buffer starts a message.
    fn is_separator(&mut self, reader: &mut impl BufRead) -> std::io::Result<bool> {
        if is_start(&self.line) {
            return Ok(true);
        }
        let Some(mut check) = HeaderCheck::new(&self.line) else { return Ok(false) };
        let mut bytes = 0;
        for at in 0..MAX_LINES_AHEAD {
            if at == self.ahead.len() {
                let mut text = Vec::new();
                let kind = next_line(reader, &mut text)?;
                self.ahead.push_back(AheadLine { kind, text });
            }
            let next = self.ahead.get(at).filter(|next| next.kind == Line::Whole);
            bytes += next.map_or(0, |next| next.text.len());
            if !next.is_some_and(|next| check.add(&next.text))
                || check.is_separator()
                || bytes > MAX_BYTES_AHEAD
            {
                break;
            }
        }
        Ok(check.is_separator())
    }

    /// Returns the message after the `From ` line in the buffer, with that line's number, or `None` at the end. The
    /// message is `None` if it is too long.
    fn next_message(&mut self, reader: &mut impl BufRead) -> std::io::Result<NextMessage> {
        if self.line.is_empty() {
            return Ok(None);
        }
        let start = self.number;
        let mut message = Some(Vec::new());
        self.after_blank = false;
        loop {
            match self.read_line(reader)? {
                Line::End => {
                    self.line.clear();
                    return Ok(Some((start, message)));
                }
                Line::Whole if self.after_blank && self.is_separator(reader)? => {
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

/// Appends a line, without the `>` that escapes a `From ` in the text. Returns `None` if the message becomes too
/// long.
fn append(mut message: Vec<u8>, line: &[u8]) -> Option<Vec<u8>> {
    let text = line.iter().position(|byte| *byte != b'>').unwrap_or(line.len());
    let is_protected = text > 0 && line.get(text..).is_some_and(|rest| rest.starts_with(b"From "));
    message.extend_from_slice(line.get(usize::from(is_protected)..).unwrap_or_default());
    message.push(b'\n');
    (message.len() <= MAX_LINE_BYTES).then_some(message)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::atomic::AtomicBool;

    use fetchwell_core::record::RecordData;

    use super::super::super::attached::{AttachedFile, AttachedText, AttachmentBounds};
    use super::super::super::intake::{RecordSink, Report};
    use super::*;

    fn messages(text: &str) -> Vec<(u64, String)> {
        let mut reader = Cursor::new(text.as_bytes());
        let mut mailbox = Mailbox::default();
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
    fn separators_may_lack_the_sender_and_the_date() {
        let text = "From \nFrom: Old <old@x>\nSubject: 1\n\nbody\n\nFrom \nSubject: 2\n\nFrom Berlin\nTo: Oslo\n\n\
                    From \nhere\n\nFrom ann@x\nX-A: 1\n b\nDate: x\nTo: y\n\nend\n\nFrom \nSubject: 4";
        assert_eq!(
            messages(text),
            [
                (1, "From: Old <old@x>\nSubject: 1\n\nbody\n\n".to_owned()),
                (7, "Subject: 2\n\nFrom Berlin\nTo: Oslo\n\nFrom \nhere\n\n".to_owned()),
                (16, "X-A: 1\n b\nDate: x\nTo: y\n\nend\n\n".to_owned()),
                (24, "Subject: 4\n".to_owned()),
            ]
        );
    }

    #[test]
    fn lines_that_are_read_ahead_are_read_once() {
        let headers = "X-A: b\n".repeat(MAX_LINES_AHEAD * 2);
        let text = format!("From \nSubject: 1\n\nFrom a@x\n{headers}Date: x\n\nend\n");
        let expect = text.split_once('\n').unwrap().1;
        assert_eq!(messages(&text), [(1, expect.to_owned())]);
    }

    /// A reader that the user stopped.
    struct Stopped;

    impl AttachmentReader for Stopped {
        fn begin(&self, message_bytes: usize) -> AttachmentBounds {
            AttachmentBounds::for_message(message_bytes)
        }

        fn is_stopped(&self) -> bool {
            true
        }

        fn read(&self, _file: &AttachedFile<'_>, _bounds: &AttachmentBounds) -> AttachedText {
            AttachedText::default()
        }
    }

    /// A receiver that counts records.
    struct Count(usize);

    impl RecordSink for Count {
        fn take(&mut self, _stream: &str, _data: RecordData) -> Result<(), ImportError> {
            self.0 += 1;
            Ok(())
        }
    }

    struct NoReport;

    impl Report for NoReport {
        fn rejected(&mut self, _place: &dyn std::fmt::Display, _reason: &str) {}
    }

    #[test]
    fn a_message_is_not_written_if_its_attachments_were_stopped() {
        let plain = "From a@x Mon Apr  6 09:00:00 2026\nSubject: 1\n\ntext\n\n";
        let attached =
            "From a@x Mon Apr  6 09:00:00 2026\nSubject: 2\nContent-Type: application/pdf; name=a.pdf\n\nx\n";
        let stop = AtomicBool::new(false);
        let (mut sink, mut report) = (Count(0), NoReport);
        let mut intake = Intake::collect(&mut sink, &mut report, &stop);
        let mailbox = format!("{plain}{attached}");
        let read = read_mailbox(&mut mailbox.as_bytes(), "a.mbox", "messages", &Stopped, &mut intake);
        drop(intake);
        assert!(matches!(read, Err(ImportError::Stopped)) && sink.0 == 1, "{read:?}");
    }
}
