//! A line for a terminal: pieces of escaped text, each with a style.

use std::fmt;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::escape::escape_line;

/// Escaped text with styles.
#[derive(Debug, Clone, Default)]
pub struct Line(Vec<(Style, String)>);

impl Line {
    /// Appends text without a style.
    pub fn text(self, text: impl fmt::Display) -> Self {
        self.styled(Style::new(), text)
    }

    /// Appends text in a style.
    pub fn styled(mut self, style: Style, text: impl fmt::Display) -> Self {
        self.0.push((style, escape_line(&text.to_string()).into()));
        self
    }

    /// Appends another line.
    pub fn joined(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Sets one style for the whole line.
    pub fn in_style(mut self, style: Style) -> Self {
        self.0.iter_mut().for_each(|(own, _)| *own = style);
        self
    }

    /// Returns the width of the line on a terminal in columns.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    /// Returns true if the line is a number, with or without thousands separators.
    pub fn is_number(&self) -> bool {
        let mut bytes = self.0.iter().flat_map(|(_, text)| text.bytes()).peekable();
        bytes.peek().is_some() && bytes.all(|b| b.is_ascii_digit() || b == b',')
    }

    /// Removes trailing white space.
    pub fn trimmed(mut self) -> Self {
        while let Some((_, last)) = self.0.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::default().text(text)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(style, text)| write!(f, "{style}{text}{style:#}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_styles_reach_the_terminal() {
        let bold = Style::new().bold();
        let line = Line::default().styled(bold, "a\u{1b}[5mb").text("  c\nd  ").text("  ");
        assert_eq!(line.width(), 21);
        assert_eq!(line.clone().trimmed().to_string(), "\u{1b}[1ma\\u{1b}[5mb\u{1b}[0m  c\\nd");
        assert_eq!(Line::from("1,234".to_owned()).in_style(bold).to_string(), "\u{1b}[1m1,234\u{1b}[0m");
        for (text, expect) in [("1,234", true), ("", false), ("1.5", false)] {
            assert_eq!(Line::from(text.to_owned()).is_number(), expect, "{text}");
        }
    }
}
