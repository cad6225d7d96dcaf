//! A message of Outlook in MIME.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::Encoding;
use fetchwell_core::fit::first_bytes;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::super::super::attached::{FurtherFiles, ReadProblem};
use super::super::super::documents::rtf_document;
use super::super::super::intake::AttachmentProblem;
use super::super::super::skips::Problem;
use super::super::super::text_input::encoding_of_code_page;
use super::compressed_rtf::decompress;
use super::storage::{Compound, Storage};

/// Maximum nesting of attached messages.
const MAX_LEVELS: usize = 5;

/// Maximum bytes of an attachment that is read. Of a larger one, the name is kept.
const MAX_ATTACHMENT_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum bytes of all attachments that are read.
const MAX_ATTACHED_BYTES: u64 = 32 * 1024 * 1024;

/// Maximum bytes of the streams that are read: three bodies and all attachments, and half as much for attached messages. In
/// MIME they are at most twice as long.
const MAX_READ_BYTES: u64 = 3 * MAX_ATTACHMENT_BYTES + MAX_ATTACHED_BYTES + 40 * 1024 * 1024;

/// Maximum number of attachments of a message and of those attached to it.
const MAX_ATTACHMENTS: usize = 5_000;

/// Maximum bytes of a header.
const MAX_HEADER_BYTES: usize = 2_000;

/// Bytes of an attachment in a line of base64.
const LINE_BYTES: usize = 57;

/// Type of the storage of an attachment that is a message.
const MESSAGE_METHOD: u32 = 5;

/// Headers of the transport that are kept. The others describe parts that are written anew.
const KEPT_HEADERS: [&str; 9] =
    ["from", "to", "cc", "date", "subject", "message-id", "in-reply-to", "references", "reply-to"];

/// Maximum number of parts that are left out with a problem of their own.
const MAX_PROBLEMS: usize = 50;

/// A message in MIME, with the parts that are missing in it.
pub(super) struct Mime {
    pub(super) bytes: Vec<u8>,
    pub(super) problems: Vec<AttachmentProblem>,
}

/// Converts a message to MIME.
///
/// # Errors
///
/// The container is damaged, or has no message.
pub(super) fn mime_of(bytes: &[u8]) -> Result<Mime, Problem> {
    convert(bytes, MAX_READ_BYTES)
}

fn convert(bytes: &[u8], max_read: u64) -> Result<Mime, Problem> {
    let mut file = Compound::open(bytes, max_read)?;
    let mut writer = Writer {
        file: &mut file,
        written: String::new(),
        attached: 0,
        attachments: 0,
        problems: Vec::new(),
        further: FurtherFiles::default(),
    };
    let message = Storage::read(writer.file, Path::new("/"), 32, None);
    if !writer.is_message(&message) {
        return Err("it has no message in the form of Outlook".into());
    }
    writer.message(&message, 0);
    let Writer { written, mut problems, further, .. } = writer;
    let further = further.into_problem();
    problems.extend(further.map(|ReadProblem { name, reason, files }| problem(name, reason, files)));
    Ok(Mime { bytes: written.into_bytes(), problems })
}

/// Returns the problem of a part without a type.
fn problem(name: String, reason: String, files: u64) -> AttachmentProblem {
    AttachmentProblem { name, media_type: String::new(), bytes: 0, reason, files }
}

struct Writer<'f, 'b> {
    file: &'f mut Compound<'b>,
    written: String,
    /// Bytes of attachments so far.
    attached: u64,
    attachments: usize,
    problems: Vec<AttachmentProblem>,
    /// Files of problems beyond the maximum.
    further: FurtherFiles,
}

impl Writer<'_, '_> {
    fn is_message(&mut self, message: &Storage) -> bool {
        let has_class = !message.text(self.file, 0x001A).is_empty();
        has_class
            || !message.text(self.file, 0x0037).is_empty()
            || !message.text(self.file, 0x1000).is_empty()
    }

