//! Detection of a file's kind: by its content first, and by its extension where the content is only text.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

use super::super::documents::{is_generated, is_subtitles};
use super::super::exports::{is_bookmarks, is_kindle, is_whatsapp};
use super::super::item::{FileKind, Item, language_of_name, language_of_script};
use super::super::mail::begins_with_count;
use super::super::recognition::is_picture;
use super::json_kinds::json_kind;

/// Number of bytes at the start of a file in which the content is searched for signs of its kind.
const SNIFF_BYTES: usize = 4 * 1024;

/// Returns the kind of a file, or `None` if it is not one that is read.
pub(crate) fn detect_kind(item: &Item<'_>) -> Option<FileKind> {
    let (head, extension) = (item.head(), item.extension());
    if let Some(kind) = binary_kind(head, &extension) {
        return Some(kind);
    }
    if extension == "emlx" && begins_with_count(head) {
        return Some(FileKind::Emlx);
    }
    if !is_text(head) {
        return mail_kind(head, &extension).or_else(|| named_text(head, &extension));
    }
    let (start, is_utf16) = decoded_start(head.get(..SNIFF_BYTES).unwrap_or(head));
    let start = start.trim_start_matches('\u{FEFF}').trim_start();
    if is_json(start, &extension) {
        return json_kind(&String::from_utf8_lossy(head), item);
    }
    // Messages have their own encodings.
    let by_content = text_kind(start).filter(|kind| !is_utf16 || !is_mail(*kind));
    if let Some(kind) = export_kind(head, item.name(), &extension) {
        return Some(kind);
    }
    match FileKind::from_extension(&extension) {
        // These extensions say what the text is meant to be.
        Some(
            kind @ (FileKind::Text | FileKind::Markdown | FileKind::Html | FileKind::Eml | FileKind::Csv),
        ) => Some(kind),
        Some(FileKind::Code) => code_kind(head, item.name()),
        Some(FileKind::Xlsx | FileKind::Ods) => by_content.or_else(|| exported_table(start)),
        Some(_wrong_extension) => by_content,
        // A message of a Maildir has no extension, or one with its flags.
        None if is_in_maildir(&item.path) => by_content.or(Some(FileKind::Eml)),
        None => by_content.or_else(|| code_kind(head, item.name())),
    }
}

/// Returns the kind of a mailbox or message with bytes behind its headers that are no text, such as an attachment that is
/// not encoded.
fn mail_kind(head: &[u8], extension: &str) -> Option<FileKind> {
    if FileKind::from_extension(extension).is_some_and(|kind| !is_mail(kind)) {
        return None;
    }
    let first = std::str::from_utf8(head.split(|byte| *byte == b'\n').next()?).ok()?;
    if !first.starts_with("From ") && !is_header(first) {
        return None;
    }
    let is_end = |lines: &[u8]| lines.starts_with(b"\n\n") || lines.starts_with(b"\n\r\n");
    let end = (0..head.len()).find(|at| head.get(*at..).is_some_and(is_end))?;
    let headers = head.get(..end).filter(|headers| is_text(headers))?;
    text_kind(&String::from_utf8_lossy(headers)).filter(|kind| is_mail(*kind))
}

/// Returns the kind of a text in UTF-8 with control characters, such as a log of a terminal, if its extension is that of a
/// text.
fn named_text(head: &[u8], extension: &str) -> Option<FileKind> {
    // The start of the file may end within a character.
    let is_utf8 = std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_text| true);
    let kind = FileKind::from_extension(extension).filter(|_| is_utf8 && !head.contains(&0))?;
    matches!(kind, FileKind::Text | FileKind::Markdown | FileKind::Html | FileKind::Csv).then_some(kind)
}

fn is_mail(kind: FileKind) -> bool {
    matches!(kind, FileKind::Eml | FileKind::Mbox)
}

/// Returns the start of a text, and true if it was decoded from UTF-16, which has a byte order mark.
fn decoded_start(head: &[u8]) -> (Cow<'_, str>, bool) {
    match Encoding::for_bom(head).filter(|(encoding, _)| *encoding != UTF_8) {
        Some((encoding, _)) => (encoding.decode_with_bom_removal(head).0, true),
        None => (String::from_utf8_lossy(head), false),
    }
}

