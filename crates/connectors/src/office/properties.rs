//! Title, author and times of a document, and the relationships between parts.

use std::collections::HashMap;

use super::super::documents::Document;
use super::super::skips::Problem;
use super::package::{Package, resolve};
use super::xml::{Node, walk_xml};

/// Sets the fields that a part with properties has: `docProps/core.xml`, `meta.xml` or the metadata of a book.
pub(super) fn read_properties(xml: &str, document: &mut Document) -> Result<(), String> {
    let mut text = String::new();
    walk_xml(xml, &mut |node| {
        match node {
            Node::Start(_) => text.clear(),
            Node::Text(piece) => text.push_str(piece),
            Node::End(name) => {
                set_property(document, name, text.trim());
                text.clear();
            }
        }
        Ok(())
    })
}

/// Maximum number of authors, which are compared with each other.
const MAX_AUTHORS: usize = 100;

fn set_property(document: &mut Document, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    let text = value.to_owned();
    match name {
        "title" if document.title.is_empty() => document.title = text,
        "creator" | "initial-creator"
            if document.authors.len() < MAX_AUTHORS && !document.authors.contains(&text) =>
        {
            document.authors.push(text);
        }
        "subject" | "description" if document.subject.is_empty() => document.subject = text,
        "keywords" => {
            let words = value.split([',', ';']).map(|word| word.trim().to_owned());
            document.keywords.extend(words.filter(|word| !word.is_empty()));
        }
        "keyword" => document.keywords.push(text),
        "language" if document.language.is_empty() => document.language = text,
        "created" | "creation-date" => document.created = text,
        "modified" | "date" if document.modified.is_empty() => document.modified = text,
        _ => {}
    }
}

/// The target of a relationship of a part.
#[derive(Debug)]
pub(super) struct Relationship {
    /// Name of the part.
    pub(super) part: String,
    /// Last segment of the type, such as `notesSlide`.
    pub(super) kind: String,
}

/// Returns the relationships of a part by their ids.
pub(super) fn relationships(
    package: &mut Package,
    part: &str,
) -> Result<HashMap<String, Relationship>, Problem> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let Some(xml) = package.read(&format!("{folder}/_rels/{name}.rels"))? else { return Ok(HashMap::new()) };
    let mut found = HashMap::new();
    walk_xml(&xml, &mut |node| {
        if let Node::Start(tag) = node
            && let (Some(id), Some(target)) = (tag.attribute("Id"), tag.attribute("Target"))
            && tag.attribute("TargetMode").is_none_or(|mode| mode != "External")
        {
            let kind = tag.attribute("Type").unwrap_or_default();
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            found.insert(id, Relationship { part: resolve(part, &target), kind });
        }
        Ok::<(), String>(())
    })?;
    Ok(found)
}
