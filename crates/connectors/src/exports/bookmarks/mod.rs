//! The readers of bookmarks: a record for each.
//!
//! * `netscape`: the HTML file that every browser exports, `chrome`: the file `Bookmarks` of Chrome and its relatives

mod chrome;
mod netscape;

pub(crate) use self::netscape::is_bookmarks;

use fetchwell_core::fit::first_characters;
use fetchwell_core::record::RecordData;

use self::chrome::read_chrome;
use self::netscape::read_netscape;
use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};

/// Stream of bookmarks.
const STREAM: &str = "bookmarks";

/// Maximum length of an address in bytes: a longer one is a script or an embedded file.
const MAX_URL_BYTES: usize = 4_096;

/// Maximum length of the name of a folder in characters. Every bookmark in it has the name.
const MAX_FOLDER_NAME: usize = 200;

/// Reads the bookmarks of a file.
pub(crate) fn read_bookmarks(item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let is_json = item.head().trim_ascii_start().starts_with(b"{");
    if is_json { read_chrome(item, intake) } else { read_netscape(item, intake) }
}

/// Returns the name of a folder, truncated.
fn folder_name(name: &str) -> &str {
    first_characters(name.trim(), MAX_FOLDER_NAME)
}

/// A bookmark of a browser.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Bookmark {
    title: String,
    url: String,
    /// Names of the folders, joined by `/`.
    folder: String,
    tags: Vec<String>,
    added: String,
    note: String,
}

impl Bookmark {
    /// Returns true if the bookmark is of a page, not of a script or a search.
    fn is_page(&self) -> bool {
        let has_scheme =
            ["http://", "https://", "file://", "ftp://"].iter().any(|scheme| self.url.starts_with(scheme));
        has_scheme && self.url.len() <= MAX_URL_BYTES
    }

    /// Returns the record. Its key is the address; the same page in two folders is two records.
    fn into_record(self, item: &Item<'_>) -> FileRecord {
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