    /// Writes the headers, the body and the attachments of a message.
    fn message(&mut self, message: &Storage, level: usize) {
        self.headers(message);
        self.name_left_out("headers");
        let boundary = format!("fetchwell-{level}-{:012}", self.written.len());
        self.line(&format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n"));
        self.body(message, &boundary);
        self.name_left_out("body");
        let paths = message.children(self.file, "__attach_version1.0_");
        let room = MAX_ATTACHMENTS.saturating_sub(self.attachments);
        self.attachments = self.attachments.saturating_add(paths.len());
        let mut others = FurtherFiles::default();
        for path in paths.iter().skip(room) {
            if others.has_all_names() {
                others.add("", 1);
            } else {
                let attachment = Storage::read(self.file, path, 8, Some(message.code_page()));
                others.add(&self.attachment_name(&attachment), 1);
            }
        }
        if let Some(ReadProblem { name, files, .. }) = others.into_problem() {
            let reason = format!("{files} attachments are left out: at most {MAX_ATTACHMENTS} are read");
            self.add_problem(problem(name, reason, files));
        }
        for path in paths.iter().take(room) {
            let attachment = Storage::read(self.file, path, 8, Some(message.code_page()));
            self.attachment(&attachment, &boundary, level);
        }
        self.line(&format!("--{boundary}--"));
    }

    /// Adds the problem of a part of which a stream was left out.
    fn name_left_out(&mut self, name: &str) {
        if let Some(bytes) = self.file.take_left_out() {
            let reason = format!(
                "{bytes} bytes of it are left out: at most {MAX_ATTACHMENT_BYTES} of a part, {MAX_ATTACHED_BYTES} of all \
                 attachments and {MAX_READ_BYTES} of all parts are read"
            );
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.add_problem(AttachmentProblem { bytes, ..problem(name.to_owned(), reason, 1) });
        }
    }

    fn add_problem(&mut self, problem: AttachmentProblem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.further.add(&problem.name, problem.files);
        }
    }

    /// Writes the headers of the transport that are kept, and those that the properties have.
    fn headers(&mut self, message: &Storage) {
        let transport = message.text(self.file, 0x007D);
        let kept = kept_headers(&transport);
        let has = |name: &str| kept.iter().any(|(known, _)| known == name);
        let mut headers: Vec<(&str, String)> = Vec::new();
        headers.push(("subject", message.text(self.file, 0x0037)));
        headers.push(("from", self.sender(message)));
        headers.extend(self.recipients(message));
        let date = [0x0039, 0x0E06, 0x3007].into_iter().find_map(|tag| message.time(tag));
        headers.push(("date", date.map(rfc_2822).unwrap_or_default()));
        for (name, tag) in [("message-id", 0x1035), ("references", 0x1039), ("in-reply-to", 0x1042)] {
            headers.push((name, message.text(self.file, tag)));
        }
        for (name, value) in &kept {
            self.line(&format!("{name}: {value}"));
        }
        for (name, value) in headers {
            let value = one_line(&value);
            if !value.is_empty() && !has(name) {
                self.line(&format!("{name}: {}", first_bytes(&value, MAX_HEADER_BYTES)));
            }
        }
    }

    fn sender(&mut self, message: &Storage) -> String {
        let mut first = |tags: &[u16]| {
            let mut texts = tags.iter().map(|tag| message.text(self.file, *tag));
            texts.find(|text| !text.is_empty()).unwrap_or_default()
        };
        let name = first(&[0x0C1A, 0x0042]);
        // Addresses within an organization are X.500 names.
        let address = first(&[0x5D01, 0x5D02, 0x0C1F, 0x0065]);
        address_line(&name, &address)
    }

    /// Returns the headers of the recipients.
    fn recipients(&mut self, message: &Storage) -> Vec<(&'static str, String)> {
        let (mut to, mut cc) = (Vec::new(), Vec::new());
        for path in message.children(self.file, "__recip_version1.0_") {
            let recipient = Storage::read(self.file, &path, 8, Some(message.code_page()));
            let name = recipient.text(self.file, 0x3001);
            let mut address = recipient.text(self.file, 0x39FE);
            if address.is_empty() {
                address = recipient.text(self.file, 0x3003);
            }
            let list = match recipient.number(0x0C15) {
                Some(1) | None => &mut to,
                Some(2) => &mut cc,
                // Hidden recipients.
                Some(_) => continue,
            };
            list.push(address_line(&name, &address));
        }
        // Drafts may have names only.
        if to.is_empty() {
            to.extend(message.text(self.file, 0x0E04).split(';').map(|name| address_line(name, "")));
        }
        for list in [&mut to, &mut cc] {
            list.retain(|line| !line.is_empty());
        }
        vec![("to", to.join(", ")), ("cc", cc.join(", "))]
    }

