//! The texts of a message: its own, those of forwarded messages, and those of text attachments.
//!
//! In a prepared message the parser sees no attached messages (`limits.rs`): each is one opaque part. They are
//! parsed here one after the other, at most `MAX_FORWARDED_LEVELS` deep, and share the boundary search allowance of
//! the outer message.

use std::borrow::Cow;
use std::collections::HashSet;

use fetchwell_core::record::html_text::html_to_text;
use mail_parser::{ContentType, Encoding, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use super::super::calendar::invitation_text;
use super::alternatives::Bodies;
use super::charset::decoded;
use super::flowed::unfold_part;
use super::header_bytes::headers_in_utf8;
use super::headers::{address_line, date_of};
use super::limits::{SearchAllowance, is_digest, prepare, unmask};
use super::protected::{Protected, without_armor};

/// Maximum nesting of forwarded messages that are parsed.
const MAX_FORWARDED_LEVELS: usize = 5;

/// Line above the headers of a forwarded message, as mail programs write it.
const FORWARDED: &str = "---------- Forwarded message ----------";

/// Subtypes of attachments that contain text, besides `text/*`.
const TEXT_SUBTYPES: [&str; 10] =
    ["ics", "json", "ld+json", "sql", "toml", "x-diff", "x-patch", "x-yaml", "xml", "yaml"];

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
    /// Texts of the events that were added.
    events: HashSet<String>,
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
        let mut bodies = Bodies::choose(message);
        let attached: HashSet<u32> = message.attachments.iter().copied().collect();
        for (id, part) in (0_u32..).zip(&message.parts) {
            let name = part.attachment_name().map(|name| unmask(name).into_owned());
            if digest_messages.contains(&id) || is_message(part) {
                self.attachments.extend(name);
                self.add_forwarded(message, part, level, allowance);
            } else if let Some(protected) = Protected::read(part, name.as_deref()) {
                self.add_protected(protected, name, level, allowance);
            } else if bodies.contains(id) && matches!(part.body, PartType::Text(_) | PartType::Html(_)) {
                let text = bodies.take_converted(id).map(Cow::Owned).or_else(|| text_of(message, part));
                append(&mut self.body, &text.unwrap_or_default());
            } else if attached.contains(&id) {
                let text = text_of(message, part).or_else(|| text_of_binary(part, name.as_deref()));
                match text.as_deref().map(|text| (text, event_text(part, name.as_deref(), text))) {
                    Some((_, Some(event))) => self.add_event(part, name.as_deref(), &event),
                    Some((text, None)) => append_attached(&mut self.attached, name.as_deref(), text),
                    None => {}
                }
                self.attachments.extend(name);
            }
        }
    }

    /// Adds the events of an invitation. Programs attach a second copy of it, which is left out.
    fn add_event(&mut self, part: &MessagePart<'_>, name: Option<&str>, event: &str) {
        if !self.events.insert(event.to_owned()) {
            return;
        }
        if part.content_disposition().is_some_and(ContentType::is_attachment) {
            append_attached(&mut self.attached, name, event);
        } else {
            append(&mut self.body, event);
        }
    }

    /// Adds the text of a part that is signed, or what another part is.
    fn add_protected(
        &mut self,
        protected: Protected,
        name: Option<String>,
        level: usize,
        allowance: &mut SearchAllowance,
    ) {
        match protected {
            Protected::Body(text) => append(&mut self.body, text),
            Protected::Attachment(text, inner) => {
                append_attached(&mut self.attached, name.as_deref(), &text);
                self.attachments.extend(name);
                self.attachments.extend(inner);
                return;
            }
            Protected::Signed(content) if level < MAX_FORWARDED_LEVELS => {
                let prepared = prepare(&content, allowance);
                let parsed = prepared.as_deref().ok().and_then(|raw| MessageParser::default().parse(raw));
                if let Some(inner) = parsed {
                    self.add(&inner, level + 1, allowance);
                }
            }
            Protected::Signed(_) => {}
        }
        self.attachments.extend(name);
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
        let prepared = headers_in_utf8(&prepared).map_or(prepared, Cow::Owned);
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

/// Appends the text of an attachment below its name.
fn append_attached(texts: &mut String, name: Option<&str>, text: &str) {
    let heading = name.map(|name| format!("--- {name} ---\n")).unwrap_or_default();
    append(texts, &format!("{heading}{text}"));
}

/// Returns the readable text of a part with text.
fn text_of<'a>(message: &'a Message<'_>, part: &'a MessagePart<'_>) -> Option<Cow<'a, str>> {
    let text = decoded(message, part)?;
    if matches!(part.body, PartType::Html(_)) {
        return Some(Cow::Owned(html_to_text(&text)));
    }
    Some(without_armor(unfold_part(part, &text).map_or(text, Cow::Owned)))
}

/// Returns the events of a part that is a calendar by its type or its name.
fn event_text(part: &MessagePart<'_>, name: Option<&str>, text: &str) -> Option<String> {
    let subtype = part.content_type().and_then(|found| found.subtype()).unwrap_or_default();
    let is_calendar = ["calendar", "ics"].iter().any(|known| subtype.eq_ignore_ascii_case(known));
    let is_named = || name.is_some_and(|name| name.to_ascii_lowercase().ends_with(".ics"));
    (is_calendar || is_named()).then(|| invitation_text(text))?
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
