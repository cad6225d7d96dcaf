//! The reader of OpenDocument texts and presentations, and what all OpenDocument files have.

use super::super::documents::Document;
use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::package::Package;
use super::properties::read_properties;
use super::xml::{Node, Tag, walk_xml};

/// Maximum number of spaces that an element stands for.
const MAX_SPACES: usize = 100;

/// Reads an OpenDocument text, or a presentation: the texts and notes of its slides.
pub(crate) fn read_odt(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let mut package = Package::open(item.read_all()?)?;
    let mut document = Document::default();
    let content = open_document(&mut package, &mut document)?;
    let (text, mut is_body, mut deleted) = (&mut document.text, false, 0_usize);
    let (mut slides, mut is_presentation) = (0_usize, false);
    walk_xml(&content, &mut |node| {
        match node {
            Node::Start(tag) if tag.name == "body" => is_body = true,
            Node::Start(tag) if tag.name == "tracked-changes" => deleted += 1,
            Node::End("tracked-changes") => deleted = deleted.saturating_sub(1),
            _ if !is_body || deleted > 0 => {}
            Node::Start(tag) if tag.name == "presentation" => is_presentation = true,
            Node::Start(tag) if tag.name == "page" => slides += 1,
            Node::End("page") => text.push('\n'),
            Node::Start(tag) => add_space(tag, text),
            Node::Text(piece) => text.push_str(piece),
            Node::End("p" | "h") => text.push('\n'),
            Node::End(_) => {}
        }
        Ok::<(), String>(())
    })?;
    document.text = document.text.trim().to_owned();
    document.count = is_presentation.then_some(("slides", slides));
    let mut record = document.into_record(FileKind::Odt, item);
    if is_presentation {
        record.put_text("format", "odp");
    }
    Ok(record)
}

/// Reads the properties of an OpenDocument file. Returns its content.
pub(super) fn open_document(package: &mut Package, document: &mut Document) -> Result<String, Problem> {
    if package.read("META-INF/manifest.xml")?.is_some_and(|xml| xml.contains("encryption-data")) {
        return Err(Problem::encrypted("it is encrypted"));
    }
    if let Some(xml) = package.read("meta.xml")? {
        read_properties(&xml, document)?;
    }
    package.require("content.xml")
}

/// Appends the white space that an element stands for.
pub(super) fn add_space(tag: &Tag<'_>, text: &mut String) {
    match tag.name {
        "tab" => text.push('\t'),
        "line-break" => text.push('\n'),
        "s" => {
            let count = tag.attribute("c").and_then(|count| count.parse().ok()).unwrap_or(1);
            text.extend(std::iter::repeat_n(' ', MAX_SPACES.min(count)));
        }
        _ => {}
    }
}
