//! A walk over the elements and texts of an XML document.
//!
//! Names are compared without their namespace prefix. The document type is ignored, so that an entity declared there
//! is unknown: it adds no text and opens no file.

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// Maximum nesting of elements.
const MAX_DEPTH: usize = 1_000;

/// An event of the walk. An empty element is a start and an end.
#[derive(Debug)]
pub(crate) enum Node<'a> {
    /// A start tag.
    Start(&'a Tag<'a>),
    /// An end tag with this local name.
    End(&'a str),
    /// A piece of text.
    Text(&'a str),
}

/// A start tag.
#[derive(Debug)]
pub(crate) struct Tag<'a> {
    start: &'a BytesStart<'a>,
    /// Name without its prefix.
    pub(crate) name: &'a str,
}

impl Tag<'_> {
    /// Returns the value of the first attribute with this local name.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.start.attributes();
        let found =
            attributes.with_checks(false).flatten().find(|attribute| local_name(attribute.key.0) == name)?;
        found.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
    }

    /// Returns the prefix of the name, or an empty text.
    pub(crate) fn prefix(&self) -> &str {
        let prefix = self.start.name().0.len().saturating_sub(self.name.len() + 1);
        self.start.name().0.get(..prefix).unwrap_or_default()
    }

    /// Returns the value of the attribute with this name, prefix included.
    pub(crate) fn exact_attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.start.attributes();
        let found = attributes.with_checks(false).flatten().find(|attribute| attribute.key.0 == name)?;
        found.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
    }
}

/// Calls `visit` for every tag and text.
///
/// # Errors
///
/// The document is not well-formed or nested too deep, or `visit` failed.
pub(crate) fn walk_xml<Error: From<String>>(
    xml: &str,
    visit: &mut dyn FnMut(Node<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().allow_dangling_amp = true;
    let mut depth = 0_usize;
    loop {
        let position = reader.buffer_position();
        let event = reader
            .read_event()
            .map_err(|error| Error::from(format!("its XML is broken at byte {position}: {error}")))?;
        match event {
            Event::Start(start) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(format!("its XML is nested more than {MAX_DEPTH} levels deep").into());
                }
                visit(Node::Start(&Tag { start: &start, name: local_name(start.name().0) }))?;
            }
            Event::Empty(start) => {
                let name = local_name(start.name().0);
                visit(Node::Start(&Tag { start: &start, name }))?;
                visit(Node::End(name))?;
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                visit(Node::End(local_name(end.name().0)))?;
            }
            Event::Text(text) => visit(Node::Text(&text.xml10_content()))?,
            Event::CData(text) => visit(Node::Text(&text.xml10_content()))?,
            Event::GeneralRef(reference) => {
                if let Some(character) = referenced_character(&reference) {
                    visit(Node::Text(character.encode_utf8(&mut [0; 4])))?;
                }
            }
            Event::Eof if depth > 0 => return Err("its XML ends within an element".to_owned().into()),
            Event::Eof => return Ok(()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

/// Returns the character that a reference stands for. One to an entity of the document stands for none.
pub(crate) fn referenced_character(reference: &BytesRef<'_>) -> Option<char> {
    match &*reference.xml10_content() {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some('\u{A0}'),
        _ => reference.resolve_char_ref().ok().flatten(),
    }
}

/// Returns a name without its namespace prefix.
fn local_name(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(xml: &str) -> Result<String, String> {
        let mut text = String::new();
        walk_xml(xml, &mut |node| {
            if let Node::Text(piece) = node {
                text.push_str(piece);
            }
            Ok::<(), String>(())
        })?;
        Ok(text)
    }

    #[test]
    fn entities_are_never_expanded() {
        let lines = "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\"><!ENTITY y \"yy\">]>";
        assert_eq!(text_of(&format!("{lines}<a>1&x;2&y;3&amp;&#52;</a>")).unwrap(), "123&4");
    }

    #[test]
    fn broken_documents_are_rejected() {
        for xml in ["<a>", "<a></b>", &"<a>".repeat(2_000), "<a", "<a><![CDATA[x</a>"] {
            assert!(text_of(xml).is_err(), "{}", xml.len());
        }
    }

    #[test]
    fn attributes_are_found_without_their_prefix() {
        let mut seen = Vec::new();
        walk_xml("<w:p r:id='1' w:val=\"a&amp;b\"/>", &mut |node| {
            if let Node::Start(tag) = node {
                seen.push((tag.name.to_owned(), tag.attribute("val"), tag.exact_attribute("r:id")));
            }
            Ok::<(), String>(())
        })
        .unwrap();
        assert_eq!(seen, [("p".to_owned(), Some("a&b".to_owned()), Some("1".to_owned()))]);
    }
}
