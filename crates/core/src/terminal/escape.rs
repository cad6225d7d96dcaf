//! Escapes for characters that a terminal acts on or that reorder the text around them.
//!
//! Escaped are the control characters (C0, DEL, C1), the bidirectional controls, the separators U+2028 and U+2029, which some
//! programs take for the end of a line, and invisible characters, which make two texts look the same. The zero-width joiner
//! and non-joiner stay: emoji and several scripts need them.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::ops::Deref;

/// Text without hazardous characters. Only the functions of this module make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscapedText<'a>(Cow<'a, str>);

impl Deref for EscapedText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<EscapedText<'_>> for String {
    fn from(text: EscapedText<'_>) -> Self {
        text.0.into_owned()
    }
}

/// Returns whether a character changes the direction or order of the text around it.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
}

fn is_hazardous(c: char) -> bool {
    c.is_control() || is_bidi_control(c) || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns whether a character has no width and no effect that a terminal could show: the zero-width space, the word joiner and
/// the operators beside it, the byte order mark, and the annotation characters.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Escapes a text that is a part of one line: `\n`, `\t`, `\r`, and `\u{1b}` for all others.
pub fn escape_line(text: &str) -> EscapedText<'_> {
    EscapedText(escaped(text, is_hazardous, |out, c| write!(out, "{}", c.escape_default())))
}

/// Escapes a text of several lines. Its line ends and tabs stay; `\r\n` becomes a line end.
pub fn escape_lines(text: &str) -> EscapedText<'_> {
    fn escape(text: &str) -> Cow<'_, str> {
        let is_escaped = |c| is_hazardous(c) && !matches!(c, '\n' | '\t');
        escaped(text, is_escaped, |out, c| write!(out, "{}", c.escape_default()))
    }
    if text.contains("\r\n") {
        return EscapedText(Cow::Owned(escape(&text.replace("\r\n", "\n")).into_owned()));
    }
    EscapedText(escape(text))
}

/// Escapes JSON text, which stays JSON with the same value: its C0 characters are spaces between values.
pub fn escape_json(json: &str) -> EscapedText<'_> {
    let is_escaped = |c| is_hazardous(c) && c >= '\u{7f}';
    EscapedText(escaped(json, is_escaped, |out, c| write!(out, "\\u{:04x}", u32::from(c))))
}

fn escaped(
    text: &str,
    is_escaped: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char) -> fmt::Result,
) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            // Writing to a string does not fail.
            let _ = escape(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A writer that escapes what is written, as [`escape_line`] does.
#[derive(Debug)]
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(&escape_line(text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hazardous_characters_are_escaped() {
        for (text, line, lines) in [
            ("plain, ü, \u{200d}👩‍💻", "plain, ü, \u{200d}👩‍💻", "plain, ü, \u{200d}👩‍💻"),
            ("a\u{1b}[31mb\u{7}", "a\\u{1b}[31mb\\u{7}", "a\\u{1b}[31mb\\u{7}"),
            ("a\u{9b}2J\u{7f}", "a\\u{9b}2J\\u{7f}", "a\\u{9b}2J\\u{7f}"),
            ("a\nb\tc\r\nd\re", "a\\nb\\tc\\r\\nd\\re", "a\nb\tc\nd\\re"),
            (
                "\u{202e}gpj.exe\u{2066}\u{200f}",
                "\\u{202e}gpj.exe\\u{2066}\\u{200f}",
                "\\u{202e}gpj.exe\\u{2066}\\u{200f}",
            ),
            (
                "a\u{200b}b\u{2060}c\u{feff}",
                "a\\u{200b}b\\u{2060}c\\u{feff}",
                "a\\u{200b}b\\u{2060}c\\u{feff}",
            ),
            ("a\u{2028}b", "a\\u{2028}b", "a\\u{2028}b"),
            (r"C:\new", r"C:\new", r"C:\new"),
        ] {
            assert_eq!((&*escape_line(text), &*escape_lines(text)), (line, lines), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn escaped_json_has_the_same_value(text in any::<String>(), hazard in "[\\x00-\\xff\u{202a}-\u{202e}\u{2028}\u{2029}]{0,9}") {
            let value = serde_json::json!({ format!("{text}{hazard}"): format!("{hazard}{text}") });
            let json = value.to_string();
            let escaped = escape_json(&json);
            prop_assert!(!escaped.contains(is_hazardous), "{escaped:?}");
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }

        #[test]
        fn escaping_twice_changes_nothing(text in any::<String>()) {
            let once = escape_line(&text);
            prop_assert!(!once.contains(is_hazardous));
            prop_assert_eq!(&escape_line(&once), &once);
        }
    }
}
