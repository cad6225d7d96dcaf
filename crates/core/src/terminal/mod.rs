//! Terminal output. No other module writes to standard output or standard error, apart from the MCP protocol.
//!
//! File names, keys, labels, errors of record servers and record text are data. A terminal interprets control
//! characters in them, and bidirectional controls change the order in which a reader sees them. Every text is
//! therefore escaped before it is written; only the styles of a `Line` are not.
//!
//! * `escape`: the escaping, without I/O
//! * `line`: a line of escaped text with styles
//! * `output`: standard output and standard error

mod escape;
mod line;
pub mod output;

pub use escape::{Escaping, escape_json, escape_line, escape_lines, is_bidi_control};
pub use line::Line;
pub use output::{
    data_output, err, err_is_terminal, flush_output, help, json_log, note, out, output_problem, text_log,
};
