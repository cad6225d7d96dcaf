//! HTML with an upper limit for its size: what would exceed it is left out, with a note.
//!
//! Elements that are open when the limit is reached are closed, so the rest of the page is not inside of them.

use std::fmt::Write;

use fetchwell_core::fit::first_bytes;
use maud::Escaper;

/// Note at the end of HTML that was cut.
const CUT: &str =
    "<p class=\"note\">The rest is left out here. The plain text of the record has all of it.</p>";

/// Maximum depth of elements. Deeper elements are written without their tags.
const MAX_DEPTH: usize = 24;

/// HTML that is written piece by piece.
#[derive(Debug)]
pub(super) struct BoundedMarkup {
    written: String,
    limit: usize,
    /// Names of open elements; an empty name for one without tags.
    open: Vec<&'static str>,
    is_cut: bool,
}

impl BoundedMarkup {
    /// Creates empty HTML of at most `limit` bytes, apart from closing tags and a note.
    pub(super) fn new(limit: usize) -> Self {
        Self { written: String::new(), limit, open: Vec::new(), is_cut: false }
    }

    /// Returns the number of bytes that are written.
    pub(super) fn len(&self) -> usize {
        self.written.len()
    }

    /// Returns true if nothing more is written.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Writes HTML of a template. It has no text of a record, and no tag that stays open.
    pub(super) fn raw(&mut self, html: &str) {
        if !self.is_full() {
            self.written.push_str(html);
        }
    }

    /// Writes a text, escaped. A text that does not fit is cut between graphemes.
    pub(super) fn text(&mut self, text: &str) {
        if self.is_full() {
            return;
        }
        let fitting = first_bytes(text, self.limit.saturating_sub(self.written.len()));
        // Writing to a string does not fail.
        let _ = Escaper::new(&mut self.written).write_str(fitting);
        self.is_cut |= fitting.len() < text.len();
    }

    /// Opens an element, with attributes that are already written as HTML.
    pub(super) fn open(&mut self, name: &'static str, attributes: &str) {
        if self.is_full() || self.open.len() >= MAX_DEPTH {
            self.open.push("");
            return;
        }
        self.open.push(name);
        self.written.push('<');
        self.written.push_str(name);
        self.written.push_str(attributes);
        self.written.push('>');
    }

    /// Opens a link. It leaves the site without a referrer.
    pub(super) fn open_link(&mut self, url: &str) {
        let mut attributes = String::from(" rel=\"noopener noreferrer nofollow\" href=\"");
        let _ = Escaper::new(&mut attributes).write_str(url);
        attributes.push('"');
        self.open("a", &attributes);
    }

    /// Closes the element that was opened last.
    pub(super) fn close(&mut self) {
        let name = self.open.pop().unwrap_or_default();
        if !name.is_empty() {
            self.written.push_str("</");
            self.written.push_str(name);
            self.written.push('>');
        }
    }

    /// Returns the HTML with all elements closed.
    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        if self.is_cut {
            self.written.push_str(CUT);
        }
        self.written
    }

    fn is_full(&mut self) -> bool {
        self.is_cut |= self.written.len() >= self.limit;
        self.is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_elements_are_closed() {
        let mut out = BoundedMarkup::new(140);
        out.open("p", "");
        out.open_link("https://example.com/?a=\"&b");
        out.text("<b>");
        assert!(!out.is_cut());
        out.text(&"x".repeat(100));
        out.text("never");
        let html = out.finish();
        assert!(
            html.starts_with(
                "<p><a rel=\"noopener noreferrer nofollow\" href=\"https://example.com/?a=&quot;&amp;b\">"
            ),
            "{html}"
        );
        assert!(html.ends_with(&format!("</a></p>{CUT}")) && !html.contains("never"), "{html}");
    }

    #[test]
    fn deep_elements_have_no_tags() {
        let mut out = BoundedMarkup::new(10_000);
        for _ in 0..1_000 {
            out.open("ul", "");
        }
        out.text("x");
        let html = out.finish();
        assert_eq!((html.matches("<ul>").count(), html.matches("</ul>").count()), (MAX_DEPTH, MAX_DEPTH));
    }
}
