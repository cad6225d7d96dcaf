//! The reader of PowerPoint presentations.

use super::super::documents::Document;
use super::super::item::{FileKind, FileRecord, Item};
use super::package::Package;
use super::properties::{read_properties, relationships};
use super::xml::{Node, walk_xml};

const MAIN_PART: &str = "ppt/presentation.xml";

/// Maximum number of slides.
const MAX_SLIDES: usize = 10_000;

/// Reads a presentation: the text of each slide and its notes, in the order of the slides.
pub(crate) fn read_pptx(item: &mut Item<'_>) -> Result<FileRecord, String> {
    let mut package = Package::open(item.read_all()?)?;
    let mut document = Document::default();
    if let Some(xml) = package.read("docProps/core.xml")? {
        read_properties(&xml, &mut document)?;
    }
    let slides = slides(&mut package)?;
    document.count = Some(("slides", slides.len()));
    for slide in slides.iter().take(MAX_SLIDES) {
        let mut text = text_of(&package.require(slide)?)?;
        let notes = relationships(&mut package, slide)?;
        if let Some(notes) = notes.into_values().find(|related| related.kind == "notesSlide") {
            let notes = package.read(&notes.part)?.map(|xml| text_of(&xml)).transpose()?.unwrap_or_default();
            text = format!("{text}\n{notes}");
        }
        let text = text.trim();
        if !text.is_empty() {
            document.text.push_str(text);
            document.text.push_str("\n\n");
        }
    }
    document.text.truncate(document.text.trim_end().len());
    Ok(document.into_record(FileKind::Pptx, item))
}

/// Returns the parts of the slides in their order.
fn slides(package: &mut Package) -> Result<Vec<String>, String> {
    let xml = package.require(MAIN_PART)?;
    let related = relationships(package, MAIN_PART)?;
    let mut slides = Vec::new();
    walk_xml(&xml, &mut |node| {
        if let Node::Start(tag) = node
            && tag.name == "sldId"
            && let Some(slide) = tag.exact_attribute("r:id").and_then(|id| related.get(&id))
        {
            slides.push(slide.part.clone());
        }
        Ok::<(), String>(())
    })?;
    Ok(slides)
}

/// Returns the text of a slide: a line for each paragraph, without the numbers of slides.
fn text_of(xml: &str) -> Result<String, String> {
    let (mut text, mut is_text, mut fields) = (String::new(), false, 0_usize);
    walk_xml(xml, &mut |node| {
        match node {
            Node::Start(tag) => match tag.name {
                "t" => is_text = fields == 0,
                "fld" => fields += 1,
                "br" => text.push('\n'),
                _ => {}
            },
            Node::Text(piece) if is_text => text.push_str(piece),
            Node::End("t") => is_text = false,
            Node::End("fld") => fields = fields.saturating_sub(1),
            Node::End("p" | "tr") if !text.ends_with('\n') && !text.is_empty() => text.push('\n'),
            Node::End(_) | Node::Text(_) => {}
        }
        Ok::<(), String>(())
    })?;
    Ok(text)
}
