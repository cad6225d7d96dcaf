//! Random access to a text of 10 MB: the last part of `fetchwell bench context`.

use std::time::Instant;

use fetchwell_connectors::import_records;
use fetchwell_core::saturate::saturated;
use fetchwell_lab::sample::{SampleAccount, import_account};
use fetchwell_sqlite::SqliteTarget;
use serde::Serialize;
use serde_json::json;

use super::server::Server;
use super::texts::kind;
use super::times::{Times, timed};
use crate::app::failure::Failure;
use crate::cli::print::{Printer, grouped};

/// Size of the text in bytes.
const BYTES: usize = 10_000_000;

/// Number of pieces that are read, each at another position.
const TIMES: usize = 1_000;

/// Prime stride between positions, so that consecutive reads are far apart.
const STRIDE: usize = 7_919;

/// Number of lines per piece.
const LINES: usize = 101;

const TARGET: &str = "/api/v1/content/cin_bench/logs:l1?field=text";

const MANIFEST: &str = r#"{"connector_key": "bench", "version": "1", "streams": [{"name": "logs", "primary_key": ["id"],
    "schema": {"type": "object", "properties": {"id": {"type": "string"}, "text": {"type": "string"}}},
    "query": {"search": {"lexical_fields": ["id"]}}}]}"#;

/// Results of reading pieces.
#[derive(Debug, Serialize)]
pub(super) struct ChunkAccess {
    bytes: usize,
    lines: usize,
    chunks: usize,
    /// Time of the first piece in microseconds, including reading and splitting the text.
    first_us: u64,
    /// Times by `startLine` and `endLine`.
    lines_times: Times,
    /// Times by `chunkIndex`.
    chunk_times: Times,
    /// Times by `read_record_field`, always for the first chunk.
    tool_times: Times,
}

pub(super) fn measure() -> Result<ChunkAccess, Failure> {
    let text = kind("log lines").map(|kind| kind.text(BYTES)).unwrap_or_default();
    let envelope = json!({"stream": "logs", "key": "l1", "data": {"id": "l1", "text": text}}).to_string();
    let account = SampleAccount { id: "cin_bench", label: "Bench", manifest: MANIFEST };
    let server = Server::start(|store| {
        import_account(&SqliteTarget::new(store), account, |intake| {
            import_records(&mut envelope.as_bytes(), store, intake)
        })
    })?;
    let started = Instant::now();
    let answered = server.runtime.block_on(server.routes.get(TARGET));
    let first = started.elapsed();
    let (_, first_chunk) = answered.ok_or_else(|| Failure::new("the text was not answered"))?;
    let first_chunk: serde_json::Value = serde_json::from_slice(&first_chunk).unwrap_or_default();
    let number = |pointer| {
        let number = first_chunk.pointer(pointer).and_then(serde_json::Value::as_u64);
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
    };
    let (lines, chunks) = (number("/metadata/totalLines"), number("/totalChunks"));
    if lines <= LINES || chunks == 0 {
        return Err(Failure::new(format!("the text has no lines: {first_chunk}")));
    }
    let server = &server;
    let (lines_times, _) = timed(&server.runtime, TIMES, |number| async move {
        let start = number * STRIDE % (lines - LINES);
        server.get(&format!("{TARGET}&startLine={start}&endLine={}", start + LINES - 1)).await
    })?;
    let (chunk_times, _) = timed(&server.runtime, TIMES, |number| async move {
        server.get(&format!("{TARGET}&chunkIndex={}", number * STRIDE % chunks)).await
    })?;
    let asked = || json!({"id": "cin_bench/logs:l1", "field": "text", "unit": "chunk"});
    let (tool_times, _) = timed(&server.runtime, TIMES / 4, |_| server.call("read_record_field", asked()))?;
    let first_us = saturated::<u64>(first.as_micros());
    Ok(ChunkAccess { bytes: text.len(), lines, chunks, first_us, lines_times, chunk_times, tool_times })
}

impl ChunkAccess {
    pub(super) fn print(&self, printer: Printer) {
        let Self { bytes, lines, chunks, first_us, lines_times, chunk_times, tool_times } = self;
        let size = |size: usize| grouped(saturated::<u64>(size));
        printer.line(format_args!(
            "a text of {} bytes, {} lines, {} chunks: the first piece {} us",
            size(*bytes),
            size(*lines),
            size(*chunks),
            grouped(*first_us)
        ));
        for (what, times) in [
            ("101 lines anywhere", lines_times),
            ("a chunk anywhere", chunk_times),
            ("read_record_field, a chunk", tool_times),
        ] {
            printer.line(format_args!("{what}  p50 {:.1} us  p95 {:.1} us", times.p50_us, times.p95_us));
        }
    }
}
