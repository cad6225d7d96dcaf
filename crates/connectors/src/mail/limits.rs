//! Limits of an e-mail, checked before it is parsed.
//!
//! `mail_parser` nests a value for each attached message (`message/rfc822`, `message/global`, the parts of a
//! `multipart/digest`) and drops them by recursion: 200,000 levels in 6 MB overflow the stack, and an encoded
//! attached message hides its levels. So `prepare` masks these types, the parser treats each as one opaque part,
//! and `text.rs` parses a few levels of them one by one. The parser's own stack of multiparts is on the heap.
//!
//! The parser also searches for the boundary of each multipart up to the end of the message, and for each parameter
//! of a header among all others. Both take quadratic time, which `prepare` bounds.
//!
//! **Invariant:** the scan finds a superset of the headers that the parser finds: a header's name may contain white
//! space and may start within a line, after a boundary.

use std::borrow::Cow;
use std::ops::Range;

/// Maximum size of a `Content-Type` or `Content-Disposition` header in bytes. Its parameters are compared with each
/// other.
const MAX_CONTENT_HEADER_BYTES: usize = 16 * 1024;

/// Maximum number of multipart headers times the size of the message: the bytes that the parser reads to find
/// boundaries, about 4 s. A message of 1 MB may have 2,000, one of 64 MiB may have 32.
const MAX_BOUNDARY_SEARCH: usize = 1 << 31;

/// Size of a header, in bytes, for which a multipart counts once more: a long boundary takes longer to compare.
const LONG_BOUNDARY_BYTES: usize = 256;

/// Maximum number of places at which a part can start: 200 bytes of memory each, 100 MB in total.
const MAX_PARTS: usize = 500_000;

/// The types that the parser would parse as messages.
const MESSAGE_TYPES: [&str; 3] = ["rfc822", "global", "digest"];

/// Replacement for a type's last character, if that was not upper case.
const MASK: u8 = 1;

/// Replacement for a type's last character, if that was upper case.
const UPPER_CASE_MASK: u8 = 2;

/// The bytes that the parser may still read to find boundaries, in a message and its encoded attached messages.
#[derive(Debug)]
pub(super) struct SearchAllowance(usize);

impl Default for SearchAllowance {
    fn default() -> Self {
        Self(MAX_BOUNDARY_SEARCH)
    }
}

/// Returns the message with the types of attached messages masked.
///
/// # Errors
///
/// A limit is exceeded, which the text names.
pub(super) fn prepare<'a>(raw: &'a [u8], allowance: &mut SearchAllowance) -> Result<Cow<'a, [u8]>, String> {
    let (mut multiparts, mut search) = (0, 0_usize);
    let mut masks = Vec::new();
    for value in content_headers(raw) {
        let (start, header) = (value.start, raw.get(value).unwrap_or_default());
        if header.len() > MAX_CONTENT_HEADER_BYTES {
            return Err(format!("a Content-Type header is longer than {MAX_CONTENT_HEADER_BYTES} bytes"));
        }
        let found = find_all(header, "multipart").count();
        multiparts += found;
        search = search.saturating_add(found * (1 + header.len() / LONG_BOUNDARY_BYTES) * raw.len());
        let boundaries = boundary_values(header);
        for message_type in MESSAGE_TYPES {
            let hits = find_all(header, message_type)
                .filter(|at| !boundaries.iter().any(|boundary| boundary.contains(at)));
            masks.extend(hits.map(|at| start + at + message_type.len() - 1));
        }
    }
    allowance.0 = allowance
        .0
        .checked_sub(search)
        .ok_or_else(|| format!("it has too many multipart parts for its size ({multiparts})"))?;
    if multiparts > 0 && possible_parts(raw) > MAX_PARTS {
        return Err(format!("it may have more than {MAX_PARTS} parts"));
    }
    if masks.is_empty() {
        return Ok(Cow::Borrowed(raw));
    }
    let mut masked = raw.to_vec();
    for at in masks {
        if let Some(byte) = masked.get_mut(at) {
            *byte = if byte.is_ascii_uppercase() { UPPER_CASE_MASK } else { MASK };
        }
    }
    Ok(Cow::Owned(masked))
}

/// Returns the ranges of the values of `boundary` parameters. They are not masked, because the lines between parts
/// repeat them. A parameter after a comment does not count: the type of the message may follow it.
fn boundary_values(header: &[u8]) -> Vec<Range<usize>> {
    let skip_space = |at: usize| {
        let rest = header.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
    };
    let value_of = |name: usize| {
        let before = header.get(..name)?;
        let is_parameter = before.trim_ascii_end().ends_with(b";") && !before.contains(&b'(');
        let after_name = name + "boundary".len();
        let rest = header.get(after_name..)?;
        // `boundary*0=` is the first piece of a value that is split.
        let section = rest.iter().take_while(|byte| **byte == b'*' || byte.is_ascii_digit()).count();
        let equals = skip_space(after_name + section);
        let start = skip_space(equals + 1);
        let value = header.get(start..)?;
        let length = match value.split_first() {
            Some((b'"', quoted)) => 1 + quoted.iter().position(|byte| *byte == b'"').unwrap_or(quoted.len()),
            _ => value
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b';' | b'(' | b')'))
                .unwrap_or(value.len()),
        };
        (is_parameter && header.get(equals) == Some(&b'=')).then_some(start..start + length)
    };
    find_all(header, "boundary").filter_map(value_of).collect()
}

