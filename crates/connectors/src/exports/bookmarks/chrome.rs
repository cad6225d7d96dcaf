//! The reader of the file `Bookmarks` of Chrome, Edge, Brave and others.

use serde::Deserialize;

use super::super::super::intake::Intake;
use super::super::super::item::{Item, ReadError};
use super::super::super::values::time_since_1601;
use super::bookmark::{Bookmark, folder_name};

#[derive(Debug, Deserialize)]
struct File {
    roots: serde_json::Map<String, serde_json::Value>,
}

/// A bookmark, or a folder with others.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    name: String,
    url: String,
    date_added: String,
    children: Vec<Self>,
}

/// Reads the bookmarks of a file.
pub(super) fn read_chrome(mut item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let text = item.read_text()?;
    for (number, bookmark) in (1_u64..).zip(bookmarks(&text)?) {
        let place = format!("{}: bookmark {number}", item.path);
        if bookmark.is_page() {
            bookmark.into_record(&item).take_into(&place, intake)?;
        }
    }
    Ok(())
}

/// Returns the bookmarks in the order of the file.
fn bookmarks(text: &str) -> Result<Vec<Bookmark>, String> {
    let file: File =
        serde_json::from_str(text).map_err(|error| format!("its JSON is not that of bookmarks: {error}"))?;
    let roots = file.roots.into_iter().filter_map(|(_, root)| serde_json::from_value::<Entry>(root).ok());
    // The entries to read, the next one last, each with its folder.
    let mut open: Vec<(String, Entry)> = roots.map(|root| (String::new(), root)).collect();
    open.reverse();
    let mut found = Vec::new();
    while let Some((folder, entry)) = open.pop() {
        let Entry { name, url, date_added, children } = entry;
        if url.is_empty() {
            let name = folder_name(&name);
            let inner = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            open.extend(children.into_iter().rev().map(|child| (inner.clone(), child)));
        } else {
            let added = time_of(&date_added).unwrap_or_default();
            found.push(Bookmark { title: name, url, folder, added, ..Bookmark::default() });
        }
    }
    Ok(found)
}

/// Returns a number of microseconds since 1601 in RFC 3339.
fn time_of(text: &str) -> Option<String> {
    let micros: i64 = text.parse().ok().filter(|micros| *micros > 0)?;
    time_since_1601(micros / 1_000_000).map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_have_folders_and_times() {
        let file = r#"{"checksum": "x", "roots": {"bookmark_bar": {"name": "Bar", "type": "folder", "children": [
            {"name": "Birds", "children": [{"name": "The ibis", "url": "https://x.test/", "date_added": "13359024000000000"}]},
            {"name": "Second", "url": "https://y.test/"}]}, "sync_transaction_version": "1"}, "version": 1}"#;
        let found = bookmarks(file).unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|found| (found.title.as_str(), found.folder.as_str(), found.added.as_str()))
            .collect();
        assert_eq!(shown, [("The ibis", "Bar/Birds", "2024-05-01T08:00:00Z"), ("Second", "Bar", "")]);
        assert!(bookmarks("{}").is_err());
    }
}
