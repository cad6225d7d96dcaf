//! The kinds of imports that a store remembers, and their options.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fetchwell_source::documents::DOCS_KIND;
use serde::{Deserialize, Serialize};

use super::super::files::CategoryFrom;
use super::super::item::FileKind;
use super::super::recognition::{OcrLanguages, Recognizer};

/// A kind of import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportKind {
    /// Record envelopes, one per line.
    Records,
    /// A table with a header.
    Csv,
    /// Objects of JSON.
    Json,
    /// A mailbox file.
    Mbox,
    /// The commits of a repository.
    Git,
    /// Files of some kinds in a folder or archive, or a single one.
    Files(&'static FileSet),
}

/// Kinds of files that are imported under a name.
#[derive(Debug, PartialEq, Eq)]
pub struct FileSet {
    name: &'static str,
    /// Kinds of files. None stands for all kinds.
    pub(super) kinds: &'static [FileKind],
}

/// The sets of files by their names, which are those of the subcommands of `fetchwell import` and `gzip`.
static FILE_SETS: [FileSet; 39] = {
    const fn set(name: &'static str, kinds: &'static [FileKind]) -> FileSet {
        FileSet { name, kinds }
    }
    use FileKind as File;
    [
        set("files", &[]),
        set(DOCS_KIND, DOCUMENT_KINDS),
        set("markdown", &[File::Markdown]),
        set("text", &[File::Text]),
        set("html", &[File::Html]),
        set("eml", &[File::Eml]),
        set("maildir", &[File::Eml]),
        set("pdf", &[File::Pdf]),
        set("image", &[File::Image]),
        set("docx", &[File::Docx]),
        set("pptx", &[File::Pptx]),
        set("odt", &[File::Odt]),
        set("epub", &[File::Epub]),
        set("xlsx", &[File::Xlsx]),
        set("ods", &[File::Ods]),
        set("ics", &[File::Ics]),
        set("vcard", &[File::Vcard]),
        set("feed", &[File::Feed]),
        set("sqlite", &[File::Sqlite]),
        set("chatgpt", &[File::ChatGpt, File::Zip]),
        set("claude", &[File::Claude, File::Zip]),
        set("slack", &[File::Slack, File::Zip]),
        set("github", &[File::Github]),
        set("rtf", &[File::Rtf]),
        set("notebook", &[File::Notebook]),
        set("subtitles", &[File::Subtitles]),
        set("code", &[File::Code]),
        set("emlx", &[File::Emlx]),
        set("msg", &[File::Msg]),
        set("enex", &[File::Enex]),
        set("whatsapp", &[File::WhatsApp, File::Zip]),
        set("telegram", &[File::Telegram, File::Zip]),
        set("keep", &[File::Keep, File::Zip]),
        set("kindle", &[File::Kindle]),
        set("bookmarks", &[File::Bookmarks]),
        set("zip", &[File::Zip]),
        set("tar", &[File::Tar, File::Gzip]),
        set("gzip", &[File::Gzip]),
        set("takeout", &[File::Mbox, File::Zip, File::Tar, File::Gzip]),
    ]
};

/// Kinds of files that are documents.
const DOCUMENT_KINDS: &[FileKind] = &[
    FileKind::Markdown,
    FileKind::Text,
    FileKind::Html,
    FileKind::Pdf,
    FileKind::Docx,
    FileKind::Pptx,
    FileKind::Odt,
    FileKind::Epub,
    FileKind::Rtf,
    FileKind::Notebook,
    FileKind::Subtitles,
    FileKind::Image,
];

/// The options of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportOptions {
    /// Stream for the records. `None` is the default of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Fields of the key of a table or of JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// Field of the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Field of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Field of the web address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Origin of the categories of documents.
    #[serde(skip_serializing_if = "is_default")]
    pub category_from: CategoryFrom,
    /// True to recognize the text of pictures and scanned pages.
    #[serde(skip_serializing_if = "is_default")]
    pub ocr: bool,
    /// Languages of such text.
    #[serde(skip_serializing_if = "is_default")]
    pub ocr_languages: OcrLanguages,
}

/// The error for a name that is no kind of import.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` is no kind of import; it is one of {}", kind_names().join(", "))]
pub struct UnknownKind {
    name: String,
}

fn is_default<Setting: Default + PartialEq>(setting: &Setting) -> bool {
    *setting == Setting::default()
}

