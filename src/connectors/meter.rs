//! Where a parser that reads ahead is in its file, and how much one record may make it read.
//!
//! Parsers of tables and JSON buffer a record until it ends, which with a quote or bracket missing is the end
//! of the file. What they read goes through here, and stops when one record is too long.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;

use super::lines::MAX_LINE_BYTES;

/// What was read, shared by the reader and whoever knows where records start.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    /// Bytes read from the file.
    read: u64,
    /// Where the record that is being read starts, or a little before; nothing is refused while `None`.
    record: Option<u64>,
    /// The line breaks that were read and are not counted yet: where, and whether they end a line.
    breaks: VecDeque<(u64, bool)>,
    /// Lines that ended before those.
    lines: u64,
}

/// A reader that a [`Meter`] watches.
pub(super) struct Metered<R> {
    reader: R,
    meter: Meter,
}

impl Meter {
    /// A reader that tells this meter what it reads.
    pub(super) fn watch<R: Read>(&self, reader: R) -> Metered<R> {
        Metered { reader, meter: self.clone() }
    }

    /// A record starts where the reader is; the parser may have read a buffer ahead.
    pub(super) fn record_starts(&self) {
        let mut state = self.0.borrow_mut();
        state.record = Some(state.read);
        state.breaks.clear();
    }

    /// From here on a record may be of any length.
    pub(super) fn any_length(&self) {
        self.0.borrow_mut().record = None;
    }

    /// The line of the record that starts at `byte`, from 1, or after line breaks there. Line breaks before it
    /// are forgotten, so records are asked for in their order.
    pub(super) fn line_of_record(&self, byte: u64) -> u64 {
        let mut state = self.0.borrow_mut();
        state.record = Some(byte);
        let mut start = byte;
        while let Some((at, ends_line)) = state.breaks.front().copied().filter(|(at, _)| *at <= start) {
            start += u64::from(at == start);
            state.lines += u64::from(ends_line);
            state.breaks.pop_front();
        }
        state.lines + 1
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.meter.0.borrow_mut();
        if state.record.is_some_and(|start| state.read.saturating_sub(start) > MAX_LINE_BYTES as u64) {
            let problem =
                format!("one record is longer than {MAX_LINE_BYTES} bytes; is a quote or bracket missing?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let count = self.reader.read(buffer)?;
        let start = state.read;
        if state.record.is_some() {
            let bytes = buffer.iter().take(count).zip(start..);
            let breaks = bytes.filter(|(byte, _)| matches!(byte, b'\n' | b'\r'));
            state.breaks.extend(breaks.map(|(byte, at)| (at, *byte == b'\n')));
        }
        state.read += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_counted_after_the_whole_line_break_before_it() {
        for (text, starts, expect) in [
            ("a\nb\nc", [0, 2, 4], [1, 2, 3]),
            // A parser that ends a record at `\r` starts the next at `\n`.
            ("a\r\nb\r\nc", [0, 2, 5], [1, 2, 3]),
            ("a\n\n\nb\nc", [0, 2, 6], [1, 4, 5]),
            ("a\r\n\r\nb\r\nc", [0, 2, 7], [1, 3, 4]),
            ("\"x\ny\"\n1\n2", [0, 6, 8], [1, 3, 4]),
        ] {
            let meter = Meter::default();
            meter.record_starts();
            io::copy(&mut meter.watch(text.as_bytes()), &mut io::sink()).unwrap();
            assert_eq!(starts.map(|start| meter.line_of_record(start)), expect, "{text:?}");
        }
    }

    #[test]
    fn a_record_without_end_is_not_read_to_the_end() {
        let meter = Meter::default();
        meter.record_starts();
        let mut endless = meter.watch(io::repeat(b'x'));
        let refused = io::copy(&mut endless, &mut io::sink()).unwrap_err();
        assert!(refused.to_string().contains("is a quote or bracket missing?"), "{refused}");
        meter.any_length();
        assert_eq!(endless.read(&mut [0; 10]).unwrap(), 10);
    }
}
