//! The kinds of files that are read, with their names and extensions.

use std::path::Path;

use super::languages::language_of_extension;

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// A plain text file.
    Text,
    /// A Markdown note.
    Markdown,
    /// A web page.
    Html,
    /// An e-mail in a file.
    Eml,
    /// A mailbox file.
    Mbox,
    /// A Word document.
    Docx,
    /// A PowerPoint presentation.
    Pptx,
    /// A table of text.
    Csv,
    /// An Excel workbook.
    Xlsx,
    /// An OpenDocument spreadsheet.
    Ods,
    /// An OpenDocument text or presentation.
    Odt,
    /// An electronic book.
    Epub,
    /// A PDF document.
    Pdf,
    /// A ZIP archive.
    Zip,
    /// A tar archive.
    Tar,
    /// A file compressed with gzip.
    Gzip,
    /// Events in iCalendar format.
    Ics,
    /// Contacts in vCard format.
    Vcard,
    /// An RSS or Atom feed.
    Feed,
    /// A SQLite database.
    Sqlite,
    /// Conversations exported by ChatGPT.
    ChatGpt,
    /// Conversations exported by Claude.
    Claude,
    /// A day of a channel exported by Slack.
    Slack,
    /// Issues or pull requests exported by `gh`.
    Github,
    /// A document in Rich Text Format.
    Rtf,
    /// A Jupyter notebook.
    Notebook,
    /// Subtitles in SubRip or WebVTT.
    Subtitles,
    /// Source code or plain configuration.
    Code,
    /// Objects in a JSON file of any other kind.
    Json,
    /// A message that Apple Mail keeps in a file.
    Emlx,
    /// A message that Outlook saved.
    Msg,
    /// Notes exported by Evernote.
    Enex,
    /// A chat exported by WhatsApp.
    WhatsApp,
    /// Chats exported by Telegram.
    Telegram,
    /// A note exported by Google Keep.
    Keep,
    /// Highlights and notes of a Kindle.
    Kindle,
    /// Bookmarks exported by a browser.
    Bookmarks,
    /// A picture, of which the text can be recognized.
    Image,
}

/// The name of each kind in output, a phrase for errors, and its extensions, the most common first.
const KINDS: [(FileKind, &str, &str, &[&str]); 38] = [
    (FileKind::Text, "text", "text file", &["txt", "text", "log", "rst", "adoc", "org", "tex"]),
    (FileKind::Markdown, "markdown", "Markdown file", &["md", "markdown", "mdx"]),
    (FileKind::Html, "html", "HTML file", &["html", "htm", "xhtml"]),
    (FileKind::Eml, "eml", "e-mail", &["eml"]),
    (FileKind::Mbox, "mbox", "mailbox", &["mbox"]),
    (FileKind::Docx, "docx", "Word document", &["docx", "docm", "dotx", "doc"]),
    (FileKind::Pptx, "pptx", "PowerPoint presentation", &["pptx", "pptm", "ppsx", "ppt", "pps"]),
    (FileKind::Csv, "csv", "table", &["csv", "tsv"]),
    (FileKind::Xlsx, "xlsx", "Excel workbook", &["xlsx", "xlsm", "xls"]),
    (FileKind::Ods, "ods", "OpenDocument spreadsheet", &["ods"]),
    (FileKind::Odt, "odt", "OpenDocument text or presentation", &["odt", "odp"]),
    (FileKind::Epub, "epub", "EPUB book", &["epub"]),
    (FileKind::Pdf, "pdf", "PDF document", &["pdf"]),
    (FileKind::Zip, "zip", "ZIP archive", &["zip"]),
    (FileKind::Tar, "tar", "tar archive", &["tar", "tgz"]),
    (FileKind::Gzip, "gzip", "gzip file", &["gz"]),
    (FileKind::Ics, "ics", "iCalendar file", &["ics", "ical"]),
    (FileKind::Vcard, "vcard", "vCard file", &["vcf", "vcard"]),
    (FileKind::Feed, "feed", "RSS or Atom feed", &["rss", "atom", "xml"]),
    (FileKind::Sqlite, "sqlite", "SQLite database", &["db", "sqlite", "sqlite3"]),
    (FileKind::ChatGpt, "chatgpt", "ChatGPT export", &["json", "zip"]),
    (FileKind::Claude, "claude", "Claude export", &["json", "zip"]),
    (FileKind::Slack, "slack", "Slack export", &["json", "zip"]),
    (FileKind::Github, "github", "list of GitHub issues", &["json"]),
    (FileKind::Rtf, "rtf", "RTF document", &["rtf"]),
    (FileKind::Notebook, "notebook", "Jupyter notebook", &["ipynb"]),
    (FileKind::Subtitles, "subtitles", "subtitle file", &["srt", "vtt"]),
    (
        FileKind::Code,
        "code",
        "source or configuration file",
        &["py", "js", "ts", "java", "go", "rs", "c", "sh", "yaml", "toml", "ini"],
    ),
    (FileKind::Json, "json", "JSON file", &["json", "ndjson", "jsonl"]),
    (FileKind::Emlx, "emlx", "message of Apple Mail", &["emlx"]),
    (FileKind::Msg, "msg", "message of Outlook", &["msg"]),
    (FileKind::Enex, "enex", "Evernote export", &["enex"]),
    (FileKind::WhatsApp, "whatsapp", "WhatsApp chat", &["txt", "zip"]),
    (FileKind::Telegram, "telegram", "Telegram export", &["json", "zip"]),
    (FileKind::Keep, "keep", "Google Keep note", &["json", "zip"]),
    (FileKind::Kindle, "kindle", "Kindle clippings", &["txt"]),
    (FileKind::Bookmarks, "bookmarks", "file of bookmarks", &["html", "json"]),
    (FileKind::Image, "image", "picture", &["png", "jpg", "jpeg", "tif", "tiff"]),
];

