//! The text of an HTML e-mail.
//!
//! `html5gum` splits the markup into tokens like a browser. `html_to_text` writes the visible text: block elements
//! are separate lines, cells of a table are separated by tabs, items of a list start with a hyphen, and the target of
//! a link follows its text. Scripts, styles, comments and elements that are not displayed are skipped.
//!
//! **Invariant:** time and memory are linear in the length of the HTML: at most `MAX_OPEN_ELEMENTS` are tracked,
//! and a tag is compared with at most `MAX_ELEMENTS_SEARCHED` of them.

use html5gum::emitters::default::StartTag;
use html5gum::{DefaultEmitter, Token, Tokenizer};

/// Maximum number of open elements that are tracked. Elements nested deeper are only counted.
const MAX_OPEN_ELEMENTS: usize = 1_000;

/// Maximum number of open elements that are compared with an end tag, innermost first.
const MAX_ELEMENTS_SEARCHED: usize = 64;

/// Elements without content.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];

/// Elements with content that is not displayed.
const NOT_DISPLAYED: [&str; 11] = [
    "datalist", "iframe", "noembed", "noframes", "noscript", "object", "script", "style", "template",
    "textarea", "title",
];

/// Elements on a line of their own.
const BLOCKS: [&str; 34] = [
    "address",
    "article",
    "aside",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "html",
    "legend",
    "li",
    "main",
    "menu",
    "nav",
    "optgroup",
    "option",
    "section",
    "summary",
    "table",
    "tbody",
    "tfoot",
    "thead",
    "tr",
    "xmp",
];

/// Blocks that are preceded and followed by an empty line.
const PARAGRAPHS: [&str; 13] =
    ["blockquote", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ol", "p", "pre", "ul"];

/// Elements that limit the effect of end tags: one inside of them closes nothing outside.
const BARRIERS: [&str; 4] = ["caption", "table", "td", "th"];

/// Returns the visible text of an HTML document.
pub fn html_to_text(html: &str) -> String {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut page = Page::default();
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => page.start(&tag),
            Token::EndTag(tag) => page.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => page.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    page.end_link();
    page.written
}

/// The text written so far, and the open elements.
#[derive(Debug, Default)]
struct Page {
    written: String,
    gap: Gap,
    open: Vec<Element>,
    /// Number of open elements beyond [`MAX_OPEN_ELEMENTS`].
    untracked: usize,
    link: Option<Link>,
}

/// The separator before the next text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Gap {
    #[default]
    None,
    Space,
    Tab,
    Line,
    Paragraph,
}

/// An open element, with the properties that it inherits.
#[derive(Debug)]
struct Element {
    name: String,
    is_displayed: bool,
    is_preformatted: bool,
}

#[derive(Debug)]
struct Link {
    target: String,
    /// Length of the written text before the link.
    start: usize,
}

impl Page {
    fn start(&mut self, tag: &StartTag<()>) {
        let name = String::from_utf8_lossy(&tag.name);
        self.close_implied(&name);
        self.separate(&name);
        let is_displayed = self.is_displayed() && !NOT_DISPLAYED.contains(&&*name) && !is_hidden(tag);
        if is_displayed {
            match &*name {
                "br" => self.line_break(),
                "li" => self.write("- "),
                "img" => self.text(&attribute(tag, "alt").unwrap_or_default()),
                "a" => self.start_link(tag),
                _ => {}
            }
        }
        if VOID.contains(&&*name) {
            return;
        }
        if self.open.len() < MAX_OPEN_ELEMENTS {
            let is_preformatted = self.is_preformatted() || matches!(&*name, "pre" | "xmp");
            self.open.push(Element { name: name.into_owned(), is_displayed, is_preformatted });
        } else {
            self.untracked += 1;
        }
    }

    fn end(&mut self, name: &str) {
        if name == "a" {
            self.end_link();
        }
        self.separate(name);
        if self.untracked > 0 {
            self.untracked -= 1;
        } else {
            let barriers: &[&str] = if BARRIERS.contains(&name) { &["table"] } else { &BARRIERS };
            self.close(&[name], barriers);
        }
    }

    /// Closes the elements that a start tag closes implicitly.
    fn close_implied(&mut self, name: &str) {
        match name {
            "li" => self.close(&["li"], &["ul", "ol", "menu", "dir", "table"]),
            "dt" | "dd" => self.close(&["dt", "dd"], &["dl", "table"]),
            "td" | "th" => self.close(&["td", "th"], &["table", "tr"]),
            "tr" => self.close(&["tr"], &["table"]),
            "tbody" | "thead" | "tfoot" => self.close(&["tbody", "thead", "tfoot"], &["table"]),
            "option" => self.close(&["option"], &["select", "table"]),
            block if BLOCKS.contains(&block) || PARAGRAPHS.contains(&block) => self.close(&["p"], &BARRIERS),
            _ => {}
        }
    }

