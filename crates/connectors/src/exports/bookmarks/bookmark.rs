//! A bookmark of a browser, and its record.

use std::rc::Rc;

use fetchwell_core::fit::first_characters;
use fetchwell_core::record::RecordData;

use super::super::super::item::{FileRecord, Item};

/// Stream of bookmarks.
const STREAM: &str = "bookmarks";

/// Maximum length of an address in bytes: a longer one is a script or an embedded file.
const MAX_URL_BYTES: usize = 4_096;

/// Maximum length of the name of a folder in characters. Every bookmark in it has the name.
const MAX_FOLDER_NAME: usize = 200;

/// Maximum length of the path of a folder in characters.
const MAX_FOLDER_PATH: usize = 1_000;

/// Returns the path of a folder in another one, truncated. Without a name it is the path of the other one.
pub(super) fn folder_path(parent: &Rc<str>, name: &str) -> Rc<str> {
    let name = first_characters(name.trim(), MAX_FOLDER_NAME);
    match (&**parent, name) {
        (_, "") => Rc::clone(parent),
        ("", name) => name.into(),
        (parent, name) => first_characters(&format!("{parent}/{name}"), MAX_FOLDER_PATH).into(),
    }
}

/// A bookmark of a browser.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Bookmark {
    pub(super) title: String,
    pub(super) url: String,
    /// Path of the folder, which its bookmarks share.
    pub(super) folder: Rc<str>,
    pub(super) tags: Vec<String>,
    pub(super) added: String,
    pub(super) note: String,
}

impl Bookmark {
    /// Returns true if the bookmark is of a page, not of a script or a search.
    pub(super) fn is_page(&self) -> bool {
        let has_scheme =
            ["http://", "https://", "file://", "ftp://"].iter().any(|scheme| self.url.starts_with(scheme));
        has_scheme && self.url.len() <= MAX_URL_BYTES
    }

    /// Returns the record. Its key is the address; the same page in two folders is two records.
    pub(super) fn into_record(self, item: &Item<'_>) -> FileRecord {
        let Self { title, url, folder, tags, added, note } = self;
        let mut record = FileRecord {
            stream: STREAM.to_owned(),
            key: url.clone(),
            data: RecordData::new(),
            emitted_at: Some(added.clone())
                .filter(|time| !time.is_empty())
                .or_else(|| item.changed_at.clone()),
            identity: None,
        };
        record.put_text("title", if title.trim().is_empty() { &url } else { &title });
        record.put_text("url", &url);
        record.put_text("folder", &folder);
        record.put_list("tags", tags);
        record.put_text("added_at", &added);
        record.put_text("path", &item.path);
        record.put_text("body", &note);
        record.identity = Some(record.data.clone());
        record
    }
}
