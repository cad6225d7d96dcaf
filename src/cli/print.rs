//! Output of commands. `terminal` escapes it.
//!
//! A value is part of one line, so line ends in it are escaped like control characters. Only texts of several lines
//! (the body of a record, lines of a configuration) keep theirs.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use fetchwell_core::terminal::{self, Line, escape_json, escape_line, escape_lines};
use serde::Serialize;

/// Output format of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Printer {
    /// True to print JSON instead of text.
    pub(super) json: bool,
}

/// Style of headings and ids.
pub(super) const STRONG: Style = Style::new().bold();

/// Style of secondary information.
pub(super) const FAINT: Style = Style::new().dimmed();

/// Style of a passed check.
pub(super) const GOOD: Style = AnsiColor::Green.on_default();

/// Style of a warning.
pub(super) const UNSURE: Style = AnsiColor::Yellow.on_default();

/// Style of a failure.
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();

impl Printer {
    /// Prints one line of text.
    pub(super) fn line(self, text: impl Display) {
        terminal::out(&escape_line(&text.to_string()));
    }

    /// Prints a styled line.
    #[expect(clippy::needless_pass_by_value, reason = "a line is made to be printed")]
    pub(super) fn styled(self, line: Line) {
        terminal::out(&line);
    }

    /// Prints text of several lines.
    pub(super) fn lines(self, text: impl Display) {
        terminal::out(&escape_lines(&text.to_string()));
    }

    /// Prints a value as JSON.
    pub(super) fn value(self, value: &impl Serialize) {
        self.json_text(&serde_json::to_string(value).unwrap_or_default());
    }

    /// Prints JSON text as it is.
    pub(super) fn json_text(self, json: &str) {
        terminal::out(&escape_json(json));
    }

    /// Prints rows as a table with aligned columns. The first row is the heading.
    pub(super) fn table<Cell: Clone + Into<Line>>(self, rows: &[Vec<Cell>]) {
        let rows: Vec<Vec<Line>> =
            rows.iter().map(|row| row.iter().cloned().map(Into::into).collect()).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(Line::width).max();
        let widths: Vec<usize> = (0..columns).filter_map(width).collect();
        for (number, row) in rows.into_iter().enumerate() {
            let mut line = Line::default();
            for (column, (cell, width)) in row.into_iter().zip(&widths).enumerate() {
                let padding = Line::from(" ".repeat(width.saturating_sub(cell.width())));
                let gap = if column == 0 { "" } else { "  " };
                // Numbers are right-aligned.
                line = if cell.is_number() {
                    line.text(gap).joined(padding).joined(cell)
                } else {
                    line.text(gap).joined(cell).joined(padding)
                };
            }
            let line = line.trimmed();
            self.styled(if number == 0 { line.in_style(FAINT) } else { line });
        }
    }
}

/// Prints a problem to standard error.
pub(super) fn problem(message: &impl Display) {
    let message = message.to_string();
    let message = escape_lines(&message);
    let mut lines = message.lines();
    let first = Line::default().styled(BAD, "error:").text(" ").text(lines.next().unwrap_or_default());
    terminal::err(&first);
    lines.for_each(|line| terminal::err(&escape_lines(line)));
}

/// Formats a number with thousands separators.
pub(super) fn grouped(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number with its noun, in the plural unless it is one.
pub(super) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, expect) in [(0_u32, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expect);
        }
    }
}
