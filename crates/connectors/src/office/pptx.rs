//! The reader of PowerPoint presentations.

use std::collections::{BTreeSet, HashSet};

use super::super::documents::Document;
use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::alternatives::Alternatives;
use super::binary::{is_compound_file, read_ppt};
use super::package::Package;
use super::properties::{read_properties, relationships};
use super::xml::{Node, walk_xml};

const MAIN_PART: &str = "ppt/presentation.xml";

/// Maximum number of slides.
const MAX_SLIDES: usize = 10_000;

/// Placeholders with the same text on every slide.
const REPEATED: [&str; 4] = ["ftr", "hdr", "dt", "sldNum"];

/// Kinds of the parts whose text follows that of a slide.
const KINDS: [&str; 2] = ["diagramData", "notesSlide"];

/// Reads a presentation: the text of each slide with its diagrams and notes, in the order of the slides. Footers that
/// stand on several slides count once.
pub(crate) fn read_pptx(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let bytes = item.read_all()?;
    if is_compound_file(&bytes) {
        return read_ppt(item, bytes);
    }
    let mut package = Package::open(bytes)?;
    let mut document = Document::default();
    if let Some(xml) = package.read("docProps/core.xml")? {
        read_properties(&xml, &mut document)?;
    }
    let slides = slides(&mut package)?;
    document.count = Some(("slides", slides.len()));
    let mut footers = HashSet::new();
    for slide in slides.iter().take(MAX_SLIDES) {
        let mut text = text_of(&package.require(slide)?, &mut footers)?;
        let related = relationships(&mut package, slide)?;
        for kind in KINDS {
            let parts = related.values().filter(|related| related.kind == kind);
            for part in parts.map(|related| &related.part).collect::<BTreeSet<_>>() {
                if let Some(xml) = package.read(part)? {
                    text.push('\n');
                    text.push_str(&text_of(&xml, &mut footers)?);
                }
            }
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
fn slides(package: &mut Package) -> Result<Vec<String>, Problem> {
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

/// Returns the text of a slide: a line for each paragraph, without the numbers of slides and without known footers.
fn text_of(xml: &str, footers: &mut HashSet<String>) -> Result<String, String> {
    let (mut text, mut is_text, mut fields) = (String::new(), false, 0_usize);
    let (mut alternatives, mut shape, mut is_repeated) = (Alternatives::default(), 0, false);
    walk_xml(xml, &mut |node| {
        if alternatives.skip(&node, text.len()) {
            return Ok(());
        }
        match node {
            Node::Start(tag) => match tag.name {
                "sp" => (shape, is_repeated) = (text.len(), false),
                "ph" => {
                    is_repeated = tag.attribute("type").is_some_and(|kind| REPEATED.contains(&kind.as_str()));
                }
                "t" => is_text = fields == 0,
                "fld" => fields += 1,
                "br" => text.push('\n'),
                _ => {}
            },
            Node::Text(piece) if is_text => text.push_str(piece),
            Node::End("t") => is_text = false,
            Node::End("fld") => fields = fields.saturating_sub(1),
            Node::End("p" | "tr") if !text.ends_with('\n') && !text.is_empty() => text.push('\n'),
            Node::End("sp") if std::mem::take(&mut is_repeated) => {
                let footer = text.get(shape..).unwrap_or_default().trim().to_owned();
                if !footers.insert(footer) {
                    text.truncate(shape);
                }
            }
            Node::End(_) | Node::Text(_) => {}
        }
        Ok::<(), String>(())
    })?;
    Ok(text)
}
