//! Reading lines with a maximum length.

use std::io::{self, BufRead};
use std::path::Path;

use super::ImportError;

/// Maximum length of a line in bytes. A longer one is assumed to be a mistake.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The line is in the buffer, without its line break.
    Whole,
    /// The line was longer than [`MAX_LINE_BYTES`] and was skipped.
    TooLong,
    /// The reader is at its end.
    End,
}

/// The lines of a file that are not blank.
pub(crate) struct Lines<'a, R> {
    reader: &'a mut R,
    /// Path for error messages.
    path: &'a Path,
    buffer: Vec<u8>,
    number: u64,
}

/// A line with its number from 1, or the reason why it cannot be read.
pub(crate) struct NumberedLine<'a> {
    pub(crate) number: u64,
    pub(crate) text: Result<&'a [u8], String>,
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub(crate) fn new(reader: &'a mut R, path: &'a Path) -> Self {
        Self { reader, path, buffer: Vec::new(), number: 0 }
    }

    /// Returns the next line, or none at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<NumberedLine<'_>>, ImportError> {
        loop {
            self.number += 1;
            let read = next_line(self.reader, &mut self.buffer).map_err(|problem| {
                ImportError::Unreadable { path: self.path.to_owned(), problem: problem.to_string() }
            })?;
            let text = match read {
                Line::End => return Ok(None),
                Line::TooLong => Err(format!("the line is longer than {MAX_LINE_BYTES} bytes")),
                Line::Whole if self.buffer.iter().all(u8::is_ascii_whitespace) => continue,
                Line::Whole => Ok(self.buffer.as_slice()),
            };
            return Ok(Some(NumberedLine { number: self.number, text }));
        }
    }
}

/// Reads the next line into `buffer`, which it clears first.
pub(crate) fn next_line(reader: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<Line> {
    buffer.clear();
    let mut too_long = false;
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(match (too_long, buffer.is_empty()) {
                (true, _) => Line::TooLong,
                (false, true) => Line::End,
                (false, false) => Line::Whole,
            });
        }
        let line_break = available.iter().position(|byte| *byte == b'\n');
        let piece = available.get(..line_break.unwrap_or(available.len())).unwrap_or_default();
        if buffer.len() + piece.len() > MAX_LINE_BYTES {
            too_long = true;
            buffer.clear();
        } else if !too_long {
            buffer.extend_from_slice(piece);
        }
        let taken = piece.len() + usize::from(line_break.is_some());
        reader.consume(taken);
        if line_break.is_some() {
            if buffer.last() == Some(&b'\r') {
                buffer.pop();
            }
            return Ok(if too_long { Line::TooLong } else { Line::Whole });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn lines_end_at_line_breaks_and_at_the_end() {
        let mut reader = Cursor::new(b"one\r\n\ntwo");
        let mut buffer = Vec::new();
        for expect in [&b"one"[..], b"", b"two"] {
            assert_eq!(next_line(&mut reader, &mut buffer).unwrap(), Line::Whole);
            assert_eq!(buffer, expect);
        }
        assert_eq!(next_line(&mut reader, &mut buffer).unwrap(), Line::End);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let mut file = vec![b'x'; MAX_LINE_BYTES + 1];
        file.extend_from_slice(b"\nnext");
        let mut reader = Cursor::new(file);
        let mut buffer = Vec::new();
        assert_eq!(next_line(&mut reader, &mut buffer).unwrap(), Line::TooLong);
        assert_eq!(next_line(&mut reader, &mut buffer).unwrap(), Line::Whole);
        assert_eq!(buffer, b"next");
    }
}
