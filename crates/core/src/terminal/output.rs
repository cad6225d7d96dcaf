//! Standard output and standard error. Styles are removed if a stream is not a terminal.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::OnceLock;

use super::escape::{EscapedText, escape_json, escape_line, escape_lines};
use super::line::Line;

/// Text that is safe to write, because it is escaped.
pub trait Safe: Display {}

impl Safe for Line {}
impl Safe for EscapedText<'_> {}

/// First error of standard output, other than a pipe that its reader closed.
static PROBLEM: OnceLock<String> = OnceLock::new();

/// Writes a line to standard output. An error is kept for [`output_problem`].
pub fn out(text: &impl Safe) {
    keep_problem(writeln!(anstream::stdout(), "{text}"));
}

/// Writes what is buffered for standard output. An error is kept for [`output_problem`].
pub fn flush_output() {
    keep_problem(io::stdout().flush());
}

/// Returns the first error of standard output, such as a full disk. A pipe that its reader closed is none: the reader has
/// read enough.
pub fn output_problem() -> Option<&'static str> {
    PROBLEM.get().map(String::as_str)
}

fn keep_problem(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        PROBLEM.get_or_init(|| error.to_string());
    }
}

/// Writes a line to standard error.
pub fn err(text: &impl Safe) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Writes a note of one line to standard error.
pub fn note(message: &impl Display) {
    err(&escape_line(&message.to_string()));
}

/// Writes help, or the error of a command line. The caller has escaped the arguments before parsing.
pub fn help(message: &clap::Error) {
    let text = message.render();
    if message.use_stderr() {
        let _ = write!(anstream::stderr(), "{}", text.ansi());
    } else {
        keep_problem(write!(anstream::stdout(), "{}", text.ansi()));
    }
}

/// Returns standard output for the data of an export: byte for byte, but escaped if it is a terminal.
pub fn data_output() -> Box<dyn Write> {
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
pub fn err_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns the stream for log lines with escaped fields.
pub fn text_log() -> impl Write {
    io::stderr()
}

/// Returns the stream for log lines in JSON, which it escapes.
pub fn json_log() -> impl Write {
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