/// Restores the masked types in a text of a prepared message.
pub(super) fn unmask(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte == MASK || byte == UPPER_CASE_MASK) {
        return Cow::Borrowed(text);
    }
    let mut unmasked = String::with_capacity(text.len());
    for character in text.chars() {
        let masked = MESSAGE_TYPES.into_iter().find_map(|message_type| {
            let (last, stem) = message_type.as_bytes().split_last()?;
            let before = unmasked.len().checked_sub(stem.len())?;
            let is_type = unmasked.as_bytes().get(before..)?.eq_ignore_ascii_case(stem);
            is_type.then(|| char::from(*last))
        });
        unmasked.push(match (masked, character as u32) {
            (Some(last), 1) => last,
            (Some(last), 2) => last.to_ascii_uppercase(),
            _ => character,
        });
    }
    Cow::Owned(unmasked)
}

/// Returns true if a subtype of a prepared message is the masked `digest`.
pub(super) fn is_digest(subtype: &str) -> bool {
    matches!(unmask(subtype), Cow::Owned(unmasked) if unmasked.eq_ignore_ascii_case("digest"))
}

/// Returns the ranges of the values of all `Content-Type` and `Content-Disposition` headers, without those that start
/// within another.
fn content_headers(raw: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    raw.iter().enumerate().filter(|(_, byte)| **byte == b':').filter_map(move |(colon, _)| {
        let is_content = colon >= end
            && ["content-type", "content-disposition"].iter().any(|name| is_named(raw, colon, name));
        is_content.then(|| {
            end = value_end(raw, colon + 1);
            colon + 1..end
        })
    })
}

/// Returns true if the text before a colon ends a line start with this name, without case and with white space
/// anywhere in it.
fn is_named(raw: &[u8], colon: usize, name: &str) -> bool {
    let line = raw.get(..colon).unwrap_or_default().iter().rev().take_while(|byte| **byte != b'\n');
    let mut before = line.filter(|byte| !byte.is_ascii_whitespace());
    name.bytes().rev().all(|expect| before.next().is_some_and(|byte| byte.eq_ignore_ascii_case(&expect)))
}

/// Returns the end of a header's value: a line end that is not followed by white space.
fn value_end(raw: &[u8], start: usize) -> usize {
    let value = raw.get(start..).unwrap_or_default();
    let ends =
        value.windows(2).position(|pair| matches!(pair, [b'\n', next] if !matches!(next, b' ' | b'\t')));
    ends.map_or(raw.len(), |at| start + at)
}

/// Returns the positions of a lower-case word in a text, in any case.
fn find_all<'a>(text: &'a [u8], word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let places = text.windows(word.len()).enumerate();
    places.filter(|(_, window)| window.eq_ignore_ascii_case(word.as_bytes())).map(|(at, _)| at)
}

/// Returns an upper bound of the number of parts: each starts with two hyphens and a boundary, which may consist of
/// hyphens.
fn possible_parts(raw: &[u8]) -> usize {
    let runs = raw.split(|byte| *byte != b'-').map(<[u8]>::len).filter(|hyphens| *hyphens >= 2);
    runs.map(|hyphens| 1 + hyphens / 3).sum()
}

#[cfg(test)]
mod tests {
    use mail_parser::{MessageParser, PartType};

    use super::*;

    /// Returns true if the parser finds a message in a message.
    fn has_attached_message(raw: &[u8]) -> bool {
        let message = MessageParser::default().parse(raw);
        message.is_some_and(|it| it.parts.iter().any(|part| matches!(part.body, PartType::Message(_))))
    }

