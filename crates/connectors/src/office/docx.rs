//! The reader of Word documents.

use super::super::documents::Document;
use super::super::item::{FileKind, FileRecord, Item};
use super::package::Package;
use super::properties::read_properties;
use super::xml::{Node, walk_xml};

/// The main part, and the parts with text that follows it.
const PARTS: [&str; 4] =
    ["word/document.xml", "word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"];

/// Reads a Word document: its text with tables, notes and comments, without deleted text.
pub(crate) fn read_docx(item: &mut Item<'_>) -> Result<FileRecord, String> {
    let mut package = Package::open(item.read_all()?)?;
    let mut document = Document::default();
    if let Some(xml) = package.read("docProps/core.xml")? {
        read_properties(&xml, &mut document)?;
    }
    for part in PARTS {
        match package.read(part)? {
            Some(xml) => add_text(&xml, &mut document)?,
            None if part == "word/document.xml" => return Err(format!("it has no part {part}")),
            None => {}
        }
    }
    document.text = document.text.trim().to_owned();
    Ok(document.into_record(FileKind::Docx, item))
}

/// Appends the text of a part. The first paragraph in the style `Title` is the title if there is no other.
fn add_text(xml: &str, document: &mut Document) -> Result<(), String> {
    let (mut is_text, mut fallbacks, mut cells) = (false, 0_usize, 0_usize);
    let (mut paragraph, mut is_title) = (0, false);
    walk_xml(xml, &mut |node| {
        let text = &mut document.text;
        match node {
            // The same content again, for programs that cannot show the first choice.
            Node::Start(tag) if tag.name == "Fallback" => fallbacks += 1,
            Node::End("Fallback") => fallbacks = fallbacks.saturating_sub(1),
            _ if fallbacks > 0 => {}
            Node::Start(tag) => match tag.name {
                "t" => is_text = true,
                "p" => (paragraph, is_title) = (text.len(), false),
                "pStyle" => is_title = tag.attribute("val").is_some_and(|style| style == "Title"),
                "tab" => text.push('\t'),
                "br" | "cr" => text.push('\n'),
                "tc" => cells += 1,
                _ => {}
            },
            Node::Text(piece) if is_text => text.push_str(piece),
            Node::End("t") => is_text = false,
            Node::End("p") => {
                if is_title && document.title.is_empty() {
                    document.title = text.get(paragraph..).unwrap_or_default().to_owned();
                }
                text.push(if cells > 0 { ' ' } else { '\n' });
            }
            Node::End("tc") => {
                cells = cells.saturating_sub(1);
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\t');
            }
            Node::End("tr") => {
                text.truncate(text.trim_end_matches('\t').len());
                text.push('\n');
            }
            Node::Text(_) | Node::End(_) => {}
        }
        Ok(())
    })
}