/// Returns the kind of an export with the extension of a text.
fn export_kind(head: &[u8], name: &str, extension: &str) -> Option<FileKind> {
    let (text, _) = decoded_start(head);
    let start = text.trim_start_matches('\u{FEFF}');
    match extension {
        "txt" if is_whatsapp(start, name) => Some(FileKind::WhatsApp),
        "txt" if is_kindle(start) => Some(FileKind::Kindle),
        "html" | "htm" | "" if is_bookmarks(start) => Some(FileKind::Bookmarks),
        _ => None,
    }
}

/// Returns the kind of a table that a program wrote as text under the extension of a spreadsheet: fields with tabs, or HTML.
fn exported_table(start: &str) -> Option<FileKind> {
    if start.starts_with('<') {
        return (root_element(&start.to_ascii_lowercase())? == "table").then_some(FileKind::Html);
    }
    start.lines().next().is_some_and(|line| line.contains('\t')).then_some(FileKind::Csv)
}

/// Returns the kind of source code and plain configuration, without what was generated.
fn code_kind(head: &[u8], name: &str) -> Option<FileKind> {
    let (text, _) = decoded_start(head);
    let language = language_of_name(name).or_else(|| language_of_script(&text));
    (language.is_some() && !is_generated(name, &text)).then_some(FileKind::Code)
}

/// Returns true if a text is JSON: by its extension, or its first character where it has none.
fn is_json(start: &str, extension: &str) -> bool {
    matches!(extension, "ipynb" | "json" | "ndjson" | "jsonl")
        || extension.is_empty() && start.starts_with(['{', '['])
}

/// Returns true if a file is where a Maildir has its messages.
fn is_in_maildir(path: &str) -> bool {
    let mut folders = path.rsplit('/').skip(1);
    matches!(folders.next(), Some("cur" | "new"))
}

fn binary_kind(head: &[u8], extension: &str) -> Option<FileKind> {
    let is_pdf = head.get(..1_024).unwrap_or(head).windows(5).any(|bytes| bytes == b"%PDF-");
    if is_pdf && !head.starts_with(b"PK") {
        return Some(FileKind::Pdf);
    }
    if head.starts_with(b"PK\x03\x04") {
        return zip_kind(head, extension);
    }
    if is_picture(head, extension) {
        return Some(FileKind::Image);
    }
    // It may have bytes that are no text, and the extension `.doc`.
    if head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start().starts_with(b"{\\rtf") {
        return Some(FileKind::Rtf);
    }
    // Documents of Office 97 to 2003, and encrypted ones of later programs.
    if head.starts_with(b"\xD0\xCF\x11\xE0") {
        let kind = FileKind::from_extension(extension);
        let is_office = |kind: &FileKind| matches!(kind, FileKind::Docx | FileKind::Pptx | FileKind::Xlsx);
        // A document may contain a message, and a message a document.
        return match kind {
            Some(FileKind::Msg) => kind,
            Some(office) if is_office(&office) && (has_office_stream(head) || !is_outlook_message(head)) => {
                kind
            }
            _ => is_outlook_message(head).then_some(FileKind::Msg),
        };
    }
    let signatures: [(&[u8], usize, FileKind); 3] = [
        (b"\x1F\x8B", 0, FileKind::Gzip),
        (b"SQLite format 3\0", 0, FileKind::Sqlite),
        (b"ustar", 257, FileKind::Tar),
    ];
    let mut found = signatures.into_iter();
    found
        .find(|(signature, at, _)| head.get(*at..).is_some_and(|rest| rest.starts_with(signature)))
        .map(|(_, _, kind)| kind)
}

/// Returns true if the container of Office 97 has the properties of a message of Outlook.
fn is_outlook_message(head: &[u8]) -> bool {
    has_entry(head, "__properties_version1.0")
}

/// Returns true if the container of Office 97 has the stream of a document, a workbook or a presentation.
fn has_office_stream(head: &[u8]) -> bool {
    ["WordDocument", "Workbook", "PowerPoint Document"].iter().any(|name| has_entry(head, name))
}

/// Returns true if the start of a compound file has an entry with this name.
fn has_entry(head: &[u8], name: &str) -> bool {
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    head.windows(name.len()).any(|bytes| bytes == name)
}