    /// Writes the body in plain text and HTML. One in RTF alone becomes plain text.
    fn body(&mut self, message: &Storage, boundary: &str) {
        let mut plain = message.text(self.file, 0x1000);
        let (html, charset) = self.html(message);
        if plain.trim().is_empty() && html.is_empty() {
            let rtf =
                message.binary(self.file, 0x1009, MAX_ATTACHMENT_BYTES).and_then(|rtf| decompress(&rtf));
            plain =
                rtf.and_then(|rtf| rtf_document(&rtf).ok()).map(|document| document.text).unwrap_or_default();
        }
        // A boundary must not begin as another one.
        let inner = format!("fetchwell-body-{:012}", self.written.len());
        self.line(&format!("--{boundary}\nContent-Type: multipart/alternative; boundary=\"{inner}\"\n"));
        if !plain.is_empty() {
            self.part(&format!("--{inner}\nContent-Type: text/plain; charset=utf-8"), plain.as_bytes());
        }
        if !html.is_empty() {
            self.part(&format!("--{inner}\nContent-Type: text/html; charset={charset}"), &html);
        }
        self.line(&format!("--{inner}--"));
    }

    /// Returns the body in HTML and its character set.
    fn html(&mut self, message: &Storage) -> (Vec<u8>, &'static str) {
        let page = message.number(0x3FDE).unwrap_or(message.code_page());
        match message.binary(self.file, 0x1013, MAX_ATTACHMENT_BYTES) {
            Some(html) => (html, encoding_of_code_page(page).map_or("utf-8", Encoding::name)),
            None => (message.text(self.file, 0x1013).into_bytes(), "utf-8"),
        }
    }

    /// Returns the name of an attachment, or an empty text.
    fn attachment_name(&mut self, attachment: &Storage) -> String {
        let mut names = [0x3707, 0x3704, 0x3001].into_iter().map(|tag| attachment.text(self.file, tag));
        let name = one_line(&names.find(|name| !name.is_empty()).unwrap_or_default());
        first_bytes(&name, MAX_HEADER_BYTES).to_owned()
    }

    fn attachment(&mut self, attachment: &Storage, boundary: &str, level: usize) {
        let name = self.attachment_name(attachment);
        let name = name.as_str();
        let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
        let disposition = format!("Content-Disposition: attachment; filename*=utf-8''{encoded}");
        let is_message = attachment.number(0x3705) == Some(MESSAGE_METHOD);
        if is_message && level == MAX_LEVELS {
            let reason = format!("it is in more than {MAX_LEVELS} messages that are attached to each other");
            let media_type = "message/rfc822".to_owned();
            self.add_problem(AttachmentProblem { media_type, ..problem(name.to_owned(), reason, 1) });
        } else if is_message {
            let path = attachment.path().join("__substg1.0_3701000D");
            let inner = Storage::read(self.file, &path, 24, Some(attachment.code_page()));
            self.line(&format!("--{boundary}\nContent-Type: message/rfc822\n{disposition}\n"));
            return self.message(&inner, level + 1);
        }
        let room = MAX_ATTACHMENT_BYTES.min(MAX_ATTACHED_BYTES.saturating_sub(self.attached));
        let bytes = attachment.binary(self.file, 0x3701, room).unwrap_or_default();
        self.attached = self.attached.saturating_add(bytes.len() as u64);
        let declared = one_line(&attachment.text(self.file, 0x370E));
        let kind = if is_media_type(&declared) { declared.as_str() } else { "application/octet-stream" };
        self.part(&format!("--{boundary}\nContent-Type: {kind}\n{disposition}"), &bytes);
        self.name_left_out(name);
    }

    fn part(&mut self, headers: &str, content: &[u8]) {
        self.line(&format!("{headers}\nContent-Transfer-Encoding: base64\n"));
        for chunk in content.chunks(LINE_BYTES) {
            STANDARD.encode_string(chunk, &mut self.written);
            self.written.push('\n');
        }
    }

    fn line(&mut self, text: &str) {
        self.written.push_str(text);
        self.written.push('\n');
    }
}

