//! `fetchwell telemetry`: prints the recorded calls of HTTP servers and their statistics per endpoint.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use fetchwell_telemetry::{CallFilter, EndpointAggregates, StoredCall, StoredCalls};
use jiff::{SignedDuration, Timestamp};

use super::print::{Printer, grouped};
use crate::app::failure::Failure;
use crate::app::state::ServerStateArgs;

/// Show the calls that HTTP servers recorded: time, latency and size, never the query.
#[derive(Debug, Args)]
pub(super) struct Telemetry {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    state: ServerStateArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the latest calls, one per line, newest last.
    #[command(visible_alias = "query")]
    Tail {
        /// Maximum number of calls [default: 20, or all with --json]
        #[arg(short, value_name = "N")]
        number: Option<u32>,

        /// Only calls of this route or tool, such as /v1/search or tool:fetch.
        #[arg(long)]
        endpoint: Option<String>,

        /// Only calls with this outcome: ok, cancelled, `source_error`, or the code of an error.
        #[arg(long)]
        outcome: Option<String>,

        /// Only calls by this grant: 8 characters, as in the log.
        #[arg(long, value_name = "ID")]
        caller: Option<String>,

        /// Only calls of the last 30s, 10m, 2h or 7d.
        #[arg(long, value_name = "TIME")]
        since: Option<Ago>,
    },
    /// Print totals for each route and tool.
    Endpoints {
        /// Only calls by this grant.
        #[arg(long, value_name = "ID")]
        caller: Option<String>,

        /// Only calls of the last 30s, 10m, 2h or 7d.
        #[arg(long, value_name = "TIME")]
        since: Option<Ago>,
    },
}

/// Default number of calls without `--json`.
const DEFAULT_NUMBER: u32 = 20;

/// Duration before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ago(Duration);

impl FromStr for Ago {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("s", 1), ("m", 60), ("h", 60 * 60), ("d", 24 * 60 * 60)];
        let number = |(unit, seconds): (&str, u64)| {
            let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
            Some(Duration::from_secs(u64::from(number) * seconds))
        };
        let ago = units.into_iter().find_map(number);
        ago.map(Self).ok_or_else(|| "write a number and s, m, h or d, such as 10m".to_owned())
    }
}

impl Ago {
    /// Returns the time that long ago, in the format of records.
    fn timestamp(self) -> String {
        let ago = SignedDuration::try_from(self.0).unwrap_or(SignedDuration::MAX);
        let start = Timestamp::now().checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH);
        format!("{:.3}", start.max(Timestamp::UNIX_EPOCH))
    }
}

impl Telemetry {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        let stored = StoredCalls::open(&self.state.directory()?)?;
        match self.command {
            Command::Tail { number, endpoint, outcome, caller, since } => {
                let max_calls = number.or((!printer.json).then_some(DEFAULT_NUMBER));
                let since = since.map(Ago::timestamp);
                tail(printer, &stored.calls(&CallFilter { endpoint, outcome, caller, since, max_calls })?);
            }
            Command::Endpoints { caller, since } => {
                let wanted = CallFilter { caller, since: since.map(Ago::timestamp), ..CallFilter::default() };
                endpoints(printer, &EndpointAggregates::from_calls(&stored.calls(&wanted)?));
            }
        }
        Ok(())
    }
}

/// With `--json`, prints one value per line, so that lines can be counted.
fn tail(printer: Printer, calls: &[StoredCall]) {
    if printer.json {
        calls.iter().for_each(|call| printer.value(call));
        return;
    }
    let heading =
        ["time", "endpoint", "outcome", "ms", "bytes", "tokens", "items", "shaped", "caller", "request id"];
    let mut table = vec![heading.map(str::to_owned).to_vec()];
    table.extend(calls.iter().map(|call| {
        vec![
            call.timestamp.clone(),
            call.endpoint.clone(),
            call.outcome.clone(),
            grouped(call.latency_ms),
            grouped(call.response_bytes),
            grouped(call.estimated_tokens),
            grouped(call.item_count),
            shaped(call),
            call.caller.as_deref().unwrap_or("-").to_owned(),
            call.request_id.clone(),
        ]
    }));
    printer.table(&table);
}

fn shaped(call: &StoredCall) -> String {
    let how = [
        (call.pagination_used, "page"),
        (call.chunking_used, "piece"),
        (call.summarization_used, "preview"),
        (call.oversized, "oversized"),
    ];
    let how: Vec<&str> = how.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
    how.join(" ")
}

fn endpoints(printer: Printer, aggregates: &[EndpointAggregates]) {
    if printer.json {
        printer.value(&aggregates);
        return;
    }
    let heading = [
        "endpoint",
        "calls",
        "errors",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "bytes",
        "tokens",
        "pages",
        "previews",
        "pieces",
        "oversized",
    ];
    let mut table = vec![heading.map(str::to_owned).to_vec()];
    let share = |share: f64| format!("{:.1} %", share * 100.0);
    table.extend(aggregates.iter().map(|of| {
        vec![
            of.endpoint.clone(),
            grouped(of.calls),
            grouped(of.errors),
            format!("{:.1}", of.p50_ms),
            format!("{:.1}", of.p95_ms),
            format!("{:.1}", of.p99_ms),
            format!("{:.0}", of.avg_response_bytes),
            format!("{:.0}", of.avg_tokens),
            share(of.pagination_adoption),
            share(of.summarization_adoption),
            share(of.chunking_adoption),
            grouped(of.oversized),
        ]
    }));
    printer.table(&table);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: Option<u64>) {
        assert_eq!(text.parse().ok(), seconds.map(|seconds| Ago(Duration::from_secs(seconds))), "{text}");
    }

    #[test]
    fn a_time_ago_has_a_unit() {
        check("30s", Some(30));
        check("10m", Some(600));
        check("2h", Some(7_200));
        check("7d", Some(604_800));
        for wrong in ["10", "m", "-1m", "1.5h", "10 m", "1w", ""] {
            check(wrong, None);
        }
        assert_eq!(Ago(Duration::from_secs(u64::MAX)).timestamp(), "1970-01-01T00:00:00.000Z");
    }
}
