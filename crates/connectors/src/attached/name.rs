//! The names of attachments as records have them. A name is whatever the sender wrote, and is no path.

use fetchwell_core::fit::first_characters;
use fetchwell_core::terminal::is_bidi_control;

use super::super::item::FileKind;

/// Name of an attachment without one.
pub(crate) const UNNAMED: &str = "unnamed";

/// Maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 200;

/// Maximum length of an extension that a long name keeps, in characters.
const MAX_EXTENSION_CHARS: usize = 10;

/// Extensions of the files of some types, for attachments with a name that has no known extension.
const TYPES: [(&str, &str); 21] = [
    ("application/pdf", "pdf"),
    ("application/x-pdf", "pdf"),
    ("application/msword", "doc"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.ms-powerpoint", "ppt"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
    ("application/vnd.oasis.opendocument.text", "odt"),
    ("application/vnd.oasis.opendocument.presentation", "odp"),
    ("application/vnd.oasis.opendocument.spreadsheet", "ods"),
    ("application/epub+zip", "epub"),
    ("application/rtf", "rtf"),
    ("application/mbox", "mbox"),
    ("application/ics", "ics"),
    ("application/csv", "csv"),
    ("application/xhtml+xml", "html"),
    ("application/gzip", "gz"),
    ("application/x-tar", "tar"),
    ("application/zip", "zip"),
    ("application/x-zip-compressed", "zip"),
];

/// Returns the name of a file without folders, control characters and characters that change the direction of text. A long name
/// keeps its start and its extension.
pub(crate) fn file_name(written: &str) -> String {
    let last = written.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control() && !is_bidi_control(*c)).collect();
    let name = name.trim();
    if name.is_empty() {
        return UNNAMED.to_owned();
    }
    if name.chars().nth(MAX_NAME_CHARS).is_none() {
        return name.to_owned();
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let extension = extension.filter(|extension| extension.chars().nth(MAX_EXTENSION_CHARS).is_none());
    let extension = extension.map(|extension| format!(".{extension}")).unwrap_or_default();
    let room = MAX_NAME_CHARS - extension.chars().count() - 1;
    format!("{}…{extension}", first_characters(name, room))
}

/// Returns a name with the extension of a type, unless its own extension is that of a known kind of file.
pub(crate) fn with_extension(name: &str, media_type: &str) -> String {
    let own = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_known = own.is_some_and(|own| {
        FileKind::from_extension(&own).is_some() || TYPES.iter().any(|(_, extension)| *extension == own)
    });
    let of_type =
        TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(media_type)).filter(|_| !is_known);
    of_type.map_or_else(|| name.to_owned(), |(_, extension)| format!("{name}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files() {
        let long = format!("{}.pdf", "é".repeat(10_000));
        for (written, expect) in [
            ("menu.pdf", "menu.pdf"),
            ("../../etc/passwd", "passwd"),
            (r"C:\Users\ann\Annual report.docx", "Annual report.docx"),
            ("/", "unnamed"),
            ("  \u{1b}[31mred\u{7}.txt\u{202e} ", "[31mred.txt"),
            ("", "unnamed"),
            (long.as_str(), &format!("{}….pdf", "é".repeat(195))),
            (&"x".repeat(300), &format!("{}…", "x".repeat(199))),
            (&format!("a.{}", "x".repeat(300)), &format!("a.{}…", "x".repeat(197))),
        ] {
            assert_eq!(file_name(written), expect);
        }
    }

    #[test]
    fn types_give_an_extension_to_names_without_one() {
        for (name, media_type, expect) in [
            ("report", "application/pdf", "report.pdf"),
            ("report.final", "application/PDF", "report.final.pdf"),
            ("report.docx", "application/pdf", "report.docx"),
            ("old.doc", "application/pdf", "old.doc"),
            ("report", "application/octet-stream", "report"),
        ] {
            assert_eq!(with_extension(name, media_type), expect);
        }
    }
}