/// Returns the headers of the transport that are kept, with names in lower case and continued lines joined.
fn kept_headers(transport: &str) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in transport.lines() {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = headers.last_mut() {
                value.push(' ');
                value.push_str(&one_line(line));
            }
        } else if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), one_line(value)));
        }
    }
    headers.retain(|(name, value)| KEPT_HEADERS.contains(&name.as_str()) && !value.is_empty());
    headers
}

/// Returns a person as a header has them. An address that is none is left out.
fn address_line(name: &str, address: &str) -> String {
    let (name, address) = (one_line(name).replace(['"', '\\'], ""), one_line(address));
    let address =
        if address.contains('@') && !address.contains([' ', '<', '>']) { address } else { String::new() };
    let name = name.trim_matches(['\'', ' ']);
    match (name, address.as_str()) {
        ("", "") => String::new(),
        ("", address) => format!("<{address}>"),
        (name, "") => format!("\"{name}\" <>"),
        (name, address) if name == address => format!("<{address}>"),
        (name, address) => format!("\"{name}\" <{address}>"),
    }
}

/// Returns true for a type such as `image/png`, without parameters, which is no type of a message.
fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        !part.is_empty()
            && part.len() < 80
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+._".contains(&byte))
    };
    let is_type = text.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    is_type && !text.starts_with("multipart/") && !text.starts_with("message/")
}

fn one_line(text: &str) -> String {
    text.split(|character: char| character.is_control()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn rfc_2822(time: Timestamp) -> String {
    time.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use super::*;

    /// A compound file that is written.
    type File = cfb::CompoundFile<Cursor<Vec<u8>>>;

    fn write(file: &mut File, path: &str, content: &[u8]) {
        file.create_stream(path).unwrap().write_all(content).unwrap();
    }

    /// Writes an attachment, and returns its path. Its method is that of a message or of a file.
    fn attach(file: &mut File, message: &str, number: usize, method: u32) -> String {
        let path = format!("{message}__attach_version1.0_#{number:08X}/");
        file.create_storage(&path).unwrap();
        let entry = [&[3, 0, 5, 0x37, 6, 0, 0, 0][..], &method.to_le_bytes(), &[0; 4]].concat();
        write(file, &format!("{path}__properties_version1.0"), &[&[0; 8][..], &entry].concat());
        write(file, &format!("{path}__substg1.0_3707001E"), format!("name {number}").as_bytes());
        path
    }

    fn read(file: File, max_read: u64) -> (String, Vec<AttachmentProblem>) {
        let Mime { bytes, problems } = convert(file.into_inner().get_ref(), max_read).unwrap();
        (String::from_utf8(bytes).unwrap(), problems)
    }

    fn message() -> File {
        let mut file = File::create(Cursor::new(Vec::new())).unwrap();
        write(&mut file, "/__substg1.0_0037001E", b"Plan");
        file
    }

    #[test]
    fn attached_messages_are_read_within_one_limit() {
        let mut file = message();
        for number in 0..20 {
            let inner = format!("{}__substg1.0_3701000D/", attach(&mut file, "/", number, MESSAGE_METHOD));
            file.create_storage(&inner).unwrap();
            write(&mut file, &format!("{inner}__substg1.0_1000001E"), &[b'x'; 10_000]);
        }
        let (written, problems) = read(file, 50_000);
        assert!(written.len() < 100_000, "{}", written.len());
        assert!(
            problems.iter().any(|problem| problem.name == "body" && problem.reason.contains("10000 bytes"))
        );
    }

    #[test]
    fn attachments_that_are_left_out_are_named() {
        let mut file = message();
        let large = vec![b'x'; usize::try_from(MAX_ATTACHMENT_BYTES).unwrap() + 1];
        for (number, content) in [&large[..], b"small"].into_iter().enumerate() {
            let path = attach(&mut file, "/", number, 1);
            write(&mut file, &format!("{path}__substg1.0_37010102"), content);
        }
        let mut outer = "/".to_owned();
        for number in 2..9 {
            outer = format!("{}__substg1.0_3701000D/", attach(&mut file, &outer, number, MESSAGE_METHOD));
            file.create_storage(&outer).unwrap();
        }
        let (written, problems) = read(file, MAX_READ_BYTES);
        assert!(written.contains(&STANDARD.encode("small")));
        let shown: Vec<_> = problems.iter().map(|problem| (problem.name.as_str(), problem.bytes)).collect();
        assert_eq!(shown, [("name 0", large.len()), ("name 7", 0)]);
    }
}
