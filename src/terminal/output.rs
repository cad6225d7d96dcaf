//! Standard output and standard error. Styles are removed if a stream is not a terminal.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

use super::escape::{Escaped, escape_json, escape_line, escape_lines};
use super::line::Line;

/// Text that is safe to write, because it is escaped.
pub(crate) trait Safe: Display {}

impl Safe for Line {}
impl Safe for Escaped<'_> {}

/// Writes a line to standard output.
pub(crate) fn out(text: &impl Safe) {
    // An error means that the reader closed the pipe, so it is ignored.
    let _ = writeln!(anstream::stdout(), "{text}");
}

/// Writes a line to standard error.
pub(crate) fn err(text: &impl Safe) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Writes a note of one line to standard error.
pub(crate) fn note(message: &impl Display) {
    err(&escape_line(&message.to_string()));
}

/// Writes help, or the error of a command line. The caller has escaped the arguments before parsing.
pub(crate) fn help(message: &clap::Error) {
    let text = message.render();
    let _ = if message.use_stderr() {
        write!(anstream::stderr(), "{}", text.ansi())
    } else {
        write!(anstream::stdout(), "{}", text.ansi())
    };
}

/// Returns standard output for the data of an export: byte for byte, but escaped if it is a terminal.
pub(crate) fn data_output() -> Box<dyn Write> {
    if io::stdout().is_terminal() { Box::new(DataOnTerminal) } else { Box::new(BufWriter::new(io::stdout())) }
}

struct DataOnTerminal;

impl Write for DataOnTerminal {
    /// Writes whole lines, in which form an export passes them.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        io::stdout().write_all(escape_lines(&String::from_utf8_lossy(lines)).as_bytes())?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Returns true if standard error is a terminal.
pub(crate) fn err_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns the stream for log lines with escaped fields.
pub(crate) fn text_log() -> impl Write {
    io::stderr()
}

/// Returns the stream for log lines in JSON, which it escapes.
pub(crate) fn json_log() -> impl Write {
    JsonLog
}

struct JsonLog;

impl Write for JsonLog {
    /// Writes whole lines, in which form the logger passes them.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(escape_json(&String::from_utf8_lossy(lines)).as_bytes())?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