/// Returns the kind of a file in a ZIP container by the names of its first parts.
fn zip_kind(head: &[u8], extension: &str) -> Option<FileKind> {
    let has = |name: &str| head.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    let types = [
        ("application/epub+zip", FileKind::Epub),
        ("application/vnd.oasis.opendocument.spreadsheet", FileKind::Ods),
        ("application/vnd.oasis.opendocument.text", FileKind::Odt),
        ("application/vnd.oasis.opendocument.presentation", FileKind::Odt),
    ];
    // The first part has the type as its text.
    let start = head.get(..256).unwrap_or(head);
    if let Some((_, kind)) =
        types.iter().find(|(name, _)| start.windows(name.len()).any(|bytes| bytes == name.as_bytes()))
    {
        return Some(*kind);
    }
    let by_extension = FileKind::from_extension(extension);
    if has("[Content_Types].xml") {
        let parts = [("word/document", FileKind::Docx), ("ppt/", FileKind::Pptx), ("xl/w", FileKind::Xlsx)];
        if let Some((_, kind)) = parts.iter().find(|(name, _)| has(name)) {
            return Some(*kind);
        }
    }
    match by_extension {
        Some(
            kind @ (FileKind::Docx
            | FileKind::Pptx
            | FileKind::Xlsx
            | FileKind::Ods
            | FileKind::Odt
            | FileKind::Epub
            | FileKind::Zip),
        ) => Some(kind),
        // A program or another format in a ZIP container.
        None if !extension.is_empty() => None,
        _ => Some(FileKind::Zip),
    }
}

/// Returns the kind of a text by its first lines.
fn text_kind(start: &str) -> Option<FileKind> {
    if is_subtitles(start) {
        return Some(FileKind::Subtitles);
    }
    let lower = start.to_ascii_lowercase();
    // Some programs save an event without a calendar around it.
    let components = ["vcalendar", "vevent", "vtodo", "vjournal"];
    let component = lower.strip_prefix("begin:");
    if component.is_some_and(|rest| components.iter().any(|name| rest.starts_with(name))) {
        return Some(FileKind::Ics);
    }
    if lower.starts_with("begin:vcard") {
        return Some(FileKind::Vcard);
    }
    if lower.starts_with("<!doctype html") {
        return Some(FileKind::Html);
    }
    if lower.starts_with('<') {
        return match root_element(&lower)? {
            "html" => Some(FileKind::Html),
            "rss" | "feed" => Some(FileKind::Feed),
            "en-export" => Some(FileKind::Enex),
            // Other documents in RDF are no feeds.
            "rdf" => ["/rss/", "netscape.com/rdf"]
                .iter()
                .any(|name| lower.contains(name))
                .then_some(FileKind::Feed),
            _ => None,
        };
    }
    let is_separator = start.lines().next().is_some_and(|line| line == "From" || line.starts_with("From "));
    if is_separator && start.lines().nth(1).is_some_and(is_header) {
        return Some(FileKind::Mbox);
    }
    is_message(&lower).then_some(FileKind::Eml)
}

/// Returns the name of the first element of a document in XML or HTML, without its prefix. Comments, instructions and
/// the document type are before it.
fn root_element(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let end = match rest {
            _ if rest.starts_with("<!--") => "-->",
            _ if rest.starts_with("<?") => "?>",
            // The declarations of a document type are in brackets.
            _ if rest.starts_with("<!") && rest.find('[') < rest.find('>') && rest.contains('[') => "]>",
            _ if rest.starts_with("<!") => ">",
            _ => break,
        };
        rest = rest.split_once(end)?.1;
    }
    let tag = rest.strip_prefix('<')?;
    let name =
        tag.split(|character: char| character.is_whitespace() || matches!(character, '>' | '/')).next()?;
    Some(name.rsplit_once(':').map_or(name, |(_prefix, local)| local))
}

