//! The reader of the highlights and notes of a Kindle (`My Clippings.txt`): a record for each.

use fetchwell_core::record::RecordData;

use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::chat_time::read_written_time;
use super::objects::title_from;

/// Stream of highlights.
const STREAM: &str = "highlights";

/// Line between two entries.
const SEPARATOR: &str = "==========";

/// Words for notes and bookmarks in the languages of the device, in lower case. Anything else is a highlight.
const NOTE_WORDS: [&str; 8] = ["note", "nota", "notiz", "notitie", "メモ", "笔记", "заметка", "anotação"];
const BOOKMARK_WORDS: [&str; 9] = [
    "bookmark",
    "lesezeichen",
    "marcador",
    "signet",
    "segnalibro",
    "bladwijzer",
    "ブックマーク",
    "书签",
    "закладка",
];

/// Reads the entries of a file.
pub(crate) fn read_kindle(mut item: Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let text = item.read_text()?;
    let entries = text.split(SEPARATOR).filter(|entry| !entry.trim().is_empty());
    for (number, entry) in (1_u64..).zip(entries) {
        let place = format!("{}: entry {number}", item.path);
        let Some(clipping) = Clipping::read(entry) else {
            intake.reject(&place, "it has no line with its place and time");
            continue;
        };
        // A bookmark has no text.
        if !clipping.text.is_empty() {
            clipping.into_record(&item).take_into(&place, intake)?;
        }
    }
    Ok(())
}

/// Returns true if a text begins as the file of a Kindle does: a book, a line with the place and the time, an empty line.
pub(crate) fn is_kindle(start: &str) -> bool {
    start
        .split_once(SEPARATOR)
        .is_some_and(|(first, _)| Clipping::read(first).is_some_and(|entry| !entry.place.is_empty()))
}

/// An entry of the file.
#[derive(Debug, PartialEq, Eq)]
struct Clipping<'t> {
    book: &'t str,
    author: &'t str,
    kind: &'static str,
    /// Page and location, as the device writes them.
    place: &'t str,
    added: Option<String>,
    text: &'t str,
}

impl<'t> Clipping<'t> {
    fn read(entry: &'t str) -> Option<Self> {
        let entry =
            entry.trim_matches(|character: char| character.is_whitespace() || character == '\u{FEFF}');
        let (book, rest) = entry.split_once('\n')?;
        let (meta, text) = rest.split_once('\n').unwrap_or((rest, ""));
        let meta = meta.trim().strip_prefix("- ")?;
        let (place, added) = meta.rsplit_once('|').unwrap_or(("", meta));
        let (book, author) = split_author(book.trim());
        let added =
            read_written_time(added.trim()).map(|time| time.strftime("%Y-%m-%dT%H:%M:%S").to_string());
        let (kind, text) = (kind_of(meta), text.trim());
        Some(Self { book, author, kind, place: place.trim(), added, text })
    }

    fn into_record(self, item: &Item<'_>) -> FileRecord {
        let Self { book, author, kind, place, added, text } = self;
        let position = added.as_deref().unwrap_or(place);
        let mut record = FileRecord {
            stream: STREAM.to_owned(),
            key: format!("{book}/{position}"),
            data: RecordData::new(),
            emitted_at: added.as_ref().map(|time| format!("{time}Z")).or_else(|| item.changed_at.clone()),
            identity: None,
        };
        record.put_text("title", title_from(text, ""));
        record.put_text("book", book);
        record.put_text("author", author);
        record.put_text("kind", kind);
        record.put_text("place", place);
        record.put_text("added_at", added.as_deref().unwrap_or_default());
        record.put_text("path", &item.path);
        record.put_text("body", text);
        record.identity = Some(record.data.clone());
        record
    }
}

/// Splits the author, who is in brackets at the end, from the title of a book.
fn split_author(line: &str) -> (&str, &str) {
    let inner = line.strip_suffix(')');
    let split = inner.and_then(|inner| inner.rsplit_once('('));
    split.map_or((line, ""), |(book, author)| (book.trim(), author.trim()))
}

fn kind_of(meta: &str) -> &'static str {
    let first = meta.split('|').next().unwrap_or_default().to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| first.contains(word));
    if has(&BOOKMARK_WORDS) {
        "bookmark"
    } else if has(&NOTE_WORDS) {
        "note"
    } else {
        "highlight"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_in_several_languages() {
        for (entry, expect) in [
            (
                "\u{FEFF}The Book (2nd ed.) (Ann, A.)\r\n- Your Highlight on page 5 | Location 60-61 | Added on Friday, March 1, 2024 10:00:00 AM\r\n\r\nThe curlew cries.\r\n",
                (
                    "The Book (2nd ed.)",
                    "Ann, A.",
                    "highlight",
                    "Your Highlight on page 5 | Location 60-61",
                    Some("2024-03-01T10:00:00"),
                    "The curlew cries.",
                ),
            ),
            (
                "Buch\n- Ihre Notiz auf Seite 5 | Hinzugefügt am Freitag, 1. März 2024 22:00:00\n\nSchön",
                ("Buch", "", "note", "Ihre Notiz auf Seite 5", Some("2024-03-01T22:00:00"), "Schön"),
            ),
            (
                "Libro (A)\n- Tu marcador en la página 5 | Añadido el viernes, 1 de marzo de 2024 10:00:00\n\n",
                ("Libro", "A", "bookmark", "Tu marcador en la página 5", Some("2024-03-01T10:00:00"), ""),
            ),
        ] {
            let read = Clipping::read(entry).unwrap();
            assert_eq!(
                (read.book, read.author, read.kind, read.place, read.added.as_deref(), read.text),
                expect
            );
            assert!(is_kindle(&format!("{entry}\n{SEPARATOR}\n")));
        }
        for other in ["", "Title\n==========\n", "A title\n- a list | item\n", "A\n- b\n==========\n"] {
            assert!(!is_kindle(other), "{other}");
        }
    }
}
