//! Paragraphs of `format=flowed` (RFC 3676): a line that ends with a space continues on the next one.

use mail_parser::{MessagePart, MimeHeaders};

/// Line above a signature. It ends with a space and is a line of its own.
const SIGNATURE: &str = "-- ";

/// Returns the text of a part with each paragraph on one line, or `None` if its lines are not flowed. Quote marks and
/// the line above a signature stay.
pub(super) fn unfold_part(part: &MessagePart<'_>, text: &str) -> Option<String> {
    let content_type = part.content_type().filter(|found| found.subtype() == Some("plain"))?;
    let format = content_type.attribute("format")?;
    let deletes_space =
        content_type.attribute("delsp").is_some_and(|value| value.eq_ignore_ascii_case("yes"));
    format.eq_ignore_ascii_case("flowed").then(|| unfold(text, deletes_space))
}

/// Joins the lines of each paragraph. With `deletes_space`, the space at the end of a line is only a mark.
fn unfold(text: &str, deletes_space: bool) -> String {
    let mut written = String::with_capacity(text.len());
    // Quote depth of the paragraph that continues.
    let mut open = None;
    for (number, line) in text.lines().enumerate() {
        let Quoted { depth, content } = Quoted::parse(line);
        let is_signature = content == SIGNATURE;
        if open != Some(depth) || is_signature {
            if number > 0 {
                written.push('\n');
            }
            written.extend(std::iter::repeat_n('>', depth));
            if depth > 0 && !content.is_empty() {
                written.push(' ');
            }
        }
        let flowed = content.strip_suffix(' ').filter(|_| !is_signature);
        written.push_str(flowed.filter(|_| deletes_space).unwrap_or(content));
        open = flowed.map(|_| depth);
    }
    written
}

/// A line without its quote marks.
struct Quoted<'a> {
    depth: usize,
    content: &'a str,
}

impl<'a> Quoted<'a> {
    fn parse(line: &'a str) -> Self {
        let (mut depth, mut rest) = (0, line);
        // Some programs write `> > ` instead of `>> `.
        while let Some(inner) =
            rest.strip_prefix('>').or_else(|| rest.strip_prefix(" >").filter(|_| depth > 0))
        {
            (depth, rest) = (depth + 1, inner);
        }
        // Programs put a space before a line that begins with a space, `>` or `From `.
        Self { depth, content: rest.strip_prefix(' ').unwrap_or(rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_quotes_and_signatures_stay() {
        for (text, deletes_space, expect) in [
            ("One \ntwo \nthree\n\nfour\n", false, "One two three\n\nfour"),
            ("Donau \ndampf \nschiff\r\nend\r\n", true, "Donaudampfschiff\nend"),
            ("> a \n> b\n>> c \n>> d\ne", false, "> a b\n>> c d\ne"),
            // Another depth ends a paragraph.
            ("> a \nb", false, "> a \nb"),
            ("text \n-- \nAnn \nBerg", false, "text \n-- \nAnn Berg"),
            ("> -- \n> Ann", false, "> -- \n> Ann"),
            (" From here\n >no quote\n  two", false, "From here\n>no quote\n two"),
            ("> > old quote \n> > more", false, ">> old quote more"),
            ("\n\nafter empty lines", false, "\n\nafter empty lines"),
            (">\n> a", false, ">\n> a"),
            ("", false, ""),
        ] {
            assert_eq!(unfold(text, deletes_space), expect, "{text:?}");
        }
    }

    #[test]
    fn lines_of_any_shape_are_unfolded() {
        for shape in [">", " ", "> ", "\n", " \n", ">\n", "-- \n", "> \n>> \n", "é \n"] {
            let text = shape.repeat(200_000 / shape.len());
            assert!(unfold(&text, true).len() <= text.len() + 1, "{shape:?}");
        }
    }
}
