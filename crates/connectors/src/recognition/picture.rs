//! The reader of picture files.

use super::super::documents::Document;
use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::{Problem, SkipReason};
use super::recognizer::{Recognizer, picture_hint};

/// Reads a picture with the text that is recognized in it. One without text has an empty text.
pub(crate) fn read_picture(
    item: &mut Item<'_>,
    recognizer: Option<&Recognizer>,
) -> Result<FileRecord, Problem> {
    let unread = || Problem::new(SkipReason::NoText, format!("it is a picture; {}", picture_hint()));
    let recognizer = recognizer.ok_or_else(unread)?;
    let (found, pages) = recognizer.recognize_file(item.read_all()?)?;
    let missing = pages.saturating_sub(found.pages);
    let confidence = found.mean_confidence();
    let document =
        Document { count: (pages > 1).then_some(("pages", pages)), text: found.text, ..Document::default() };
    let mut record = document.into_record(FileKind::Image, item);
    let unread = (missing > 0).then(|| format!("{missing} of {pages} pages: tesseract cannot read them"));
    recognizer.put_fields(&mut record, confidence, unread.into_iter().collect());
    Ok(record)
}
