//! The texts of a message: its own, those of forwarded messages, and those of text attachments.
//!
//! In a prepared message the parser sees no attached messages (`limits.rs`): each is one opaque part. They are
//! parsed here one after the other, at most `MAX_FORWARDED_LEVELS` deep, and share the boundary search allowance of
//! the outer message.

use std::borrow::Cow;
use std::collections::HashSet;

use fetchwell_core::record::html_text::html_to_text;
use mail_parser::{Encoding, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use super::headers::{address_line, date_of};
use super::limits::{SearchAllowance, is_digest, prepare, unmask};

/// Maximum nesting of forwarded messages that are parsed.
const MAX_FORWARDED_LEVELS: usize = 5;

/// Line above the headers of a forwarded message, as mail programs write it.
const FORWARDED: &str = "---------- Forwarded message ----------";

/// Subtypes of attachments that contain text, besides `text/*`.
const TEXT_SUBTYPES: [&str; 9] =
    ["json", "ld+json", "sql", "toml", "x-diff", "x-patch", "x-yaml", "xml", "yaml"];

/// File name extensions of attachments that contain text, whatever their declared type.
const TEXT_ENDINGS: [&str; 14] = [
    "csv", "diff", "eml", "ics", "json", "log", "markdown", "md", "patch", "srt", "txt", "vcf", "xml", "yaml",
];

/// The texts of a message.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// Text of the message, and of forwarded messages below their headers.
    pub(super) body: String,
    /// Texts of attachments, each below its name.
    pub(super) attached: String,
    /// Names of attachments.
    pub(super) attachments: Vec<String>,
}

impl Texts {
    /// Extracts the texts of a prepared message.
    pub(super) fn read(message: &Message<'_>, allowance: &mut SearchAllowance) -> Self {
        let mut texts = Self::default();
        texts.add(message, 0, allowance);
        texts
    }

    fn add(&mut self, message: &Message<'_>, level: usize, allowance: &mut SearchAllowance) {
        let digest_messages = digest_messages(message);
        let shown: HashSet<u32> = message.text_body.iter().copied().collect();
        let attached: HashSet<u32> = message.attachments.iter().copied().collect();
        for (id, part) in (0_u32..).zip(&message.parts) {
            let name = part.attachment_name().map(|name| unmask(name).into_owned());
            if digest_messages.contains(&id) || is_message(part) {
                self.attachments.extend(name);
                self.add_forwarded(message, part, level, allowance);
            } else if let (true, Some(text)) = (shown.contains(&id), text_of(part)) {
                append(&mut self.body, &text);
            } else if attached.contains(&id) {
                if let Some(text) = text_of(part).or_else(|| text_of_binary(part, name.as_deref())) {
                    let heading = name.as_deref().map(|name| format!("--- {name} ---\n"));
                    append(&mut self.attached, &format!("{}{text}", heading.unwrap_or_default()));
                }
                self.attachments.extend(name);
            }
        }
    }

    /// Adds an attached message below its headers. Skips one that exceeds a limit.
    fn add_forwarded(
        &mut self,
        message: &Message<'_>,
        part: &MessagePart<'_>,
        level: usize,
        allowance: &mut SearchAllowance,
    ) {
        if level == MAX_FORWARDED_LEVELS {
            return;
        }
        let prepared = if part.encoding == Encoding::None {
            // This part was prepared together with its message.
            let (start, end) = (usize::try_from(part.offset_body), usize::try_from(part.offset_end));
            let body = start.ok().zip(end.ok()).and_then(|(start, end)| message.raw_message.get(start..end));
            Cow::Borrowed(body.unwrap_or_default())
        } else {
            let Ok(prepared) = prepare(part.contents(), allowance) else { return };
            prepared
        };
        let Some(inner) = MessageParser::default().parse(&*prepared) else { return };
        let headers = [
            ("From", inner.from().map(address_line)),
            ("Date", date_of(&inner)),
            ("Subject", inner.subject().map(str::to_owned)),
            ("To", inner.to().map(address_line)),
            ("Cc", inner.cc().map(address_line)),
        ];
        let lines = headers.into_iter().filter_map(|(name, value)| Some(format!("\n{name}: {}", value?)));
        let lines: String = lines.collect();
        if !lines.is_empty() {
            append(&mut self.body, &format!("{FORWARDED}{lines}"));
        }
        self.add(&inner, level + 1, allowance);
    }
}

/// Appends a text after an empty line.
fn append(texts: &mut String, text: &str) {
    let text = unmask(text).replace("\r\n", "\n");
    let text = text.trim_end();
    if !texts.is_empty() && !text.is_empty() {
        texts.push_str("\n\n");
    }
    texts.push_str(text);
}

/// Returns the part numbers of messages in digests. They have no header that declares them as messages. The keys of
/// messages with a duplicate id depend on this function.
pub(super) fn digest_messages(message: &Message<'_>) -> HashSet<u32> {
    let digests = message.parts.iter().filter_map(|part| match &part.body {
        PartType::Multipart(ids) if part.content_type()?.subtype().is_some_and(is_digest) => Some(ids),
        _ => None,
    });
    let is_untyped = |id: &&u32| {
        let part = usize::try_from(**id).ok().and_then(|at| message.parts.get(at));
        part.is_some_and(|part| part.content_type().is_none())
    };
    digests.flatten().filter(is_untyped).copied().collect()
}

/// Returns true if a part of a prepared message is an attached message, with a masked type.
fn is_message(part: &MessagePart<'_>) -> bool {
    let Some(content_type) = part.content_type() else { return false };
    let subtype = content_type.subtype().map(unmask);
    content_type.ctype().eq_ignore_ascii_case("message")
        && matches!(&subtype, Some(Cow::Owned(subtype)) if matches!(subtype.to_ascii_lowercase().as_str(), "rfc822" | "global"))
}

fn text_of<'a>(part: &'a MessagePart<'_>) -> Option<Cow<'a, str>> {
    match &part.body {
        PartType::Text(text) => Some(Cow::Borrowed(&**text)),
        PartType::Html(html) => Some(Cow::Owned(html_to_text(html))),
        PartType::Binary(_) | PartType::InlineBinary(_) | PartType::Message(_) | PartType::Multipart(_) => {
            None
        }
    }
}

/// Returns the text of an attachment with a binary type, if its subtype or name is that of text.
fn text_of_binary<'a>(part: &'a MessagePart<'_>, name: Option<&str>) -> Option<Cow<'a, str>> {
    let (PartType::Binary(bytes) | PartType::InlineBinary(bytes)) = &part.body else { return None };
    let content_type = part.content_type();
    let is_text = content_type.is_some_and(|content_type| {
        let subtype = content_type.subtype().unwrap_or_default().to_ascii_lowercase();
        match content_type.ctype().to_ascii_lowercase().as_str() {
            // Delivery reports and the like. A partial message is cut at any place.
            "message" => subtype != "partial",
            "application" => TEXT_SUBTYPES.contains(&subtype.as_str()),
            _ => false,
        }
    });
    let ending = name.and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending.to_ascii_lowercase());
    let is_named_as_text = ending.is_some_and(|ending| TEXT_ENDINGS.contains(&ending.as_str()));
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.filter(|_| is_text || is_named_as_text).map(Cow::Borrowed)
}
