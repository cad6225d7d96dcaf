//! The one place that writes to standard output, apart from the protocol.
//!
//! Colours appear on a terminal only. Text of records is stripped of control characters first: a terminal
//! obeys them, and what a record says is data.

use std::fmt::Display;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

/// What commands print with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Printer {
    /// Print JSON instead of text.
    pub(super) json: bool,
}

/// For what a reader looks for first.
pub(super) const STRONG: Style = Style::new().bold();

/// For what stands beside.
pub(super) const FAINT: Style = Style::new().dimmed();

/// For what is well.
pub(super) const GOOD: Style = AnsiColor::Green.on_default();

/// For what works and could be better.
pub(super) const UNSURE: Style = AnsiColor::Yellow.on_default();

/// For what is not.
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();

impl Printer {
    /// A line of text.
    pub(super) fn line(self, text: impl Display) {
        // A reader that closed the pipe has seen enough.
        let _ = writeln!(anstream::stdout(), "{text}");
    }

    /// A value as JSON.
    pub(super) fn value(self, value: &impl Serialize) {
        self.line(serde_json::to_string(value).unwrap_or_default());
    }

    /// Rows in columns that line up. The first row is the heading.
    pub(super) fn table(self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        let widths: Vec<usize> = (0..columns).filter_map(width).collect();
        for (number, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, width)| {
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                // Numbers line up at their ends.
                if cell.bytes().all(|b| b.is_ascii_digit() || b == b',') && !cell.is_empty() {
                    format!("{padding}{cell}")
                } else {
                    format!("{cell}{padding}")
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            let line = line.trim_end();
            match number {
                0 => self.line(format_args!("{FAINT}{line}{FAINT:#}")),
                _ => self.line(line),
            }
        }
    }
}

/// A problem, on standard error.
pub(super) fn problem(message: &impl Display) {
    let _ = writeln!(anstream::stderr(), "{BAD}error:{BAD:#} {message}");
}

/// Something to know, on standard error.
pub(super) fn note(message: &impl Display) {
    let _ = writeln!(anstream::stderr(), "{message}");
}

/// Text of a record without what a terminal would obey.
pub(super) fn safe(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// A number with its thousands apart.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, expect) in [(0_u32, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expect);
        }
    }

    #[test]
    fn a_record_cannot_command_the_terminal() {
        assert_eq!(safe("a\u{1b}[31mred\u{7}\r\nb\tc"), "a[31mred\nb\tc");
    }
}
