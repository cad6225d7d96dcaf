//! `fetchwell bench context`: the cost of fitting answers into a model's context, per call.
//!
//! Each call is made as a client's would be, but without a socket, over the `hostaway` sample. It is compared with
//! reading the same records and writing them as JSON, as a server without that layer does.

use fetchwell_core::fit::Shaping;
use fetchwell_core::handle::StreamName;
use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::Line;
use fetchwell_lab::hostaway;
use fetchwell_sqlite::SqliteTarget;
use fetchwell_telemetry::{Endpoint, Origin, RECORDS_IN_MEMORY, Telemetry};
use serde::Serialize;
use serde_json::{Value, json};

use super::chunks::{self, ChunkAccess};
use super::machine::Machine;
use super::server::Server;
use super::times::{Times, timed};
use crate::app::failure::Failure;
use crate::cli::print::{FAINT, Printer, grouped};

/// Number of measured calls.
const TIMES: usize = 300;

/// Number of telemetry records per measurement; a single one takes less than a tick of some clocks.
const RECORDS: usize = 20_000;

/// Handles of a booking below every threshold, and of one that fits into no answer.
const SMALL: &str = "cin_seaside/reservations:BK20005";
const FAT: &str = "cin_seaside/reservations:BK99999";

/// Results of the benchmark.
#[derive(Debug, Serialize)]
pub(super) struct ContextTimes {
    calls: Vec<CallTimes>,
    chunks: ChunkAccess,
}

/// Results with the machine, if the benchmark runs alone.
#[derive(Debug, Serialize)]
struct OnMachine {
    machine: Machine,
    #[serde(flatten)]
    measured: ContextTimes,
}

/// Times of a call with the layer, and of reading the same records without it.
#[derive(Debug, Serialize)]
struct CallTimes {
    call: &'static str,
    bytes: usize,
    with: Times,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    without: Option<Times>,
}

pub(super) fn run(printer: Printer) -> Result<(), Failure> {
    let (machine, measured) = (Machine::this(), measure()?);
    if printer.json {
        printer.value(&OnMachine { machine, measured });
    } else {
        measured.print(printer);
        printer.styled(Line::default().styled(FAINT, machine));
    }
    Ok(())
}

pub(super) fn measure() -> Result<ContextTimes, Failure> {
    let server = Server::start(|store| hostaway::import_sample(&SqliteTarget::new(store)))?;
    let calls = calls(&server)?;
    Ok(ContextTimes { calls, chunks: chunks::measure()? })
}

fn calls(server: &Server) -> Result<Vec<CallTimes>, Failure> {
    let listings: StreamName = "listings".parse().map_err(|error| Failure::usage(&error))?;
    let of_record = |id| timed(&server.runtime, TIMES, move |_| server.record(id));
    let of_list = |limit| timed(&server.runtime, TIMES, |_| server.records(&listings, limit));
    let get = |target| timed(&server.runtime, TIMES, move |_| server.get(target));
    let tool =
        |name, arguments: Value| timed(&server.runtime, TIMES, |_| server.call(name, arguments.clone()));
    let (small, fat) = (of_record(SMALL)?, of_record(FAT)?);
    let booking = json!({"stream": "reservations", "filter": {"id": "BK99999"}});
    let part = json!({"id": FAT, "fields": ["payments"]});
    Ok(vec![
        compared("fetch, a small record", tool("fetch", json!({"id": SMALL}))?, small),
        compared("GET a small record", get("/api/v1/bookings/BK20005")?, small),
        compared(
            "query_records, 25 listings",
            tool("query_records", json!({"stream": "listings"}))?,
            of_list(25)?,
        ),
        compared("GET 50 listings", get("/api/v1/listings?limit=50")?, of_list(50)?),
        compared("GET the preview of the fat booking", get("/api/v1/bookings/BK99999")?, fat),
        compared("query_records, the fat booking", tool("query_records", booking)?, fat),
        compared("fetch, its payments", tool("fetch", part)?, fat),
        record_of_a_call("a record of the call, in memory", &Telemetry::default()),
        kept_record()?,
    ])
}

fn compared(call: &'static str, fitted: (Times, usize), raw: (Times, usize)) -> CallTimes {
    CallTimes { call, bytes: fitted.1, with: fitted.0, raw_bytes: Some(raw.1), without: Some(raw.0) }
}

/// Measures telemetry records that are also written to a file in the background.
fn kept_record() -> Result<CallTimes, Failure> {
    let folder = tempfile::tempdir();
    let folder = folder.map_err(|error| Failure::new(format!("no temporary folder ({error})")))?;
    let telemetry = Telemetry::in_directory(folder.path(), RECORDS_IN_MEMORY);
    Ok(record_of_a_call("a record of the call, kept in a file", &telemetry))
}

fn record_of_a_call(call: &'static str, telemetry: &Telemetry) -> CallTimes {
    let shaping = Shaping { bytes: 1_800, items: 13, ..Shaping::default() };
    let taken = (0..RECORDS).map(|_| {
        let started = std::time::Instant::now();
        telemetry.call(Endpoint::tool("search"), Origin::default()).answered(&shaping);
        started.elapsed()
    });
    CallTimes { call, bytes: 0, with: Times::from_durations(taken.collect()), raw_bytes: None, without: None }
}

impl ContextTimes {
    pub(super) fn print(&self, printer: Printer) {
        let size = |size: usize| grouped(saturated::<u64>(size));
        let heading = ["call", "bytes", "p50 us", "p99 us", "raw bytes", "raw p50 us", "raw p99 us"];
        let cells = self.calls.iter().map(|row| {
            let raw = |time: fn(&Times) -> f64| {
                row.without.as_ref().map_or_else(String::new, |times| format!("{:.1}", time(times)))
            };
            vec![
                row.call.to_owned(),
                size(row.bytes),
                format!("{:.1}", row.with.p50_us),
                format!("{:.1}", row.with.p99_us),
                row.raw_bytes.map_or_else(String::new, size),
                raw(|times| times.p50_us),
                raw(|times| times.p99_us),
            ]
        });
        let heading = heading.map(str::to_owned).to_vec();
        printer.table(&std::iter::once(heading).chain(cells).collect::<Vec<_>>());
        self.chunks.print(printer);
    }
}
