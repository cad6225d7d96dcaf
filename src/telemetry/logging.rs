//! What is logged: one line per call, and never what was asked or found.
//!
//! Logs go to standard error, since standard output belongs to the protocol. Libraries are logged from
//! their warnings up whatever is asked for: below that some log requests and their bodies.

use std::io::IsTerminal;
use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// A filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{filter}` is not a log filter; write a level (error, warn, info, debug) or a filter like fetchwell=debug"
)]
pub struct InvalidFilter {
    filter: String,
}

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One flat JSON object: `timestamp`, `level`, `target`, `message`, and the fields beside them.
    Json,
}

/// A format that there is not.
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

/// Starts logging by `filter`, written as `RUST_LOG` is. The second call in a process does nothing.
///
/// # Errors
///
/// The filter cannot be read.
pub fn start_logging(filter: &str, format: LogFormat) -> Result<(), InvalidFilter> {
    let wanted = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .parse(filter)
        .map_err(|_unreadable| InvalidFilter { filter: filter.to_owned() })?;
    let ours_or_serious = filter_fn(|event: &Metadata<'_>| {
        *event.level() <= Level::WARN || event.target().starts_with("fetchwell")
    });
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => {
            lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
        }
    };
    let lines = lines.with_filter(wanted.and(ours_or_serious));
    // Only a test that starts logging twice gets here with a logger already set.
    let _ = tracing_subscriber::registry().with(lines).try_init();
    std::panic::set_hook(Box::new(|panic| {
        // The message of a panic may quote the text it stumbled over; its place is enough to mend it.
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a defect stopped a call");
    }));
    Ok(())
}
