//! A record rendered for people: facts, then its texts as mail, Markdown, code or plain text, then its other values.
//!
//! Long texts are divided into pages of [`PAGE_BYTES`] at natural boundaries. Everything on a page is bounded, also for records
//! with thousands of fields or values: a note says what was left out, and the plain text of the record has all of it.
//! **Invariant:** all text of a record is escaped, only absolute `http` and `https` links are links, and nothing is loaded.
//!
//! * `fields`: the fields of a record by the way in which they are shown
//! * `markup`: HTML with an upper limit for its size
//! * `plain`: plain text with links and quotes; code
//! * `markdown`: Markdown
//! * `values`: tables and trees of JSON values

mod fields;
mod markdown;
mod markup;
mod plain;
mod values;

use std::ops::Range;

use fetchwell_core::fit::ContentChunks;
use maud::{Markup, PreEscaped, html};
use serde_json::Value;

pub(super) use self::fields::{Fact, RecordFields};

use self::fields::{TextField, TextKind};
use self::markdown::render_markdown;
use self::markup::BoundedMarkup;
use self::plain::{render_code, render_plain};
use self::values::render_value;

/// Size of the texts on a page in bytes.
const PAGE_BYTES: usize = 48 * 1024;

/// Maximum size of the HTML of the texts, and of the values, of a page in bytes. A table of Markdown can have many times the
/// size of its text.
const MAX_MARKUP_BYTES: usize = 400 * 1024;

/// The texts of a record on one page, and its number.
#[derive(Debug)]
pub(super) struct TextPage<'a> {
    pieces: Vec<Piece<'a>>,
    /// Number of the page, from 1.
    pub(super) number: usize,
    /// Number of pages; at least 1.
    pub(super) total: usize,
}

/// A piece of a text on a page.
#[derive(Debug)]
struct Piece<'a> {
    field: &'a TextField,
    text: &'a str,
    is_start: bool,
}

impl<'a> TextPage<'a> {
    /// Divides texts into pages, and returns the page with a number, or the last one.
    pub(super) fn new(fields: &'a [TextField], number: usize) -> Self {
        let mut pages: Vec<Vec<Piece<'a>>> = vec![Vec::new()];
        let mut room = PAGE_BYTES;
        for field in fields {
            let (mut start, mut end) = (0, 0);
            let chunks = ContentChunks::new(&field.text, PAGE_BYTES);
            for chunk in (0..chunks.len()).filter_map(|index| chunks.get(index)) {
                if chunk.end - chunk.start > room {
                    push_piece(&mut pages, field, start..end);
                    pages.push(Vec::new());
                    (start, room) = (chunk.start, PAGE_BYTES);
                }
                end = chunk.end;
                room = room.saturating_sub(chunk.end - chunk.start);
            }
            push_piece(&mut pages, field, start..end);
        }
        let total = pages.len();
        let number = number.clamp(1, total);
        let pieces = pages.into_iter().nth(number - 1).unwrap_or_default();
        Self { pieces, number, total }
    }

    /// Renders the page. A text gets its name as a heading if the record has several.
    pub(super) fn render(&self, has_headings: bool) -> Markup {
        let mut left = MAX_MARKUP_BYTES;
        html! {
            @for piece in &self.pieces {
                section class="text" {
                    @if has_headings {
                        h2 { bdi lang="" { (piece.field.name) } @if !piece.is_start { span class="soft" { " (continued)" } } }
                    }
                    div dir="auto" lang="" { (piece.render(&mut left)) }
                }
            }
        }
    }
}

fn push_piece<'a>(pages: &mut [Vec<Piece<'a>>], field: &'a TextField, range: Range<usize>) {
    let is_start = range.start == 0;
    let text = field.text.get(range).unwrap_or_default();
    if let Some(page) = pages.last_mut().filter(|_| !text.is_empty()) {
        page.push(Piece { field, text, is_start });
    }
}

impl Piece<'_> {
    fn render(&self, left: &mut usize) -> Markup {
        let mut out = BoundedMarkup::new(*left);
        match self.field.kind {
            TextKind::Markdown => render_markdown(self.text, &mut out),
            TextKind::Code => render_code(self.text, &mut out),
            TextKind::Plain => render_plain(self.text, &mut out),
        }
        *left = left.saturating_sub(out.len());
        PreEscaped(out.finish())
    }
}

/// Renders the values of a record that are neither facts nor texts, each under its name.
pub(super) fn render_values(values: &[(String, Value)]) -> Markup {
    let mut out = BoundedMarkup::new(MAX_MARKUP_BYTES);
    for (name, value) in values {
        out.open("section", "");
        out.open("h2", "");
        out.open("bdi", " lang=\"\"");
        out.text(name);
        out.close();
        out.close();
        render_value(value, &mut out);
        out.close();
    }
    PreEscaped(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, kind: TextKind, text: String) -> TextField {
        TextField { name: name.to_owned(), kind, text }
    }

    #[test]
    fn pages_together_are_the_texts() {
        let long: String = (0..20_000).map(|line| format!("Line {line} of many.\n")).collect();
        let fields = [
            field("one", TextKind::Plain, "short".to_owned()),
            field("body", TextKind::Plain, long.clone()),
            field("empty", TextKind::Plain, String::new()),
            field("last", TextKind::Code, "end".to_owned()),
        ];
        let total = TextPage::new(&fields, 1).total;
        assert!(total > 5, "{total}");
        let (mut bodies, mut others) = (String::new(), Vec::new());
        for number in 1..=total {
            let page = TextPage::new(&fields, number);
            assert_eq!((page.number, page.total), (number, total));
            assert!(page.pieces.iter().map(|piece| piece.text.len()).sum::<usize>() <= PAGE_BYTES);
            for piece in &page.pieces {
                match piece.field.name.as_str() {
                    "body" => bodies.push_str(piece.text),
                    name => others.push((name.to_owned(), piece.text.to_owned())),
                }
            }
        }
        assert!(bodies == long, "the pages are not the text");
        assert_eq!(others, [("one".to_owned(), "short".to_owned()), ("last".to_owned(), "end".to_owned())]);
        assert_eq!(TextPage::new(&fields, 999).number, total);
        assert_eq!(TextPage::new(&[], 0).total, 1);
    }

    #[test]
    fn huge_tables_of_markdown_are_bounded() {
        let columns = "|a".repeat(1_000);
        let text = format!("{columns}|\n{}|\n{}", "|-".repeat(1_000), "|x\n".repeat(2_000));
        let page = [field("body", TextKind::Markdown, text)];
        let html = TextPage::new(&page, 1).render(false).into_string();
        assert!(html.len() < MAX_MARKUP_BYTES + 2_000, "{}", html.len());
        assert!(html.contains("The rest is left out"), "{}", html.len());
    }
}
