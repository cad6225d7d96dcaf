//! Markdown as HTML, without anything that runs or is loaded.
//!
//! HTML inside of Markdown is shown as text. Images are not loaded: their text is shown, as a link if the image is on the web.
//! Headings are a level lower, below those of the page.

use fetchwell_core::record::WebLink;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::markup::BoundedMarkup;

/// Renders Markdown as HTML.
pub(super) fn render_markdown(text: &str, out: &mut BoundedMarkup) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer { out, in_head: false };
    writer.out.open("div", " class=\"markdown\"");
    for event in Parser::new_ext(text, options) {
        if writer.out.is_cut() {
            break;
        }
        writer.event(event);
    }
    // Open elements are closed when the page is complete; the parser closes all that it opens.
    if !writer.out.is_cut() {
        writer.out.close();
    }
}

struct Writer<'a> {
    out: &'a mut BoundedMarkup,
    /// True inside of the head of a table.
    in_head: bool,
}

impl Writer<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.out.text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.out.open("code", "");
                self.out.text(&text);
                self.out.close();
            }
            Event::FootnoteReference(text) => self.out.text(&text),
            Event::SoftBreak => self.out.raw("\n"),
            Event::HardBreak => self.out.raw("<br>"),
            Event::Rule => self.out.raw("<hr>"),
            Event::TaskListMarker(is_done) => self.out.raw(if is_done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.out.open("p", ""),
            Tag::Heading { level, .. } => self.out.open(heading(level), ""),
            Tag::BlockQuote(_) => self.out.open("blockquote", ""),
            Tag::CodeBlock(CodeBlockKind::Indented | CodeBlockKind::Fenced(_)) => {
                self.out.open("pre", " class=\"box\" tabindex=\"0\"");
                self.out.open("code", "");
            }
            Tag::List(None) => self.out.open("ul", ""),
            Tag::List(Some(first)) => self.out.open("ol", &format!(" start=\"{first}\"")),
            Tag::Item => self.out.open("li", ""),
            Tag::Table(_) => {
                self.out.open("div", " class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"");
                self.out.open("table", "");
            }
            Tag::TableHead => {
                self.in_head = true;
                self.out.open("thead", "");
                self.out.open("tr", "");
            }
            Tag::TableRow => self.out.open("tr", ""),
            Tag::TableCell => {
                let (name, attributes) = if self.in_head { ("th", " scope=\"col\"") } else { ("td", "") };
                self.out.open(name, attributes);
            }
            Tag::Emphasis => self.out.open("em", ""),
            Tag::Strong => self.out.open("strong", ""),
            Tag::Strikethrough => self.out.open("del", ""),
            Tag::Link { dest_url, .. } => self.open_target(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.open_target(&dest_url);
                self.out.raw("Image: ");
            }
            Tag::HtmlBlock => self.out.open("pre", " class=\"plain\""),
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.out.open("div", ""),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::CodeBlock | TagEnd::Table => self.out.close(),
            TagEnd::TableHead => {
                self.in_head = false;
                self.out.close();
            }
            _ => {}
        }
        self.out.close();
    }

    /// Opens a link to the web, or an element without a target for any other address.
    fn open_target(&mut self, url: &str) {
        match url.parse::<WebLink>() {
            Ok(link) => self.out.open_link(link.as_str()),
            Err(_no_link) => self.out.open("span", ""),
        }
    }
}

fn heading(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 => "h2",
        HeadingLevel::H2 => "h3",
        HeadingLevel::H3 => "h4",
        HeadingLevel::H4 => "h5",
        HeadingLevel::H5 | HeadingLevel::H6 => "h6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let mut out = BoundedMarkup::new(10_000);
        render_markdown(text, &mut out);
        let html = out.finish().replace(" rel=\"noopener noreferrer nofollow\"", "");
        let html = html.strip_prefix("<div class=\"markdown\">").and_then(|html| html.strip_suffix("</div>"));
        assert_eq!(html, Some(expect));
    }

    #[test]
    fn markdown_becomes_html() {
        check("# A\n\nb *c* **d** `e`", "<h2>A</h2><p>b <em>c</em> <strong>d</strong> <code>e</code></p>");
        check("3. x\n4. y", "<ol start=\"3\"><li>x</li><li>y</li></ol>");
        check("[a](https://a.example)", "<p><a href=\"https://a.example\">a</a></p>");
        check(
            "|a|b|\n|-|-|\n|1|2|",
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table><thead><tr><th scope=\"col\">a</th>\
             <th scope=\"col\">b</th></tr></thead><tr><td>1</td><td>2</td></tr></table></div>",
        );
        check("- [x] done\n- [ ] open", "<ul><li>☑ done</li><li>☐ open</li></ul>");
    }

    #[test]
    fn nothing_runs_and_nothing_is_loaded() {
        check("[a](javascript:alert(1))", "<p><span>a</span></p>");
        check("[a](data:text/html,x)", "<p><span>a</span></p>");
        check("<javascript:alert(1)>", "<p><span>javascript:alert(1)</span></p>");
        check("[a](/records/-/sign-out)", "<p><span>a</span></p>");
        check("![alt](https://a.example/x.png)", "<p><a href=\"https://a.example/x.png\">Image: alt</a></p>");
        check("![alt](x.png)", "<p><span>Image: alt</span></p>");
        check("a <b onclick=x>b</b>", "<p>a &lt;b onclick=x&gt;b&lt;/b&gt;</p>");
        check(
            "<script>\nalert(1)\n</script>",
            "<pre class=\"plain\">&lt;script&gt;\nalert(1)\n&lt;/script&gt;</pre>",
        );
        check("```\"><script>\nx\n```", "<pre class=\"box\" tabindex=\"0\"><code>x\n</code></pre>");
    }
}
