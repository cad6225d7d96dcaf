//! Headers in UTF-8, where their bytes are in another character set than they should be.
//!
//! The parser reads raw bytes above 127 as UTF-8, and encoded words (RFC 2047) one by one in the character set that they
//! name. This module rewrites the headers for it: raw bytes in another character set; words in UTF-8 that name another
//! one; and words in UTF-8 that programs cut within a character.

use std::fmt::Write as _;
use std::ops::Range;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use mail_parser::decoders::base64::base64_decode;

use super::charset::is_utf8_word;

/// Maximum length of an encoded word in bytes. RFC 2047 allows 75, programs write more.
const MAX_WORD_BYTES: usize = 4_000;

/// Returns the message with its headers in UTF-8, or `None` if the parser reads them correctly.
pub(super) fn headers_in_utf8(raw: &[u8]) -> Option<Vec<u8>> {
    let (head, body) = raw.split_at_checked(head_length(raw))?;
    let is_raw = std::str::from_utf8(head).is_err();
    if !is_raw && !head.windows(2).any(|pair| pair == b"=?") {
        return None;
    }
    let text = if is_raw { decode_lines(head) } else { String::from_utf8_lossy(head).into_owned() };
    let repaired = repair_words(&text);
    (is_raw || repaired.is_some()).then(|| [repaired.unwrap_or(text).as_bytes(), body].concat())
}

/// Returns the length of the headers.
fn head_length(raw: &[u8]) -> usize {
    let mut ends = raw.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let end = ends.find(|at| {
        let rest = raw.get(*at..).unwrap_or_default();
        rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
    });
    end.unwrap_or(raw.len())
}

/// Decodes the lines that are not UTF-8 in the character set of the message, or as Windows-1252.
fn decode_lines(head: &[u8]) -> String {
    let lower = String::from_utf8_lossy(head).to_ascii_lowercase();
    let name = lower.split_once("charset=").map(|(_, after)| after.trim_start_matches(['"', '\'']));
    let name =
        name.and_then(|after| after.split(['"', '\'', ';', ' ', '\r', '\n']).next()).unwrap_or_default();
    let encoding = Encoding::for_label(name.as_bytes());
    let encoding =
        encoding.filter(|found| found.is_ascii_compatible() && *found != UTF_8).unwrap_or(WINDOWS_1252);
    let lines = head.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| match std::str::from_utf8(line) {
            Ok(text) => text.into(),
            Err(_not_utf8) => encoding.decode_without_bom_handling(line).0,
        })
        .collect()
}

/// An encoded word of a header.
#[derive(Debug)]
struct Word<'a> {
    place: Range<usize>,
    charset: &'a str,
    bytes: Vec<u8>,
}

/// Returns the headers with words in UTF-8 that name another character set, or that are cut within a character, in UTF-8.
/// Returns `None` if there are none.
fn repair_words(head: &str) -> Option<String> {
    let (mut written, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(first) = next_word(head, at) {
        at = first.place.end;
        let (start, charset) = (first.place.start, first.charset);
        let (mut last, mut bytes, mut is_cut) = (first.bytes.len(), first.bytes, false);
        // Words of one character set with only white space between them are one text.
        while let Some(next) = next_word(head, at).filter(|next| {
            let between = head.get(at..next.place.start).unwrap_or("x");
            between.trim_ascii().is_empty() && next.charset.eq_ignore_ascii_case(charset)
        }) {
            // The words before the last one are UTF-8, unless one is cut.
            is_cut = is_cut || !is_utf8(bytes.get(bytes.len().saturating_sub(last)..));
            last = next.bytes.len();
            bytes.extend(next.bytes);
            at = next.place.end;
        }
        let names_utf8 = charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8");
        let is_repaired = if names_utf8 {
            is_cut && std::str::from_utf8(&bytes).is_ok()
        } else {
            is_utf8_word(&bytes, charset)
        };
        if is_repaired {
            written.push_str(head.get(copied..start).unwrap_or_default());
            write_word(&mut written, &bytes);
            copied = at;
        }
    }
    (copied > 0).then(|| written + head.get(copied..).unwrap_or_default())
}

fn is_utf8(bytes: Option<&[u8]>) -> bool {
    bytes.is_some_and(|bytes| std::str::from_utf8(bytes).is_ok())
}

/// Returns the first encoded word from a position on.
fn next_word(head: &str, from: usize) -> Option<Word<'_>> {
    let mut at = from;
    loop {
        let start = at + head.get(at..)?.find("=?")?;
        match parse_word(head, start) {
            Some(word) => return Some(word),
            None => at = start + 2,
        }
    }
}