impl ImportOptions {
    /// Reads options as a store has them. Options of another version of the program are left out.
    #[must_use]
    pub fn from_json(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Returns the options as JSON, as a store has them.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the options without those of text recognition.
    #[must_use]
    pub fn without_ocr(self) -> Self {
        Self { ocr: false, ocr_languages: OcrLanguages::default(), ..self }
    }

    /// Returns the text recognition of an import with these options, if they ask for one. Setting `stop` ends it.
    #[must_use]
    pub fn recognizer(&self, stop: &Arc<AtomicBool>) -> Option<Arc<Recognizer>> {
        self.ocr.then(|| Arc::new(Recognizer::new(self.ocr_languages.clone(), Arc::clone(stop))))
    }
}

impl ImportKind {
    /// Returns the name of the kind: a subcommand of `fetchwell import`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Mbox => "mbox",
            Self::Git => "git",
            Self::Files(set) => set.name,
        }
    }

    /// Returns true for imports into projects of documents.
    #[must_use]
    pub fn is_docs(self) -> bool {
        self.as_str() == DOCS_KIND
    }

    /// Returns true if the kind reads folders.
    #[must_use]
    pub fn reads_folders(self) -> bool {
        matches!(self, Self::Git | Self::Files(_))
    }

    /// Returns true if the kind reads pictures, documents that may have scanned pages, or messages that may have these attached.
    fn has_pictures(self) -> bool {
        let Self::Files(FileSet { kinds, .. }) = self else { return self == Self::Mbox };
        let may_have = |kind: &FileKind| kind.is_archive() || kind.may_have_pictures();
        kinds.is_empty() || kinds.iter().any(may_have)
    }

    /// Returns the first option that the kind does not have.
    #[must_use]
    pub fn unused_option(self, options: &ImportOptions) -> Option<&'static str> {
        let ImportOptions { stream, key, title, time, url, category_from, ocr, ocr_languages } = options;
        let has_fields = matches!(self, Self::Csv | Self::Json);
        let has_stream = !matches!(self, Self::Records | Self::Git) && !self.is_docs();
        [
            ("stream", stream.is_some() && !has_stream),
            ("key", !key.is_empty() && !has_fields),
            ("title", title.is_some() && !has_fields),
            ("time", time.is_some() && !has_fields),
            ("url", url.is_some() && !has_fields),
            ("category-from", !is_default(category_from) && !self.is_docs()),
            ("ocr", (*ocr || !ocr_languages.is_empty()) && !self.has_pictures()),
        ]
        .into_iter()
        .find_map(|(option, is_unused)| is_unused.then_some(option))
    }

    /// Returns the kind for files of a kind.
    pub(super) fn for_files(kind: FileKind) -> Option<Self> {
        match kind {
            FileKind::Csv => Some(Self::Csv),
            other => other.as_str().parse().ok(),
        }
    }
}

impl FromStr for ImportKind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        kinds().find(|kind| kind.as_str() == name).ok_or_else(|| UnknownKind { name: name.to_owned() })
    }
}

impl fmt::Display for ImportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the kinds of files that are imported under a name, or `None` for a name without files. No kind stands for all.
#[must_use]
pub fn file_kinds(name: &str) -> Option<&'static [FileKind]> {
    FILE_SETS.iter().find(|set| set.name == name).map(|set| set.kinds)
}

/// Returns all kinds.
fn kinds() -> impl Iterator<Item = ImportKind> {
    use ImportKind::{Csv, Files, Git, Json, Mbox, Records};
    [Records, Csv, Json, Mbox, Git].into_iter().chain(FILE_SETS.iter().map(Files))
}

/// Returns the names of all kinds.
fn kind_names() -> Vec<&'static str> {
    kinds().map(ImportKind::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_its_kind() {
        for name in kind_names() {
            assert_eq!(name.parse::<ImportKind>().unwrap().as_str(), name);
        }
        let refused = "word".parse::<ImportKind>().unwrap_err().to_string();
        assert!(refused.starts_with("`word` is no kind of import; it is one of records, csv"), "{refused}");
    }

    #[test]
    fn options_belong_to_kinds() {
        let keyed = ImportOptions { key: vec!["id".to_owned()], ..ImportOptions::default() };
        let named = ImportOptions { stream: Some("s".to_owned()), ..ImportOptions::default() };
        assert_eq!(ImportKind::Csv.unused_option(&keyed), None);
        assert_eq!(ImportKind::Mbox.unused_option(&keyed), Some("key"));
        assert_eq!(ImportKind::Mbox.unused_option(&named), None);
        assert_eq!(ImportKind::Git.unused_option(&named), Some("stream"));
        assert_eq!(serde_json::to_string(&named).unwrap(), r#"{"stream":"s"}"#);
        let docs: ImportKind = "docs".parse().unwrap();
        let sorted = ImportOptions { category_from: CategoryFrom::FrontMatter, ..ImportOptions::default() };
        assert_eq!((docs.unused_option(&sorted), docs.unused_option(&named)), (None, Some("stream")));
        assert_eq!(ImportKind::Csv.unused_option(&sorted), Some("category-from"));
        assert_eq!(sorted.to_json(), r#"{"category_from":"front-matter"}"#);
        let ocr_languages: OcrLanguages = "deu+eng".parse().unwrap();
        let scanned = ImportOptions { ocr: true, ocr_languages, ..ImportOptions::default() };
        assert_eq!(
            (docs.unused_option(&scanned), ImportKind::Csv.unused_option(&scanned)),
            (None, Some("ocr"))
        );
        for mail in ["mbox", "maildir", "eml", "emlx", "msg", "takeout"] {
            assert_eq!(mail.parse::<ImportKind>().unwrap().unused_option(&scanned), None, "{mail}");
        }
        assert_eq!(scanned.to_json(), r#"{"ocr":true,"ocr_languages":["deu","eng"]}"#);
        assert_eq!(ImportOptions::from_json(&scanned.to_json()), scanned);
    }
}
