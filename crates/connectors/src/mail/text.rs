//! The texts of a message: its own, those of forwarded messages, and those of attachments.
//!
//! In a prepared message the parser sees no attached messages (`limits.rs`): each is one opaque part. They are
//! parsed here one after the other, at most `MAX_FORWARDED_LEVELS` deep, and share the boundary search allowance of
//! the outer message.

use std::borrow::Cow;
use std::collections::HashSet;

use fetchwell_core::record::html_text::html_to_text;
use mail_parser::{ContentType, Encoding, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use super::super::attached::{AttachmentReader, file_name};
use super::super::calendar::invitation_text;
use super::super::intake::AttachmentProblem;
use super::alternatives::Bodies;
use super::attachments::{AttachedPart, AttachmentFields, Attachments, append};
use super::charset::{body_bytes, decoded};
use super::flowed::unfold_part;
use super::header_bytes::headers_in_utf8;
use super::headers::{address_line, date_of};
use super::limits::{SearchAllowance, is_digest, prepare, unmask};
use super::protected::{Protected, without_armor};

/// Maximum nesting of forwarded messages that are parsed.
const MAX_FORWARDED_LEVELS: usize = 5;

/// Line above the headers of a forwarded message, as mail programs write it.
const FORWARDED: &str = "---------- Forwarded message ----------";

/// Name of an attached message without one, in a problem.
const UNNAMED_MESSAGE: &str = "attached message";

/// Type of a signed part, in a problem.
const SIGNED_TYPE: &str = "application/pkcs7-mime";

/// Subtypes of attachments that contain text, besides `text/*`.
const TEXT_SUBTYPES: [&str; 10] =
    ["ics", "json", "ld+json", "sql", "toml", "x-diff", "x-patch", "x-yaml", "xml", "yaml"];

/// File name extensions of attachments that contain text, whatever their declared type.
const TEXT_ENDINGS: [&str; 13] =
    ["csv", "diff", "ics", "json", "log", "markdown", "md", "patch", "srt", "txt", "vcf", "xml", "yaml"];

/// Starts of files that some programs declare as text: PDF documents, ZIP containers, compound files and gzip.
const FILE_STARTS: [&[u8]; 4] = [b"%PDF-", b"PK\x03\x04", b"\xD0\xCF\x11\xE0", b"\x1F\x8B"];

/// The texts of a message.
#[derive(Debug)]
pub(super) struct Texts<'r> {
    /// Text of the message, and of forwarded messages below their headers.
    body: String,
    attachments: Attachments<'r>,
    /// Texts of the events that were added.
    events: HashSet<String>,
}

impl<'r> Texts<'r> {
    /// Extracts the texts of a prepared message, with a reader for its attachments.
    pub(super) fn read(
        message: &Message<'_>,
        allowance: &mut SearchAllowance,
        reader: &'r dyn AttachmentReader,
    ) -> Self {
        let attachments = Attachments::new(reader, message.raw_message.len());
        let mut texts = Self { body: String::new(), attachments, events: HashSet::new() };
        texts.add(message, 0, allowance);
        texts
    }

    /// Returns the text of the message, and the fields about attachments.
    pub(super) fn into_fields(self) -> (String, AttachmentFields) {
        let attachments = self.attachments.into_fields(self.body.len());
        (self.body, attachments)
    }

    fn add(&mut self, message: &Message<'_>, level: usize, allowance: &mut SearchAllowance) {
        let digest_messages = digest_messages(message);
        let mut bodies = Bodies::choose(message);
        let attached: HashSet<u32> = message.attachments.iter().copied().collect();
        for (id, part) in (0_u32..).zip(&message.parts) {
            let name = part.attachment_name().map(|name| file_name(&unmask(name)));
            if digest_messages.contains(&id) || is_message(part) {
                self.attachments.add_names(name.clone());
                if let Err(reason) = self.add_forwarded(message, part, level, allowance) {
                    self.leave_out(name.as_deref(), &media_type(part), part.contents().len(), reason);
                }
            } else if let Some(protected) = Protected::read(part, name.as_deref()) {
                self.add_protected(protected, name, level, allowance);
            } else if bodies.contains(id) && matches!(part.body, PartType::Text(_) | PartType::Html(_)) {
                let text = bodies.take_converted(id).map(Cow::Owned).or_else(|| text_of(message, part));
                append(&mut self.body, &text.unwrap_or_default());
            } else if attached.contains(&id) {
                self.add_attached(message, part, name);
            }
        }
    }

