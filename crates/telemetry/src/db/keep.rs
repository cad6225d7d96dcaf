//! The SQL of the telemetry file: inserting calls in batches, and reading the values that a server starts with.

use std::sync::Arc;

use fetchwell_core::fit::Strategy;
use fetchwell_core::saturate::saturated;
use rusqlite::{Connection, Row, ToSql, Transaction, TransactionBehavior, params};

use crate::TelemetryRecord;
use crate::call::shown_time;
use crate::record::Optimization;
use crate::totals::Totals;

/// The aggregates of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FileTotals {
    pub(crate) totals: Totals,
    pub(crate) rows: u64,
}

/// Inserts calls, adds `more` to the totals, and deletes the oldest rows. `more` includes calls that were dropped
/// before they were written. Returns the new aggregates.
pub(crate) fn add<'a>(
    connection: &mut Connection,
    records: impl Iterator<Item = &'a Arc<TelemetryRecord>>,
    more: Totals,
    max_rows: i64,
) -> Result<FileTotals, rusqlite::Error> {
    // Immediate: a transaction that starts with a read may fail to become a writer.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for record in records {
        insert(&transaction, record)?;
    }
    let oldest = "DELETE FROM telemetry WHERE id <= (SELECT max(id) FROM telemetry) - ?1";
    transaction.prepare_cached(oldest)?.execute([max_rows])?;
    let add = "UPDATE totals SET requests = requests + ?1, paginated = paginated + ?2, \
        summarized = summarized + ?3, chunked = chunked + ?4, oversized = oversized + ?5, \
        response_bytes = response_bytes + ?6, latency_us = latency_us + ?7, lists = lists + ?8";
    transaction.prepare_cached(add)?.execute(params![
        signed(more.requests),
        signed(more.paginated),
        signed(more.summarized),
        signed(more.chunked),
        signed(more.oversized),
        signed(more.response_bytes),
        signed(more.latency_us),
        signed(more.lists),
    ])?;
    let held = read_totals(&transaction)?;
    transaction.commit()?;
    Ok(held)
}

/// Reads the aggregates of a file.
pub(crate) fn read_totals(connection: &Connection) -> Result<FileTotals, rusqlite::Error> {
    let read = "SELECT requests, paginated, summarized, chunked, oversized, response_bytes, latency_us, lists, \
        coalesce((SELECT max(id) FROM telemetry) - (SELECT min(id) FROM telemetry) + 1, 0) FROM totals";
    connection.prepare_cached(read)?.query_one((), |row| {
        let totals = Totals {
            requests: unsigned(row, 0)?,
            paginated: unsigned(row, 1)?,
            summarized: unsigned(row, 2)?,
            chunked: unsigned(row, 3)?,
            oversized: unsigned(row, 4)?,
            response_bytes: unsigned(row, 5)?,
            latency_us: unsigned(row, 6)?,
            lists: unsigned(row, 7)?,
        };
        Ok(FileTotals { totals, rows: unsigned(row, 8)? })
    })
}

/// Returns the latencies of the latest calls in microseconds, the oldest first.
pub(crate) fn latencies(connection: &Connection, max_rows: usize) -> Result<Vec<u64>, rusqlite::Error> {
    let latest = "SELECT latency_us FROM telemetry ORDER BY id DESC LIMIT ?1";
    let mut statement = connection.prepare(latest)?;
    let rows = statement.query_map([saturated::<i64>(max_rows)], |row| unsigned(row, 0))?;
    let mut latencies = rows.collect::<Result<Vec<u64>, _>>()?;
    latencies.reverse();
    Ok(latencies)
}

fn insert(transaction: &Transaction<'_>, record: &TelemetryRecord) -> Result<(), rusqlite::Error> {
    let insert = "INSERT INTO telemetry (request_id, endpoint, caller, timestamp, outcome, estimated_tokens, original_tokens, \
        response_bytes, item_count, latency_us, pagination_used, summarization_used, chunking_used, oversized, \
        optimization_metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let values: [&dyn ToSql; 15] = [
        &record.request_id.as_str(),
        &record.endpoint.as_str(),
        &record.caller.map(|caller| caller.short()),
        &shown_time(record.timestamp),
        &record.outcome.as_str(),
        &signed(record.estimated_tokens),
        &record.optimization.original_tokens.map(signed),
        &signed(record.response_bytes),
        &signed(record.item_count),
        &signed(record.latency_us),
        &(record.strategy == Strategy::Paginated),
        &record.summarization_used,
        &(record.strategy == Strategy::Chunked),
        &record.oversized,
        &as_json(&record.optimization),
    ];
    transaction.prepare_cached(insert)?.execute(values.as_slice()).map(|_one| ())
}

fn as_json(optimization: &Optimization) -> String {
    serde_json::to_string(optimization).unwrap_or_else(|_unwritable| "{}".to_owned())
}

/// Converts to SQLite's signed integers. No value comes near their maximum.
fn signed(number: u64) -> i64 {
    saturated::<i64>(number)
}

pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, rusqlite::Error> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}
