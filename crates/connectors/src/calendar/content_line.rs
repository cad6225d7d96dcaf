//! The lines of iCalendar and vCard files: `NAME;PARAMETER=VALUE:VALUE`, where a line that begins with a space continues
//! the one before.

use encoding_rs::{Encoding, UTF_8};
use fetchwell_core::fit::first_bytes;

/// Maximum number of bytes of a line in which the name of its encoding is looked for.
const MAX_PARAMETERS: usize = 1_000;

/// A line with its name and parameters in upper case.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ContentLine {
    pub(super) name: String,
    parameters: Vec<(String, String)>,
    /// Value as written, with escaped characters.
    pub(super) raw: String,
}

impl ContentLine {
    fn parse(line: &str) -> Option<Self> {
        let mut is_quoted = false;
        let colon = line.char_indices().find(|(_, character)| {
            is_quoted ^= *character == '"';
            *character == ':' && !is_quoted
        });
        let (head, raw) = line.split_at_checked(colon?.0)?;
        let mut pieces = split_unquoted(head, ';');
        // A group precedes the name: `item1.EMAIL`.
        let name = pieces.next()?.rsplit('.').next()?.trim().to_ascii_uppercase();
        let parameters = pieces.map(|piece| match piece.split_once('=') {
            Some((name, value)) => (name.trim().to_ascii_uppercase(), value.trim_matches('"').to_owned()),
            // `EMAIL;HOME` of vCard 2.1.
            None => ("TYPE".to_owned(), piece.to_owned()),
        });
        let parameters = parameters.collect();
        Some(Self { name, parameters, raw: raw.get(1..).unwrap_or_default().to_owned() })
    }

    /// Returns the value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn is_quoted_printable(&self) -> bool {
        self.parameters.iter().any(|(_, value)| value.eq_ignore_ascii_case("QUOTED-PRINTABLE"))
    }

    /// Returns the value as text.
    pub(super) fn text(&self) -> String {
        self.decode(&self.raw)
    }

    fn decode(&self, text: &str) -> String {
        if self.is_quoted_printable() {
            let named = self.parameter("CHARSET").and_then(|name| Encoding::for_label(name.as_bytes()));
            return decode_quoted_printable(text, named.unwrap_or(UTF_8));
        }
        unescape(text)
    }

    /// Returns the pieces of a value between separators that are not escaped, as text.
    pub(super) fn pieces(&self, separator: char) -> Vec<String> {
        let mut is_escaped = false;
        let pieces = self.raw.split(|character| {
            let splits = character == separator && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
            splits
        });
        pieces.map(|piece| self.decode(piece).trim().to_owned()).filter(|piece| !piece.is_empty()).collect()
    }
}

/// Splits a text at separators outside of quotes.
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |character| {
        is_quoted ^= character == '"';
        character == separator && !is_quoted
    })
}

fn unescape(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n' | 'N') => written.push('\n'),
                Some(other) => written.push(other),
                None => {}
            },
            other => written.push(other),
        }
    }
    written
}

fn decode_quoted_printable(text: &str, encoding: &'static Encoding) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).filter(|_| *first == b'=').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    encoding.decode_without_bom_handling(&bytes).0.replace("\r\n", "\n")
}

/// Returns true if the parameters of a line name this encoding.
fn is_quoted_printable(line: &str) -> bool {
    let start = first_bytes(line, MAX_PARAMETERS);
    let (parameters, _value) = start.split_once(':').unwrap_or((start, ""));
    parameters.to_ascii_uppercase().contains("QUOTED-PRINTABLE")
}

/// Iterates over the lines of a text. Lines that are no content lines are skipped.
pub(super) fn content_lines(text: &str) -> impl Iterator<Item = ContentLine> + '_ {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        loop {
            let mut line = lines.next()?.to_owned();
            loop {
                // In vCard 2.1, a line in this encoding that ends with `=` continues with all of the next one.
                let next = if line.ends_with('=') && is_quoted_printable(&line) {
                    line.pop();
                    lines.next()
                } else {
                    let folded = lines.next_if(|next| next.starts_with([' ', '\t']));
                    folded.and_then(|next| next.get(1..))
                };
                let Some(next) = next else { break };
                line.push_str(next);
            }
            if let Some(line) = ContentLine::parse(&line) {
                return Some(line);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> ContentLine {
        content_lines(text).next().unwrap()
    }

    #[test]
    fn lines_are_unfolded_and_unescaped() {
        let folded = line("DESCRIPTION;LANGUAGE=en:One\\, tw\r\n o\\nthree\\\\\r\n");
        assert_eq!((folded.name.as_str(), folded.text().as_str()), ("DESCRIPTION", "One, two\nthree\\"));
        assert_eq!(line("item1.EMAIL;TYPE=\"a;b:c\":x@y").parameter("TYPE"), Some("a;b:c"));
        assert_eq!(line("ORG:A\\;B;C;").pieces(';'), ["A;B", "C"]);
        let printable = line("NOTE;ENCODING=QUOTED-PRINTABLE:Ren=C3=A9 and=\r\n more=0D=0Aend");
        assert_eq!(printable.text(), "René and more\nend");
        let name = line("N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Gar=C3=A7on;Ren=C3=A9;;;");
        assert_eq!(name.pieces(';'), ["Garçon", "René"]);
        let latin = line("FN;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:Ren=E9");
        assert_eq!(latin.text(), "René");
        assert_eq!(content_lines("no line\n\n:x\nA:b").count(), 2);
    }
}
