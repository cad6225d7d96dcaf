//! The reader of Word documents.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::super::documents::Document;
use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::binary::{is_compound_file, read_doc};
use super::package::Package;
use super::properties::{Relationship, read_properties, relationships};
use super::word::word_text;

/// Name of the main part, if the document does not say another one.
const MAIN_PART: &str = "word/document.xml";

/// Kinds of the parts whose text follows that of the main part.
const KINDS: [&str; 6] = ["footnotes", "endnotes", "comments", "diagramData", "header", "footer"];

/// Reads a Word document: its text with tables and text boxes, then notes, comments, diagrams, headers and footers. Each
/// section can have the same header again, which counts once. A document of Word 97 is read, too.
pub(crate) fn read_docx(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let bytes = item.read_all()?;
    if is_compound_file(&bytes) {
        return read_doc(item, bytes);
    }
    let mut package = Package::open(bytes)?;
    let mut document = Document::default();
    if let Some(xml) = package.read("docProps/core.xml")? {
        read_properties(&xml, &mut document)?;
    }
    let main = main_part(&mut package)?;
    let main_text = word_text(&package.require(&main)?)?;
    if document.title.is_empty() {
        document.title = main_text.title;
    }
    document.text = main_text.text;
    let related = relationships(&mut package, &main)?;
    let mut known = HashSet::new();
    for kind in KINDS {
        for part in parts(kind, &main, &related) {
            let Some(xml) = package.read(&part)? else { continue };
            let text = word_text(&xml)?.text;
            if !text.is_empty() && known.insert(text.clone()) {
                document.text.push('\n');
                document.text.push_str(&text);
            }
        }
    }
    document.text = document.text.trim().to_owned();
    Ok(document.into_record(FileKind::Docx, item))
}

/// Returns the name of the main part.
fn main_part(package: &mut Package) -> Result<String, Problem> {
    let related = relationships(package, "")?;
    let found = related.into_values().find(|related| related.kind == "officeDocument");
    Ok(found.map_or_else(|| MAIN_PART.to_owned(), |related| related.part))
}

/// Returns the names of the parts of a kind. Documents without relationships have notes in the usual place.
fn parts(kind: &str, main: &str, related: &HashMap<String, Relationship>) -> BTreeSet<String> {
    let found = related.values().filter(|related| related.kind == kind);
    let mut parts: BTreeSet<String> = found.map(|related| related.part.clone()).collect();
    if parts.is_empty() {
        let folder = main.rsplit_once('/').map_or("", |(folder, _)| folder);
        parts.insert(format!("{folder}/{kind}.xml"));
    }
    parts
}