/// Returns true if a line is a header of a message.
fn is_header(line: &str) -> bool {
    let name = line.split_once(':').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

/// Returns true if a text in lower case begins with headers of which two are those of a message.
fn is_message(lower: &str) -> bool {
    const NAMES: [&str; 8] =
        ["from", "to", "subject", "date", "message-id", "received", "return-path", "delivered-to"];
    let headers = lower.lines().take_while(|line| is_header(line) || line.starts_with([' ', '\t']));
    let names = headers.filter_map(|line| line.split_once(':')).map(|(name, _)| name);
    names.filter(|name| NAMES.contains(name)).take(2).count() == 2
}

/// Returns true if the start of a file is text: without control characters, or UTF-16 with a byte order mark.
pub(super) fn is_text(head: &[u8]) -> bool {
    let is_utf16 = head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF");
    is_utf16 || !head.iter().any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[track_caller]
    fn check(name: &str, content: &[u8], expect: Option<FileKind>) {
        let item = Item::from_reader(name.to_owned(), None, Box::new(Cursor::new(content))).unwrap();
        assert_eq!(detect_kind(&item), expect, "{name}");
    }

    #[test]
    fn content_counts_more_than_the_extension() {
        check("a.txt", b"%PDF-1.7\n", Some(FileKind::Pdf));
        check("a.docx", b"\x1F\x8B\x08", Some(FileKind::Gzip));
        check("a.pdf", b"BEGIN:VCALENDAR\r\n", Some(FileKind::Ics));
        check("a.ics", b"BEGIN:VEVENT\r\n", Some(FileKind::Ics));
        check("a.pdf", b"some text", None);
        check("a.zip", b"PK\x03\x04....[Content_Types].xml...word/document.xml", Some(FileKind::Docx));
        check("a.jar", b"PK\x03\x04....META-INF/MANIFEST.MF", None);
        check("a.bin", b"PK\x03\x04....mimetypeapplication/epub+zip", Some(FileKind::Epub));
        check("a", b"SQLite format 3\0", Some(FileKind::Sqlite));
        check("a.doc", b"{\\rtf1 \\bin1 \0}", Some(FileKind::Rtf));
        check("a.msg", b"\xD0\xCF\x11\xE0", Some(FileKind::Msg));
        let compound = |names: &str| {
            let names: Vec<u8> = names.encode_utf16().flat_map(u16::to_le_bytes).collect();
            [&b"\xD0\xCF\x11\xE0\0\0"[..], &names].concat()
        };
        for (name, entries, expect) in [
            ("a.doc", "__properties_version1.0", Some(FileKind::Msg)),
            ("a.doc", "__properties_version1.0 WordDocument", Some(FileKind::Docx)),
            ("a.xls", "Workbook __properties_version1.0", Some(FileKind::Xlsx)),
            ("a.ppt", "", Some(FileKind::Pptx)),
            ("a.msg", "__properties_version1.0 WordDocument", Some(FileKind::Msg)),
            ("a", "__properties_version1.0", Some(FileKind::Msg)),
            ("a.db", "other", None),
        ] {
            check(name, &compound(entries), expect);
        }
        for (content, expect) in [
            (&b"id\tanimal\n1\tdassie\n"[..], Some(FileKind::Csv)),
            (b"<Table border=1><tr><td>dassie", Some(FileKind::Html)),
            (b"<html><table>", Some(FileKind::Html)),
            (b"<?xml version='1.0'?><Workbook><Table>", None),
            (b"some text", None),
        ] {
            check("a.xls", content, expect);
        }
        check("a.rtf", b"some text", None);
        check("a.png", b"\xFF\xD8\xFF\xE0", Some(FileKind::Image));
        check("a.png", b"some text", None);
    }

    #[test]
    fn text_is_what_its_extension_says() {
        check("a.md", b"<html>", Some(FileKind::Markdown));
        check("a.txt", b"From: a\nTo: b\n\n", Some(FileKind::Text));
        check("a.txt", b"\0\0\0\x01", None);
        check("a.txt", b"\xFF\xFEa\0", Some(FileKind::Text));
        check("a.rs", b"fn main() {}", Some(FileKind::Code));
        check("a.rs", b"// @generated by x\nfn main() {}", None);
        check("Makefile", b"all:\n", Some(FileKind::Code));
        check("run", b"#!/bin/sh\n", Some(FileKind::Code));
        check("a.ts", b"G\x40\0\x10", None);
        check("README", b"hello", None);
        check("a.html", b"<!DOCTYPE NETSCAPE-Bookmark-file-1>\n", Some(FileKind::Bookmarks));
        let clipping = b"Book\n- Highlight | 1 March 2024 10:00\n\nx\n==========\n";
        check("My Clippings.txt", clipping, Some(FileKind::Kindle));
        check("_chat.txt", b"[05/03/2024, 14:05:12] Ana: x\n", Some(FileKind::WhatsApp));
    }

    #[test]
    fn text_without_an_extension_is_recognized() {
        check("a", b"<?xml version=\"1.0\"?>\n<rss version=\"2.0\">", Some(FileKind::Feed));
        check("a.xml", b"<feed xmlns=\"http://www.w3.org/2005/Atom\">", Some(FileKind::Feed));
        check("a.xml", b"<config/>", None);
        check(
            "a.enex",
            b"<?xml version=\"1.0\"?><!DOCTYPE en-export SYSTEM \"x\"><en-export>",
            Some(FileKind::Enex),
        );
        let drawing = b"<?xml version='1.0'?>\n<!-- <rss> --><svg><metadata><rdf:RDF><cc:Work/></rdf:RDF></metadata></svg>";
        check("logo.svg", drawing, None);
        check("a.rdf", b"<rdf:RDF xmlns:owl='http://www.w3.org/2002/07/owl#'>", None);
        check("a.rdf", b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'>", Some(FileKind::Feed));
        check("a", b"<!DOCTYPE rss [<!ENTITY a '>'>]>\n<rss>", Some(FileKind::Feed));
        check("a", b"<!DOCTYPE note SYSTEM 'a.dtd'><note>[<rss></note>", None);
        check("a", b"<!-- saved -->\n<HTML lang=en>", Some(FileKind::Html));
        check("a", b"From a@x.test Wed Apr  1 10:00:00 2026\nSubject: x\n\n", Some(FileKind::Mbox));
        check("a", b"Return-Path: <a@x>\nReceived: by x\n  more\nSubject: x\n\n", Some(FileKind::Eml));
        check("box/cur/1.host:2,S", b"X-Only: one\n\n", Some(FileKind::Eml));
        check("a", b"Note: this\nis text", None);
        check("a.srt", b"1\n00:00:01,000 --> 00:00:03,000\nx\n", Some(FileKind::Subtitles));
        check("a", b"WEBVTT\n\n", Some(FileKind::Subtitles));
        check("a.srt", b"a letter\n", None);
    }

    #[test]
    fn mail_may_have_bytes_that_are_no_text() {
        let mail = b"From: a@x.test\r\nSubject: x\r\n\r\nbinary \0\x01";
        for (name, expect) in [
            ("a.eml", Some(FileKind::Eml)),
            ("box/cur/1.host:2,S", Some(FileKind::Eml)),
            ("a.txt", None),
            ("a.csv", None),
        ] {
            check(name, mail, expect);
        }
        let mailbox = b"From a@x.test Wed Apr  1 10:00:00 2026\nFrom: a\nSubject: x\n\n\0\n";
        check("a.mbox", mailbox, Some(FileKind::Mbox));
        check("Inbox", mailbox, Some(FileKind::Mbox));
        check("a.eml", b"From: a\0\nTo: b\n\nx", None);
        check("box/cur/photo", b"\xFF\xD8\xFE\0\n\n", None);
        check("a.eml", b"\0\0\0\x01", None);
        check("a.log", b"bell \x07 and back\x08", Some(FileKind::Text));
        check("1.emlx", b"20  \nFrom: a\nTo: b\n\n\0", Some(FileKind::Emlx));
        check("1.emlx", b"From: a\nTo: b\n\n", Some(FileKind::Eml));
        check("a.log", b"\x01\xFF\xFE\x02", None);
        check("a.rs", b"bell \x07", None);
    }

    #[test]
    fn text_in_utf_16_is_recognized() {
        let utf16 = |text: &str, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "\u{FEFF}".encode_utf16().chain(text.encode_utf16()).flat_map(to_bytes).collect()
        };
        for to_bytes in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            check("a.vcf", &utf16("BEGIN:VCARD\r\n", to_bytes), Some(FileKind::Vcard));
            check("a.xml", &utf16("<?xml version='1.0'?><rss>", to_bytes), Some(FileKind::Feed));
            check("a.txt", &utf16("BEGIN:VCARD\r\n", to_bytes), Some(FileKind::Text));
            check("a", &utf16("From: a\nTo: b\n\n", to_bytes), None);
            check("a.xml", &utf16("<config/>", to_bytes), None);
        }
    }
}
