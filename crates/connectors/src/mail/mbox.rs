//! The importer of mailbox files (mbox): one record per message. The key of a record is the message id.

use std::io::BufRead;
use std::path::Path;

use serde_json::Value;

use super::super::ImportError;
use super::super::intake::{Draft, DuplicatePolicy, Intake, Piece, PieceSink, parse_ahead};
use super::super::lines::{Line, MAX_LINE_BYTES, next_line};
use super::{MailRecord, read_message};

/// Imports every message of `reader` into `stream`. `path` names the file in errors.
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
    read_messages(reader, path, stream, None, intake)
}

/// Imports every message of a mailbox in a folder or archive. `path` is its path there.
pub(crate) fn read_mailbox(
    reader: &mut impl BufRead,
    path: &str,
    stream: &str,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    read_messages(reader, Path::new(path), stream, Some(path), intake)
}

/// Imports every message. With `origin`, the path in a folder, records have it as a field, and rejections name it.
fn read_messages(
    reader: &mut impl BufRead,
    path: &Path,
    stream: &str,
    origin: Option<&str>,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let mut mailbox = Mailbox { line: Vec::new(), number: 0, after_blank: true };
    let unreadable =
        |error: std::io::Error| ImportError::Unreadable { path: path.to_owned(), problem: error.to_string() };
    if !mailbox.find_first(reader).map_err(unreadable)? {
        let problem = "its first line does not start with `From `, a sender and a date".to_owned();
        return Err(ImportError::WrongKind { path: path.to_owned(), expected: "an mbox file", problem });
    }
    let parse = |raw: Vec<u8>| Ok((read_message(&raw)?, raw.len()));
    let read = |send: &mut PieceSink<'_, u64, Vec<u8>>| {
        while let Some((line, message)) = mailbox.next_message(reader).map_err(unreadable)? {
            let content = message.ok_or_else(|| format!("the message is longer than {MAX_LINE_BYTES} bytes"));
            let bytes = content.as_ref().map_or(0, Vec::len);
            send(Piece { place: line, content, bytes })?;
        }
        Ok(())
    };
    let stop = intake.stop_flag();
    parse_ahead(stop, &parse, read, &mut |line, message| match message {
        Ok((MailRecord { key, mut data, identity, emitted_at }, bytes)) => {
            if let Some(origin) = origin {
                data.shift_insert(0, "path".to_owned(), Value::from(origin));
            }
            // A message id should be unique, but some mailers and mailing lists reuse it.
            let (key, repeated) = (Some(Value::from(key)), DuplicatePolicy::KeptApart(identity));
            let draft = Draft { stream, key, data: Some(data), emitted_at, bytes, repeated };
            intake.take_ahead(&place(origin, line), draft)
        }
        Err(reason) => {
            intake.reject(&place(origin, line), &reason);
            Ok(())
        }
    })
}

/// Returns the place of a message in a report: its line, after the path of its mailbox in a folder.
fn place(origin: Option<&str>, line: u64) -> String {
    origin.map_or_else(|| line.to_string(), |path| format!("{path}:{line}"))
}

/// A parser that splits a mailbox into messages: one starts at a line with `From `, a sender and a date, after a
/// blank line.
///
/// `mail_parser` can split mailboxes too, but it takes every line that starts with `From ` for a start, which breaks
/// messages with such a line in their text, and it keeps a message of any length in memory.
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

    /// Returns the message after the `From ` line in the buffer, with that line's number, or `None` at the end. The
    /// message is `None` if it is too long.
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

/// Returns true if a line starts a message: `From ann@x.test Wed Apr  1 10:00:00 2026`, with the date in the format
/// of C's `asctime`. Some mailers write a time zone before or after the year. The sender may be any text.
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

/// Returns true for a time of day, such as `10:00` or `10:00:00`.
fn is_time(word: &str) -> bool {
    let is_number =
        |piece: &str| (1..=2).contains(&piece.len()) && piece.bytes().all(|byte| byte.is_ascii_digit());
    (2..=3).contains(&word.split(':').count()) && word.split(':').all(is_number)
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit())
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
    fn all_date_formats_of_mailers_are_accepted() {
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
}