    /// Closes the innermost open element with one of the names, and all elements in it, unless a barrier is in
    /// between.
    fn close(&mut self, names: &[&str], barriers: &[&str]) {
        let nearest = self.open.iter().enumerate().rev().take(MAX_ELEMENTS_SEARCHED);
        let found = nearest
            .map(|(at, element)| (at, element.name.as_str()))
            .find(|(_, name)| names.contains(name) || barriers.contains(name));
        if let Some((at, name)) = found
            && names.contains(&name)
        {
            self.open.truncate(at);
        }
    }

    fn is_displayed(&self) -> bool {
        self.open.last().is_none_or(|element| element.is_displayed)
    }

    fn is_preformatted(&self) -> bool {
        self.open.last().is_some_and(|element| element.is_preformatted)
    }

    /// Adds the separator before or after an element.
    fn separate(&mut self, name: &str) {
        let gap = match name {
            "td" | "th" => Gap::Tab,
            name if PARAGRAPHS.contains(&name) => Gap::Paragraph,
            name if BLOCKS.contains(&name) => Gap::Line,
            _ => return,
        };
        self.gap = self.gap.max(gap);
    }

    fn line_break(&mut self) {
        // Two line breaks in a row are an empty line.
        self.gap = if self.gap >= Gap::Line { Gap::Paragraph } else { Gap::Line };
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() || !self.is_displayed() {
            return;
        }
        if self.is_preformatted() {
            for line in text.split_inclusive('\n') {
                self.write(line.trim_end_matches(['\r', '\n']));
                if line.ends_with('\n') {
                    self.line_break();
                }
            }
            return;
        }
        if text.starts_with(is_space) {
            self.gap = self.gap.max(Gap::Space);
        }
        for word in text.split(is_space).filter(|word| !word.is_empty()) {
            self.write(word);
            self.gap = Gap::Space;
        }
        if !text.ends_with(is_space) && self.gap == Gap::Space {
            self.gap = Gap::None;
        }
    }

    /// Writes the separator and a piece of text. Skips characters that only mark possible line breaks.
    fn write(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if !self.written.is_empty() {
            let ends_line = self.written.ends_with('\n');
            self.written.push_str(match self.gap {
                Gap::None => "",
                Gap::Space if ends_line || self.written.ends_with("- ") => "",
                Gap::Space => " ",
                Gap::Tab if ends_line => "",
                Gap::Tab => "\t",
                Gap::Line => "\n",
                Gap::Paragraph => "\n\n",
            });
        }
        self.gap = Gap::None;
        self.written.extend(piece.chars().filter(|character| !is_break_hint(*character)));
    }

    fn start_link(&mut self, tag: &StartTag<()>) {
        self.end_link();
        let target = attribute(tag, "href").unwrap_or_default();
        let target = target.trim();
        let scheme = target.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        if matches!(scheme.as_deref(), Some("http" | "https" | "mailto" | "tel" | "ftp")) {
            self.link = Some(Link { target: target.to_owned(), start: self.written.len() });
        }
    }

    /// Writes the target of the open link, unless its text is the same.
    fn end_link(&mut self) {
        let Some(Link { target, start }) = self.link.take() else { return };
        let text = self.written.get(start..).unwrap_or_default();
        let shown = target.strip_prefix("mailto:").or_else(|| target.strip_prefix("tel:")).unwrap_or(&target);
        if !self.is_displayed() || bare(text).eq_ignore_ascii_case(bare(shown)) {
            return;
        }
        let target = format!("({shown})");
        let gap = std::mem::replace(&mut self.gap, Gap::None);
        self.gap = if text.trim().is_empty() { gap } else { Gap::Space };
        self.write(&target);
        self.gap = gap;
    }
}

/// Returns a URL without its scheme and final slash.
fn bare(address: &str) -> &str {
    let address = address.trim();
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    address.strip_suffix('/').unwrap_or(address)
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '\x0C' | '\u{A0}' | '\u{2007}' | '\u{202F}')
}

/// Returns true for an invisible character: a soft hyphen, a zero-width space, a grapheme joiner, a byte order mark.
fn is_break_hint(character: char) -> bool {
    matches!(character, '\u{AD}' | '\u{34F}' | '\u{200B}' | '\u{FEFF}')
}

