//! Logging: one line per call, never the text of a query or a result.
//!
//! Logs go to standard error, because standard output belongs to the protocol. Libraries log at most warnings,
//! whatever the filter says: some log requests and their bodies at lower levels. rmcp logs nothing.

use std::fmt::{self, Write};
use std::str::FromStr;

use fetchwell_core::terminal::{self, Escaping};
use tracing::field::Field;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// The error for a log filter that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{filter}` is not a log filter; write a level (error, warn, info, debug) or a filter like fetchwell=debug"
)]
pub struct InvalidFilter {
    filter: String,
}

/// The format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One flat JSON object: `timestamp`, `level`, `target`, `message`, and the fields beside them.
    Json,
}

/// The error for an unknown format.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("write text or json")]
pub struct InvalidLogFormat;

impl FromStr for LogFormat {
    type Err = InvalidLogFormat;

    fn from_str(text: &str) -> Result<Self, InvalidLogFormat> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(InvalidLogFormat),
        }
    }
}

/// Starts logging with `filter`, in the syntax of `RUST_LOG`. The second call in a process has no effect.
///
/// # Errors
///
/// The filter cannot be parsed.
pub fn start_logging(filter: &str, format: LogFormat) -> Result<(), InvalidFilter> {
    let wanted = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .parse(filter)
        .map_err(|_unreadable| InvalidFilter { filter: filter.to_owned() })?;
    // The client of rmcp warns with parts of answers and with URLs.
    let ours_or_serious = filter_fn(|event: &Metadata<'_>| {
        let target = event.target();
        target.starts_with("fetchwell") || (*event.level() <= Level::WARN && !target.starts_with("rmcp"))
    });
    let lines = tracing_subscriber::fmt::layer();
    let lines = match format {
        LogFormat::Text => lines
            .with_ansi(terminal::err_is_terminal())
            .fmt_fields(debug_fn(write_field).delimited(" "))
            .with_writer(terminal::text_log)
            .boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_writer(terminal::json_log)
            .boxed(),
    };
    let lines = lines.with_filter(wanted.and(ours_or_serious));
    // Only a test that starts logging twice finds a logger already set.
    let _ = tracing_subscriber::registry().with(lines).try_init();
    std::panic::set_hook(Box::new(|panic| {
        // The message of a panic may quote the text that caused it. The location is enough to fix it.
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "internal error (panic)");
    }));
    Ok(())
}

/// Writes the message, or `name=value`, escaped: fields contain paths, names and texts of servers.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let mut writer = Escaping(writer);
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        name => write!(writer, "{name}={value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn fields_of_a_log_line_are_escaped() {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .without_time()
            .fmt_fields(debug_fn(write_field).delimited(" "))
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let path = "a\u{1b}[2J\u{9b}m\u{202e}\nERROR forged";
            tracing::warn!(%path, text = path, "cannot read {path}");
        });
        let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.matches("a\\u{1b}[2J\\u{9b}m\\u{202e}\\nERROR forged").count(), 3, "{log}");
        assert!(!log.trim_end().contains(char::is_control), "{log:?}");
    }
}
