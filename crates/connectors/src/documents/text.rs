//! The reader of plain text.

use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::document::Document;

/// Reads a text file. Its title is the name of the file.
pub(crate) fn read_text(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let text = item.read_text()?;
    Ok(Document { text, ..Document::default() }.into_record(FileKind::Text, item))
}
