//! The position of a parser that reads ahead, and a limit for the size of one record.
//!
//! Parsers of tables and JSON buffer a record until it ends. If a quote or bracket is missing, that is the end of the
//! file. They read through a `MeteredReader` reader, which fails when one record is too long.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;

use super::lines::MAX_LINE_BYTES;

/// The position of a reader, shared with the importer, which knows where records start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    /// Number of bytes read from the file.
    read: u64,
    /// Start of the current record, or a position shortly before. There is no limit while it is `None`.
    record: Option<u64>,
    /// True if the lines of records are asked for. Line breaks that are never asked for would fill memory.
    counts_lines: bool,
    /// Line breaks that were read but not counted yet.
    breaks: VecDeque<Breaks>,
    /// Number of line ends before those.
    lines: u64,
}

/// Line breaks that follow each other without other bytes between them.
#[derive(Debug)]
struct Breaks {
    start: u64,
    /// Number of bytes.
    length: u32,
    /// Number of those that end a line: `\n`.
    lines: u32,
}

impl State {
    fn add_break(&mut self, at: u64, byte: u8) {
        let is_end = u32::from(byte == b'\n');
        if let Some(last) = self.breaks.back_mut()
            && last.start + u64::from(last.length) == at
            && last.length < u32::MAX
        {
            last.length += 1;
            last.lines += is_end;
            return;
        }
        self.breaks.push_back(Breaks { start: at, length: 1, lines: is_end });
    }
}

/// A reader that updates a [`Meter`].
pub(crate) struct MeteredReader<R> {
    reader: R,
    meter: Meter,
}

impl Meter {
    /// Creates a meter that counts the lines before records.
    pub(crate) fn counting_lines() -> Self {
        Self(Rc::new(RefCell::new(State { counts_lines: true, ..State::default() })))
    }

    /// Wraps a reader so that it updates this meter.
    pub(crate) fn watch<R: Read>(&self, reader: R) -> MeteredReader<R> {
        MeteredReader { reader, meter: self.clone() }
    }

    /// Sets the start of the current record to the position of the reader. The parser may have read a buffer ahead.
    pub(crate) fn record_starts(&self) {
        let mut state = self.0.borrow_mut();
        state.record = Some(state.read);
        state.breaks.clear();
    }

    /// Removes the limit for the current record.
    pub(crate) fn any_length(&self) {
        self.0.borrow_mut().record = None;
    }

    /// Returns the line number, from 1, of the record that starts at `byte` or after line breaks there. Earlier line
    /// breaks are dropped, so records must be looked up in order. The meter must be one that counts lines.
    pub(crate) fn line_of_record(&self, byte: u64) -> u64 {
        let mut state = self.0.borrow_mut();
        state.record = Some(byte);
        let mut start = byte;
        while let Some(breaks) = state.breaks.pop_front_if(|breaks| breaks.start <= start) {
            start = start.max(breaks.start + u64::from(breaks.length));
            state.lines += u64::from(breaks.lines);
        }
        state.lines + 1
    }
}

impl<R: Read> Read for MeteredReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.meter.0.borrow_mut();
        if state.record.is_some_and(|start| state.read.saturating_sub(start) > MAX_LINE_BYTES as u64) {
            let problem =
                format!("one record is longer than {MAX_LINE_BYTES} bytes; is a quote or bracket missing?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let count = self.reader.read(buffer)?;
        let start = state.read;
        if state.record.is_some() && state.counts_lines {
            for (byte, at) in buffer.iter().take(count).zip(start..) {
                if matches!(byte, b'\n' | b'\r') {
                    state.add_break(at, *byte);
                }
            }
        }
        state.read += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_starts_after_the_whole_line_break_before_it() {
        for (text, starts, expect) in [
            ("a\nb\nc", [0, 2, 4], [1, 2, 3]),
            // A parser that ends a record at `\r` starts the next at `\n`.
            ("a\r\nb\r\nc", [0, 2, 5], [1, 2, 3]),
            ("a\n\n\nb\nc", [0, 2, 6], [1, 4, 5]),
            ("a\r\n\r\nb\r\nc", [0, 2, 7], [1, 3, 4]),
            ("\"x\ny\"\n1\n2", [0, 6, 8], [1, 3, 4]),
        ] {
            let meter = Meter::counting_lines();
            meter.record_starts();
            io::copy(&mut meter.watch(text.as_bytes()), &mut io::sink()).unwrap();
            assert_eq!(starts.map(|start| meter.line_of_record(start)), expect, "{text:?}");
        }
    }

    #[test]
    fn line_breaks_take_bounded_memory() {
        for (meter, expect) in [(Meter::default(), 0), (Meter::counting_lines(), 1)] {
            meter.record_starts();
            io::copy(&mut meter.watch("\n".repeat(100_000).as_bytes()), &mut io::sink()).unwrap();
            assert_eq!(meter.0.borrow().breaks.len(), expect);
        }
    }

    #[test]
    fn a_record_without_end_is_not_read_to_the_end_of_the_file() {
        let meter = Meter::default();
        meter.record_starts();
        let mut endless = meter.watch(io::repeat(b'x'));
        let refused = io::copy(&mut endless, &mut io::sink()).unwrap_err();
        assert!(refused.to_string().contains("is a quote or bracket missing?"), "{refused}");
        meter.any_length();
        assert_eq!(endless.read(&mut [0; 10]).unwrap(), 10);
    }
}