fn attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    let value = tag.attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Returns true if the attributes of a tag hide its element. A font size of 0 does not count, because inner elements
/// often have another.
fn is_hidden(tag: &StartTag<()>) -> bool {
    let style = attribute(tag, "style").unwrap_or_default().to_ascii_lowercase();
    let declared = |name: &str| {
        let declarations = style.split(';').filter_map(|declaration| declaration.split_once(':'));
        let mut values = declarations
            .filter(|(declared, _)| declared.trim() == name)
            .map(|(_, value)| value.trim().trim_end_matches("!important").trim_end());
        values.next_back()
    };
    let is_zero = |name: &str| {
        declared(name).is_some_and(|value| {
            value
                .trim_end_matches(|character: char| character.is_ascii_alphabetic() || character == '%')
                .parse()
                == Ok(0.0_f64)
        })
    };
    tag.attributes.contains_key(b"hidden".as_slice())
        || declared("display") == Some("none")
        || matches!(declared("visibility"), Some("hidden" | "collapse"))
        || is_zero("opacity")
        || declared("overflow") == Some("hidden") && (is_zero("max-height") || is_zero("height"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(html: &str, expect: &str) {
        assert_eq!(html_to_text(html), expect, "{html}");
    }

    #[test]
    fn blocks_are_lines_and_cells_are_separated() {
        check("<div>one</div><div>two</div>three", "one\ntwo\nthree");
        check("<p>one</p><p>two", "one\n\ntwo");
        check("one<br>two<br/><br>three", "one\ntwo\n\nthree");
        check("<h1>Title</h1>text<hr>more", "Title\n\ntext\n\nmore");
        check("<ul><li>a<li>b</ul>c", "- a\n- b\n\nc");
        check("<table><tr><th>Item<th>Price<tr><td>Tea</td><td>4</td></tr></table>", "Item\tPrice\nTea\t4");
        check("a <b>bold</b>, an<i>other</i>\n word", "a bold, another word");
        check("<pre>a\n  b\n\nc</pre>d", "a\n  b\n\nc\n\nd");
    }

    #[test]
    fn entities_and_invisible_characters_are_decoded() {
        check("caf&eacute; &amp; t&#xe9;&nbsp;1 &lt;b&gt; &hellip;", "café & té 1 <b> …");
        check("Donau&shy;dampf&#8203;schiff", "Donaudampfschiff");
        check("a &bogus; b & c", "a &bogus; b & c");
    }

    #[test]
    fn link_targets_follow_the_text_once() {
        check(
            "<a href='https://x.test/a?b=1&amp;c=2'>the <b>page</b></a>.",
            "the page (https://x.test/a?b=1&c=2).",
        );
        check(
            "<a href='https://x.test/'>x.test</a>, <a href='https://x.test'>https://x.test</a>",
            "x.test, https://x.test",
        );
        check(
            "<a href='mailto:a@x.test'>Ann</a> <a href='mailto:b@x.test'>b@x.test</a>",
            "Ann (a@x.test) b@x.test",
        );
        check(
            "<a href='https://x.test/1'><img src=x></a> <a href='https://x.test/2'><img alt='Logo'></a>",
            "(https://x.test/1) Logo (https://x.test/2)",
        );
        check("<a href='javascript:x()'>run</a> <a name=top>top</a> <a href='#top'>up</a>", "run top up");
        check(
            "<a href='https://x.test/1'>one<a href='https://x.test/2'>two",
            "one (https://x.test/1)two (https://x.test/2)",
        );
    }

    #[test]
    fn hidden_content_is_skipped() {
        for hidden in [
            "<style>p { color: red }</style>",
            "<script>if (a < b) { document.write('<p>x') }</script>",
            "<title>x</title>",
            "<!-- x --><!--[if mso]><p>x</p><![endif]-->",
            "<template><p>x</p></template>",
            "<div hidden>x<div>y</div>z</div>",
            "<span style='color:red; DISPLAY : none !important'>x</span>",
            "<div style='max-height:0px;overflow:hidden'>x</div>",
            "<p style='visibility:hidden'>x",
            "<div style='opacity:0.0'>x</div>",
            "<div><span style='display:none'>x</div>",
            "<table><tr><td hidden>x<td></table>",
            "<a href='https://x.test' style='display:none'>x</a>",
        ] {
            let text = html_to_text(&format!("before{hidden}<div>after</div>"));
            assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["before", "after"], "{hidden}");
        }
        check("<td style='font-size:0'><p style='font-size:16px'>x</p></td>", "x");
        check("<div style='opacity:0.5;max-height:0.5em;display:block'>x</div>", "x");
        check("</div></p></span>x</a></table>", "x");
    }

    #[test]
    fn hostile_html_takes_linear_time() {
        for shape in ["<b>", "</b>", "<div hidden>", "<td><p>", "<a href=https://x.test>", "<pre>\n", "<li>"]
        {
            let html = format!("{}end", shape.repeat(30_000));
            let _ = html_to_text(&html);
        }
    }
}
