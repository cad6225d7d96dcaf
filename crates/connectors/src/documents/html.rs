//! The reader of web pages that were saved.

use fetchwell_core::record::html_to_text;
use html5gum::{DefaultEmitter, Token, Tokenizer};

use super::super::item::{FileKind, FileRecord, Item};
use super::super::skips::Problem;
use super::document::Document;

/// Maximum length of a title in bytes.
const MAX_TITLE_BYTES: usize = 1_000;

/// Reads a web page: its visible text, and the title, author and time of its head.
pub(crate) fn read_html(item: &mut Item<'_>) -> Result<FileRecord, Problem> {
    let html = item.read_markup()?;
    Ok(html_document(&html).into_record(FileKind::Html, item))
}

/// Reads the head and the text of a page.
pub(super) fn html_document(html: &str) -> Document {
    let mut document = Document { text: html_to_text(html), ..Document::default() };
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let (mut title, mut is_title) = (Vec::new(), false);
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let attribute = |name: &str| {
                    let value = tag.attributes.get(name.as_bytes());
                    value.map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
                };
                match tag.name.as_slice() {
                    b"title" => is_title = title.is_empty(),
                    b"html" => document.language = attribute("lang"),
                    b"link" if attribute("rel") == "canonical" => document.url = attribute("href"),
                    b"meta" => {
                        let name = [attribute("name"), attribute("property")].concat();
                        document.set_meta(&name.to_ascii_lowercase(), attribute("content"));
                    }
                    b"body" => break,
                    _ => {}
                }
            }
            Token::EndTag(tag) if tag.name.as_slice() == b"title" => is_title = false,
            Token::String(text) if is_title && title.len() < MAX_TITLE_BYTES => {
                title.extend_from_slice(&text);
            }
            _ => {}
        }
    }
    document.title = String::from_utf8_lossy(&title).into_owned();
    document
}

impl Document {
    /// Sets a field from a `meta` element of a page.
    fn set_meta(&mut self, name: &str, content: String) {
        match name {
            "author" | "article:author" | "dc.creator" => self.authors = vec![content],
            "description" => self.subject = content,
            "keywords" => {
                let words = content.split(',').map(|word| word.trim().to_owned());
                self.keywords = words.filter(|word| !word.is_empty()).collect();
            }
            "date" | "dc.date" | "article:published_time" | "dcterms.created" => self.created = content,
            "last-modified" | "article:modified_time" => self.modified = content,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_has_title_author_and_time() {
        let document = html_document(
            "<!doctype html><html lang=de><head><title>A &amp;\n B</title><meta name=author content='Ann'>\
             <meta property='article:published_time' content='2026-04-01T10:00:00Z'><style>p{}</style></head>\
             <body><title>no</title><p>one<p>two</body></html>",
        );
        assert_eq!(document.title, "A &\n B");
        assert_eq!((document.language.as_str(), document.authors), ("de", vec!["Ann".to_owned()]));
        assert_eq!(
            (document.created.as_str(), document.text.as_str()),
            ("2026-04-01T10:00:00Z", "one\n\ntwo")
        );
    }
}
