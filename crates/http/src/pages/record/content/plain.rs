//! Plain text with links and quoted lines, and code.

use fetchwell_core::record::WebLink;

use super::markup::BoundedMarkup;

/// Punctuation at the end of a link that belongs to the sentence.
const AFTER_LINK: [char; 10] = ['.', ',', ';', ':', '!', '?', ')', ']', '\'', '"'];

/// Renders plain text: line breaks stay, links can be followed, and lines that begin with `>` look like quotes.
pub(super) fn render_plain(text: &str, out: &mut BoundedMarkup) {
    // Browsers drop the first line break in `pre`.
    out.open("pre", " class=\"plain\"");
    out.raw("\n");
    for line in text.split_inclusive('\n') {
        let is_quote = line.trim_start().starts_with('>');
        if is_quote {
            out.open("span", " class=\"soft\"");
        }
        render_line(line, out);
        if is_quote {
            out.close();
        }
        if out.is_cut() {
            break;
        }
    }
    out.close();
}

/// Renders code: the text as it is, in a monospaced font.
pub(super) fn render_code(text: &str, out: &mut BoundedMarkup) {
    out.open("pre", " class=\"box\" tabindex=\"0\"");
    out.raw("\n");
    out.open("code", "");
    out.text(text);
    out.close();
    out.close();
}

fn render_line(line: &str, out: &mut BoundedMarkup) {
    let mut rest = line;
    while let Some(start) = next_link(rest) {
        let (before, from) = rest.split_at_checked(start).unwrap_or((rest, ""));
        let end =
            from.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"')).unwrap_or(from.len());
        let candidate = from.get(..end).unwrap_or_default().trim_end_matches(AFTER_LINK);
        out.text(before);
        match candidate.parse::<WebLink>() {
            Ok(link) => {
                out.open_link(link.as_str());
                out.text(candidate);
                out.close();
            }
            Err(_no_link) => out.text(candidate),
        }
        let next = from.get(candidate.len()..).unwrap_or_default();
        if candidate.is_empty() {
            // A candidate begins with its scheme, so it is never empty.
            break;
        }
        rest = next;
    }
    out.text(rest);
}

/// Returns the start of the first text that looks like a link.
fn next_link(text: &str) -> Option<usize> {
    ["http://", "https://"].into_iter().filter_map(|scheme| text.find(scheme)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let mut out = BoundedMarkup::new(10_000);
        render_plain(text, &mut out);
        let html = out.finish();
        let inner = html.strip_prefix("<pre class=\"plain\">\n").and_then(|html| html.strip_suffix("</pre>"));
        let inner = inner.unwrap_or_else(|| panic!("{html}"));
        assert_eq!(inner.replace(" rel=\"noopener noreferrer nofollow\"", ""), expect);
    }

    #[test]
    fn only_web_links_are_links() {
        check(
            "see https://a.example/x?y=1&z=2.\n",
            "see <a href=\"https://a.example/x?y=1&amp;z=2\">https://a.example/x?y=1&amp;z=2</a>.\n",
        );
        check("(http://a.example)", "(<a href=\"http://a.example\">http://a.example</a>)");
        check("javascript:alert(1) data:text/html,x", "javascript:alert(1) data:text/html,x");
        check("https://user:pass@a.example", "https://user:pass@a.example");
        check("https:// and http://", "https:// and http://");
        check(
            "<a href=\"https://a.example\">",
            "&lt;a href=&quot;<a href=\"https://a.example\">https://a.example</a>&quot;&gt;",
        );
        check("> quoted\nnot", "<span class=\"soft\">&gt; quoted\n</span>not");
        check("\n\nempty lines stay", "\n\nempty lines stay");
    }
}
