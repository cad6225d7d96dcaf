//! The reader of EPUB books.

use std::collections::{HashMap, HashSet};

use fetchwell_core::record::html_text::html_to_text;

use super::super::documents::Document;
use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::package::{Package, resolve};
use super::properties::read_properties;
use super::xml::{Node, walk_xml};

/// Reads a book: the text of its chapters in the order of reading.
pub(crate) fn read_epub(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let mut package = Package::open(item.read_all()?)?;
    let encryption = package.read("META-INF/encryption.xml")?.unwrap_or_default();
    let encrypted: HashSet<&str> = encryption.split(['"', '\'']).collect();
    let main = main_part(&package.require("META-INF/container.xml")?)?;
    let xml = package.require(&main)?;
    let mut document = Document::default();
    read_properties(&xml, &mut document)?;
    // `dc:date` of a book is the day of its publication.
    document.created = std::mem::take(&mut document.modified);
    let chapters = chapters(&xml, &main)?;
    document.count = Some(("chapters", chapters.len()));
    for chapter in chapters {
        // Fonts are often encrypted, chapters only if the book is protected.
        if encrypted.contains(chapter.as_str()) {
            return Err(Problem::encrypted("it is encrypted (a book with copy protection)"));
        }
        let Some(html) = package.read(&percent_decoded(&chapter))? else { continue };
        let text = html_to_text(&html);
        if !text.is_empty() {
            document.text.push_str(&text);
            document.text.push_str("\n\n");
        }
    }
    document.text.truncate(document.text.trim_end().len());
    Ok(document.into_record(FileKind::Epub, item))
}

/// Returns the name of the part that lists the others.
fn main_part(container: &str) -> Result<String, String> {
    let (mut found, mut is_found) = (None, false);
    walk_xml(container, &mut |node| {
        if let Node::Start(tag) = node
            && tag.name == "rootfile"
            && let Some(path) = tag.attribute("full-path")
        {
            // Other forms of the book have other types.
            let is_book =
                tag.attribute("media-type").is_some_and(|kind| kind == "application/oebps-package+xml");
            if found.is_none() || is_book && !is_found {
                found = Some(path);
            }
            is_found |= is_book;
        }
        Ok::<(), String>(())
    })?;
    found.ok_or_else(|| "its container names no content".to_owned())
}

/// Returns the names of the chapters in the order of reading.
fn chapters(xml: &str, main: &str) -> Result<Vec<String>, String> {
    let (mut manifest, mut spine) = (HashMap::new(), Vec::new());
    walk_xml(xml, &mut |node| {
        if let Node::Start(tag) = node {
            match (tag.name, tag.attribute("id"), tag.attribute("href"), tag.attribute("idref")) {
                ("item", Some(id), Some(href), _) => drop(manifest.insert(id, resolve(main, &href))),
                ("itemref", _, _, Some(id)) => spine.push(id),
                _ => {}
            }
        }
        Ok::<(), String>(())
    })?;
    Ok(spine.into_iter().filter_map(|id| manifest.get(&id).cloned()).collect())
}

/// Decodes the name of a part in a link.
fn percent_decoded(name: &str) -> String {
    percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned()
}