/// Parses an encoded word: `=?utf-8?Q?text?=`, or `=?utf-8*en?Q?text?=` with a language.
fn parse_word(head: &str, start: usize) -> Option<Word<'_>> {
    let rest = head.get(start + 2..)?;
    let (name, rest) =
        rest.split_at_checked(rest.bytes().take(MAX_WORD_BYTES).position(|byte| byte == b'?')?)?;
    let encoding = rest.get(1..3)?;
    let data = rest.get(3..)?;
    let length = data.bytes().take(MAX_WORD_BYTES).position(|byte| matches!(byte, b'?' | b'\n'))?;
    let (data, after) = data.split_at_checked(length)?;
    let is_word =
        after.starts_with("?=") && name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.is_empty();
    let bytes = match encoding {
        "Q?" | "q?" => decode_q(data),
        "B?" | "b?" => base64_decode(data.as_bytes())?,
        _ => return None,
    };
    let end = head.len() - after.len() + 2;
    let charset = name.split('*').next().unwrap_or(name);
    is_word.then_some(Word { place: start..end, charset, bytes })
}

/// Decodes the encoding `Q`: `_` is a space and `=C3` a byte.
fn decode_q(data: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len());
    let mut rest = data.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'=').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(if *first == b'_' { b' ' } else { *first });
            rest = after;
        }
    }
    bytes
}

/// Writes an encoded word in UTF-8.
fn write_word(written: &mut String, bytes: &[u8]) {
    written.push_str("=?utf-8?Q?");
    for byte in bytes {
        if byte.is_ascii_alphanumeric() {
            written.push(char::from(*byte));
        } else {
            let _ = write!(written, "={byte:02X}");
        }
    }
    written.push_str("?=");
}

#[cfg(test)]
mod tests {
    use mail_parser::MessageParser;

    use super::*;

    #[test]
    fn headers_are_read_in_the_charset_of_their_bytes() {
        for (head, expect) in [
            (&b"Subject: Gr\xC3\xB6\xC3\x9Fe\n"[..], "Größe"),
            (b"Subject: Gr\xF6\xDFe \x80\n", "Größe €"),
            (
                b"Subject: \xF0\xD2\xC9\xD7\xC5\xD4\nContent-Type: text/plain;\n charset=\"koi8-r\"\n",
                "Привет",
            ),
            (b"Subject: =?us-ascii?Q?Gr=C3=B6=C3=9Fe?=\n", "Größe"),
            (
                b"Subject: =?iso-8859-1?Q?Gr=C3=B6=C3=9Fe_?=\n =?iso-8859-1?Q?f=C3=BCr?= Ann\n",
                "Größe für Ann",
            ),
            (b"Subject: =?ISO-8859-1?Q?Gr=F6=DFe?=\n", "Größe"),
            (b"Subject: =?utf-8?Q?Gr=C3?= =?UTF-8?B?tsOfZQ==?=\n", "Größe"),
            (b"Subject: =?utf-8?Q?Gr=C3?= =?utf-8?Q??= =?utf-8?Q?=B6=C3=9Fe?=\n", "Größe"),
            (b"Subject: =?utf-8?Q?Gr=C3?=\n", "Gr\u{FFFD}"),
            (b"Subject: =?gb2312?B?xOO6ww==?=\n", "你好"),
            (b"Subject: a =?x b =?utf-8?Q?=C3=B6?=\n", "a =?x b ö"),
        ] {
            let raw = [head, b"\nbody Gr\xF6\xDFe\n"].concat();
            let repaired = headers_in_utf8(&raw).unwrap_or_else(|| raw.clone());
            assert!(repaired.ends_with(b"\nbody Gr\xF6\xDFe\n"));
            let message = MessageParser::default().parse(&repaired).unwrap();
            assert_eq!(message.subject(), Some(expect), "{}", String::from_utf8_lossy(head));
        }
        let address = b"From: =?us-ascii?Q?M=C3=BCller=2C_Zo=C3=AB?= <zoe@x.test>\n\n";
        let repaired = headers_in_utf8(address).unwrap();
        let message = MessageParser::default().parse(&repaired).unwrap();
        let from = message.from().and_then(mail_parser::Address::first).unwrap();
        assert_eq!((from.name(), from.address()), (Some("Müller, Zoë"), Some("zoe@x.test")));
    }

    #[test]
    fn headers_of_any_shape_take_linear_time() {
        for shape in [
            "=?",
            "=?a?Q?",
            "=?utf-8?Q?a?= ",
            "=?utf-8?Q?=C3?= ",
            "=?utf-8?Q?=C3?= ",
            "=?utf-8?q?a?= ",
            "=?utf-8?q?aaaaaaaaaaaaaaa?= ",
            "=?us-ascii?B?w7Y=?=\n ",
            "\u{E9}",
            "=?utf-8?q?a",
            "?=",
        ] {
            crate::measured::assert_linear(300_000, &|bytes| {
                let raw = format!("Subject: {}\n\nx", shape.repeat(bytes / shape.len()));
                let _ = headers_in_utf8(raw.as_bytes());
            });
        }
    }
}
