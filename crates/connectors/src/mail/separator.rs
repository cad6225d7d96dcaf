//! The lines between the messages of a mailbox.
//!
//! Most have a sender and a date. Some programs leave out either or both: then the line is a separator if headers of a
//! message follow it, because a paragraph may begin with `From `, too.

use std::collections::BTreeSet;

/// Headers with which a message may begin.
const HEADERS: [&str; 16] = [
    "bcc",
    "cc",
    "content-type",
    "date",
    "delivered-to",
    "from",
    "in-reply-to",
    "message-id",
    "mime-version",
    "received",
    "reply-to",
    "return-path",
    "sender",
    "status",
    "subject",
    "to",
];

/// Headers that a list in a text hardly has, unlike `To` or `Subject`.
const SURE_HEADERS: [&str; 6] = ["date", "delivered-to", "from", "message-id", "received", "return-path"];

/// Returns true if a line starts a message: `From ann@x.test Wed Apr  1 10:00:00 2026`, with the date in the format
/// of C's `asctime`. Some mailers write a time zone before or after the year. The sender may be any text.
pub(super) fn is_start(line: &[u8]) -> bool {
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

/// The headers after a line that begins with `From ` without a date, which decide if it is a separator.
#[derive(Debug)]
pub(super) struct HeaderCheck {
    /// Number of headers that must follow.
    needed: usize,
    /// True if only headers count that a list in a text hardly has.
    only_sure: bool,
    names: BTreeSet<&'static str>,
    /// True after a header, which may continue on the next line.
    is_after_header: bool,
}

impl HeaderCheck {
    /// Starts the check of a line, or returns `None` for one that is no separator whatever follows: `From ` and words.
    pub(super) fn new(line: &[u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"From").filter(|rest| rest.first().is_none_or(|byte| *byte == b' '))?;
        let words = String::from_utf8_lossy(rest);
        let words: Vec<&str> = words.split_ascii_whitespace().collect();
        let (needed, only_sure) = match words.as_slice() {
            [] | ["-"] => (1, false),
            [sender, ..] if sender.contains('@') => (2, false),
            [_sender] => (2, true),
            [_sender, date @ ..] if date.iter().any(|word| is_time(word)) => (2, true),
            _ => return None,
        };
        Some(Self { needed, only_sure, names: BTreeSet::new(), is_after_header: false })
    }

    /// Adds the next line. Returns false if the headers end before it.
    pub(super) fn add(&mut self, line: &[u8]) -> bool {
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            return self.is_after_header;
        }
        let name = line.iter().position(|byte| *byte == b':').and_then(|colon| line.get(..colon));
        let name = name.filter(|name| name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-'));
        let Some(name) = name.filter(|name| !name.is_empty()) else { return false };
        let known: &[&'static str] = if self.only_sure { &SURE_HEADERS } else { &HEADERS };
        self.names.extend(known.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(name)));
        self.is_after_header = true;
        true
    }

    /// Returns true if the line before these headers is a separator.
    pub(super) fn is_separator(&self) -> bool {
        self.names.len() >= self.needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_date_in_any_format_are_separators() {
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
    fn headers_decide_on_lines_without_a_date() {
        for (line, headers, expect) in [
            ("From ", "Subject: x", true),
            ("From", "X-Spam: no\nX-Score:\n\t1\nFrom: a@x", true),
            ("From -", "To: a@x", true),
            ("From ", "a list: x", false),
            ("From ", "\nSubject: x", false),
            ("From ", " To: a", false),
            ("From ann@x.test", "Subject: x\nTo: a@x", true),
            ("From ann@x.test", "Subject: x", false),
            ("From ann@x.test Mon, 3 Feb 2003 10:00:00 +0100", "Received: x\nReceived: y\nDate: z", true),
            ("From ann", "From: ann\nDate: z", true),
            ("From ann 2003-02-03 10:00:00", "From: ann\nDate: z", true),
            ("From Berlin", "To: Oslo\nDate: 5 May\nSubject: trip", false),
            ("From Monday on we meet:", "From: a@x\nDate: z", false),
            ("Fromage", "From: a@x\nDate: z", false),
            (">From ", "Subject: x", false),
        ] {
            let check = HeaderCheck::new(line.as_bytes()).is_some_and(|mut check| {
                let _ = headers.lines().all(|header| check.add(header.as_bytes()));
                check.is_separator()
            });
            assert_eq!(check, expect, "{line} {headers}");
        }
    }
}