    /// Adds an attachment: text by its declaration, or a file of any kind.
    fn add_attached(&mut self, message: &Message<'_>, part: &MessagePart<'_>, name: Option<String>) {
        if let Some(bytes) = bytes_of_file(message, part) {
            return self.attachments.add_file(AttachedPart {
                name,
                media_type: media_type(part),
                bytes: &bytes,
            });
        }
        let text = text_of(message, part).or_else(|| text_of_binary(part, name.as_deref()));
        match text.as_deref().map(|text| (text, event_text(part, name.as_deref(), text))) {
            Some((_, Some(event))) => self.add_event(part, name, &event),
            Some((text, None)) => self.attachments.add(name, text),
            None => {
                let (media_type, bytes) = (media_type(part), part.contents());
                self.attachments.add_file(AttachedPart { name, media_type, bytes });
            }
        }
    }

    /// Adds the events of an invitation. Programs attach a second copy of it, which is left out.
    fn add_event(&mut self, part: &MessagePart<'_>, name: Option<String>, event: &str) {
        let is_new = self.events.insert(event.to_owned());
        if is_new && part.content_disposition().is_some_and(ContentType::is_attachment) {
            return self.attachments.add(name, event);
        }
        if is_new {
            append(&mut self.body, event);
        }
        self.attachments.add_names(name);
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
                self.attachments.add(name, &text);
                return self.attachments.add_names(inner.iter().map(|name| file_name(name)));
            }
            Protected::Signed(content) if level < MAX_FORWARDED_LEVELS => {
                let prepared = prepare(&content, allowance);
                let parsed = prepared.as_deref().map(|raw| MessageParser::default().parse(raw));
                match parsed {
                    Ok(Some(inner)) => self.add(&inner, level + 1, allowance),
                    // Certificates alone have no content.
                    Ok(None) => {}
                    Err(reason) => {
                        self.leave_out(name.as_deref(), SIGNED_TYPE, content.len(), reason.clone());
                    }
                }
            }
            Protected::Signed(content) => {
                self.leave_out(name.as_deref(), SIGNED_TYPE, content.len(), too_deep());
            }
        }
        self.attachments.add_names(name);
    }

    /// Adds the problem of a part that is missing in the texts.
    fn leave_out(&mut self, name: Option<&str>, media_type: &str, bytes: usize, reason: String) {
        let (name, media_type) = (name.unwrap_or(UNNAMED_MESSAGE).to_owned(), media_type.to_owned());
        self.attachments.add_problem(AttachmentProblem { name, media_type, bytes, reason, files: 1 });
    }

    /// Adds an attached message below its headers.
    ///
    /// # Errors
    ///
    /// The message exceeds a limit, which the text names.
    fn add_forwarded(
        &mut self,
        message: &Message<'_>,
        part: &MessagePart<'_>,
        level: usize,
        allowance: &mut SearchAllowance,
    ) -> Result<(), String> {
        if level == MAX_FORWARDED_LEVELS {
            return Err(too_deep());
        }
        let prepared = if part.encoding == Encoding::None {
            // This part was prepared together with its message.
            let (start, end) = (usize::try_from(part.offset_body), usize::try_from(part.offset_end));
            let body = start.ok().zip(end.ok()).and_then(|(start, end)| message.raw_message.get(start..end));
            Cow::Borrowed(body.unwrap_or_default())
        } else {
            prepare(part.contents(), allowance)?
        };
        let prepared = headers_in_utf8(&prepared).map_or(prepared, Cow::Owned);
        // The parser takes a line without an end for a message.
        let parsed = MessageParser::default().parse(&*prepared).filter(|_| prepared.contains(&b'\n'));
        let Some(inner) = parsed else {
            // Programs put a text such as `Message removed` in the place of a message.
            append(&mut self.body, &String::from_utf8_lossy(&prepared));
            return Ok(());
        };
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
        Ok(())
    }
}

/// Returns the reason why a message that is nested too deep is left out.
fn too_deep() -> String {
    format!("it is in more than {MAX_FORWARDED_LEVELS} messages that are attached to each other")
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

/// Returns the declared type of a part, such as `application/pdf`, or an empty text.
fn media_type(part: &MessagePart<'_>) -> String {
    let Some(content_type) = part.content_type() else { return String::new() };
    let subtype = content_type.subtype().map(|subtype| format!("/{}", unmask(subtype)));
    format!("{}{}", content_type.ctype(), subtype.unwrap_or_default()).to_ascii_lowercase()
}

/// Returns the bytes of a part that is declared as text and is a file of another kind.
fn bytes_of_file<'a>(message: &'a Message<'_>, part: &MessagePart<'_>) -> Option<Cow<'a, [u8]>> {
    let (PartType::Text(text) | PartType::Html(text)) = &part.body else { return None };
    let may_be_file = text.starts_with("%PDF-") || !is_text_start(text);
    let bytes = may_be_file.then(|| body_bytes(message, part))??;
    FILE_STARTS.iter().any(|start| bytes.starts_with(start)).then_some(bytes)
}

/// Returns true for a text that begins with characters of ASCII.
fn is_text_start(text: &str) -> bool {
    text.bytes().take(4).all(|byte| byte.is_ascii() && !matches!(byte, 0..=8 | 14..=31))
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