    #[test]
    fn attached_messages_are_opaque_however_their_header_is_written() {
        let inner = "Subject: inner\n\ntext\n";
        for (header, inner) in [
            ("Content-Type: message/rfc822\n\n", inner),
            ("CONTENT-TYPE: MESSAGE/RFC822\n\n", inner),
            ("Con tent-Ty pe : message/rfc822; name=\"a.eml\"\n\n", inner),
            ("Content-Type:\n message/\n rfc822\n\n", inner),
            ("Content-Type: (comment) message/global (comment)\n\n", inner),
            (":Content-Type: message/Global\n\n", inner),
            (
                "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n",
                "U3ViamVjdDogaW5uZXIKCnRleHQK\n",
            ),
            (
                "Content-Type: message/rfc822\nContent-Transfer-Encoding: quoted-printable\n\n",
                "Subject: inner\n\ntext\n",
            ),
            ("Content-Type: multipart/digest; boundary=b\n\n--b\n\n", "Subject: inner\n\ntext\n--b--\n"),
            ("Content-Type: multipart/mixed; boundary=b\n\n--bContent-Type: message/rfc822\n\n", inner),
            ("Content-Type: (;boundary=) message/rfc822\n\n", inner),
            ("Content-Type: (;boundary=\"x) message/rfc822\n\n", inner),
            ("Content-Type: (;boundary=\"x) message/rfc822\"\n\n", inner),
            ("Content-Type: ;boundary=message/rfc822\n\n", inner),
            ("Content-Type: ;boundary=\"message/rfc822\n\n", inner),
        ] {
            let raw = format!("{header}{inner}");
            assert!(
                !has_attached_message(&prepare(raw.as_bytes(), &mut SearchAllowance::default()).unwrap()),
                "{raw}"
            );
        }
        assert!(has_attached_message(format!("Content-Type: message/rfc822\n\n{inner}").as_bytes()));
    }

    #[test]
    fn masked_text_is_restored() {
        let raw = "Subject: rfc822\n\nContent-Type: message/rfc822; a=GLOBAL\n x=Digest\nrfc822 and \u{1}\n";
        let masked = prepare(raw.as_bytes(), &mut SearchAllowance::default()).unwrap();
        let masked = std::str::from_utf8(&masked).unwrap();
        assert!(
            masked.contains(
                "Subject: rfc822\n\nContent-Type: message/rfc82\u{1}; a=GLOBA\u{2}\n x=Diges\u{1}\n"
            )
        );
        assert_eq!(unmask(masked), raw);
        assert!(matches!(
            prepare(b"Subject: x\n\nrfc822\n", &mut SearchAllowance::default()).unwrap(),
            Cow::Borrowed(_)
        ));
        assert!(is_digest("diges\u{1}") && !is_digest("digest") && !is_digest("mixed"));
    }

    #[test]
    fn parts_are_found_whatever_their_boundary_contains() {
        for boundary in
            ["_004_EXCH01globalcorpcom_", "digest-2024", "Boundary_RFC822_x", "\"=_global digest\""]
        {
            for written in
                [format!("boundary={boundary}"), format!("charset=x;\n\tBOUNDARY = {boundary}; type=y")]
            {
                let line = boundary.trim_matches('"');
                let raw = format!(
                    "Content-Type: multipart/mixed; {written}\n\n--{line}\nContent-Type: text/plain\n\nimportant\n--{line}--\n"
                );
                let prepared = prepare(raw.as_bytes(), &mut SearchAllowance::default()).unwrap();
                let message = MessageParser::default().parse(&*prepared).unwrap();
                assert_eq!(message.body_text(0).as_deref().map(str::trim), Some("important"), "{raw}");
            }
        }
    }

    #[test]
    fn hostile_messages_are_rejected_and_common_ones_are_not() {
        let usual = |parts: usize| {
            let part = "--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\ntext\n--c--\n";
            format!("Content-Type: multipart/mixed; boundary=b\n\n{}--b--\n", part.repeat(parts))
        };
        let rules = format!("Content-Type: multipart/mixed; boundary=b\n\n{}", "-----\n".repeat(100_000));
        for message in [usual(1), usual(2_000), rules] {
            assert!(
                prepare(message.as_bytes(), &mut SearchAllowance::default()).is_ok(),
                "{}",
                message.len()
            );
        }
        let missing = "--b\nContent-Type: multipart/mixed; boundary=none\n\nx\n".repeat(20_000);
        let parameters = (0..20_000).map(|number| format!("; a{number}*1=x")).collect::<String>();
        let multipart = "Content-Type: multipart/mixed; boundary=b\n\n";
        for (message, expect) in [
            (format!("{multipart}{missing}"), "too many multipart parts"),
            (format!("Content-Type: a/b{parameters}\n\n"), "longer than 16384 bytes"),
            (format!("Content-Disposition: inline{parameters}\n\n"), "longer than 16384 bytes"),
            (format!("{multipart}{}", "--b\n\n".repeat(600_000)), "more than 500000 parts"),
            (format!("{multipart}{}", "-".repeat(2_000_000)), "more than 500000 parts"),
        ] {
            let refused = prepare(message.as_bytes(), &mut SearchAllowance::default()).unwrap_err();
            assert!(refused.contains(expect), "{refused}");
        }
    }

    #[test]
    fn scanning_takes_linear_time() {
        for shape in [":", "Content-Type:", "content-type: ", " :", "t :", "-", "--", "\n:"] {
            crate::measured::assert_linear(300_000, &|bytes| {
                let text = shape.repeat(bytes / shape.len());
                let _ = prepare(text.as_bytes(), &mut SearchAllowance::default());
            });
        }
    }
}
