//! The reader of notes that Google Keep exported as JSON: a record for each note, which is a file.

use fetchwell_core::record::{RecordData, html_to_text};
use jiff::Timestamp;
use serde_json::Value;

use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::objects::text_at;

/// Stream of notes.
const STREAM: &str = "documents";

/// Reads a note. Notes in the archive and the trash are marked.
pub(crate) fn read_keep(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let text = item.read_text()?;
    let note: RecordData =
        serde_json::from_str(&text).map_err(|error| format!("its JSON is broken: {error}"))?;
    let [created, edited] = ["createdTimestampUsec", "userEditedTimestampUsec"]
        .map(|field| time_of(note.get(field)).unwrap_or_default());
    let mut record = FileRecord::for_item(STREAM, item);
    let body = body_of(&note);
    let first_line = body.lines().next().unwrap_or_default();
    let titles = [text_at(&note, "title").trim(), first_line, item.stem()];
    record.put_text("title", titles.into_iter().find(|title| !title.is_empty()).unwrap_or_default());
    record.put_text("path", &item.path);
    record.put_text("format", FileKind::Keep.as_str());
    record.put_list("tags", texts(&note, "labels", "name"));
    record.put_list("attachments", texts(&note, "attachments", "filePath"));
    for (field, name) in [("archived", "isArchived"), ("trashed", "isTrashed"), ("pinned", "isPinned")] {
        if note.get(name).and_then(Value::as_bool) == Some(true) {
            record.data.insert(field.to_owned(), Value::from(true));
        }
    }
    record.put_text("created_at", &created);
    record.put_text("modified_at", &edited);
    record.data.insert("body".to_owned(), Value::from(body));
    let time = [created, edited].into_iter().find(|time| !time.is_empty());
    record.emitted_at = time.or(record.emitted_at);
    Ok(record)
}

/// Returns the text of a note: its own, that of a list, and the addresses of pages that it links.
fn body_of(note: &RecordData) -> String {
    let own = text_at(note, "textContent").trim().to_owned();
    let own = if own.is_empty() { html_to_text(text_at(note, "textContentHtml")) } else { own };
    let entries = note.get("listContent").and_then(Value::as_array).into_iter().flatten();
    let entries: Vec<String> = entries.filter_map(Value::as_object).map(list_entry).collect();
    let links = note.get("annotations").and_then(Value::as_array).into_iter().flatten();
    let links = links.filter_map(Value::as_object).map(|link| {
        let (title, url) = (text_at(link, "title"), text_at(link, "url"));
        if title.is_empty() { url.to_owned() } else { format!("{title} ({url})") }
    });
    let links: Vec<String> = links.filter(|link| !link.is_empty()).collect();
    let texts = [own, entries.join("\n"), links.join("\n")];
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn list_entry(entry: &RecordData) -> String {
    let mark = if entry.get("isChecked").and_then(Value::as_bool) == Some(true) { 'x' } else { ' ' };
    format!("- [{mark}] {}", text_at(entry, "text"))
}

/// Returns a text of each object in a list.
fn texts(note: &RecordData, field: &str, name: &str) -> Vec<String> {
    let items = note.get(field).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.get(name)?.as_str().map(str::to_owned)).collect()
}

/// Returns a number of microseconds since 1970 in RFC 3339.
fn time_of(value: Option<&Value>) -> Option<String> {
    let micros = value?.as_i64().filter(|micros| *micros > 0)?;
    Timestamp::from_microsecond(micros).ok().map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_lists_are_read() {
        let note = r#"{"title": "", "listContent": [{"text": "milk", "isChecked": true}, {"text": "avocet feed", "isChecked": false}],
            "labels": [{"name": "home"}], "annotations": [{"url": "https://x.test", "title": "Feed"}], "isTrashed": true,
            "userEditedTimestampUsec": 1714550400000000, "createdTimestampUsec": 1714546800000000}"#;
        let mut item = Item::from_reader("Keep/a.json".to_owned(), None, Box::new(note.as_bytes())).unwrap();
        let record = read_keep(&mut item).unwrap();
        assert_eq!(record.data["body"], "- [x] milk\n- [ ] avocet feed\n\nFeed (https://x.test)");
        assert_eq!(
            (&record.data["title"], &record.data["trashed"]),
            (&Value::from("- [x] milk"), &Value::from(true))
        );
        assert_eq!(
            (record.data["tags"][0].as_str(), record.emitted_at.as_deref()),
            (Some("home"), Some("2024-05-01T07:00:00Z"))
        );
    }
}