impl FileKind {
    /// Returns all kinds.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(kind, ..)| *kind)
    }

    /// Returns the name of the kind: the subcommand of `fetchwell import` and the field `format` of documents.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// Returns true if a file has an extension of this kind.
    pub fn is_name(self, path: &Path) -> bool {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        extension.is_some_and(|extension| self.row().3.contains(&extension.as_str()))
    }

    /// Returns true for archives, which have files as entries.
    pub(crate) fn is_archive(self) -> bool {
        matches!(self, Self::Zip | Self::Tar | Self::Gzip)
    }

    /// Returns true for pictures, documents that may have scanned pages, and messages that may have these attached.
    pub(crate) fn may_have_pictures(self) -> bool {
        matches!(self, Self::Image | Self::Pdf | Self::Eml | Self::Mbox | Self::Emlx | Self::Msg)
    }

    /// Returns the kind as which a file is read if its own is not selected: a chat is a text, too.
    pub(crate) fn general(self) -> Option<Self> {
        match self {
            Self::WhatsApp | Self::Kindle => Some(Self::Text),
            Self::Bookmarks => Some(Self::Html),
            _ => None,
        }
    }

    /// Returns a phrase for errors, such as `PDF document (.pdf)`.
    pub(crate) fn description(self) -> String {
        let (_, _, phrase, endings) = self.row();
        let endings: Vec<String> = endings.iter().map(|ending| format!(".{ending}")).collect();
        format!("{phrase} ({})", endings.join(", "))
    }

    /// Returns the kind that the name of a file suggests. The content decides when the file is read.
    #[must_use]
    pub fn from_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
        match extension.as_str() {
            "json" | "ndjson" | "jsonl" => Some(Self::Json),
            other => Self::from_extension(other),
        }
    }

    /// Returns the kind that an extension in lower case suggests. JSON and XML files need a look at their content.
    pub(crate) fn from_extension(extension: &str) -> Option<Self> {
        if matches!(extension, "json" | "ndjson" | "jsonl" | "xml") {
            return None;
        }
        let mut rows = KINDS.iter();
        let found = rows.find(|(_, _, _, endings)| endings.contains(&extension)).map(|(kind, ..)| *kind);
        found.or_else(|| language_of_extension(extension).map(|_| Self::Code))
    }

    fn row(self) -> (Self, &'static str, &'static str, &'static [&'static str]) {
        let found = KINDS.iter().find(|(kind, ..)| *kind == self);
        found.copied().unwrap_or((self, "", "", &[]))
    }
}
