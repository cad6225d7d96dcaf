//! Reading the calls of a state directory, concurrently with servers that write them.

use std::path::Path;

use fetchwell_core::saturate::saturated;
use fetchwell_state::StateError;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::value::RawValue;

use super::database::Database;
use super::keep::unsigned;
use crate::activity::{Activity, EndedCall};
use crate::call::shown_time;
use crate::outcome::Outcome;

/// A stored call.
#[derive(Debug, Clone, Serialize)]
pub struct StoredCall {
    /// Id of the request.
    pub request_id: String,
    /// Tool or route that was called.
    pub endpoint: String,
    /// Short id of the caller's grant, or `None` if callers were anonymous.
    pub caller: Option<String>,
    /// Time at which the call ended: UTC with milliseconds.
    pub timestamp: String,
    /// Outcome of the call.
    pub outcome: String,
    /// Tokens of the response, counted or estimated.
    pub estimated_tokens: u64,
    /// Tokens of the records that the response was made of.
    pub original_tokens: Option<u64>,
    /// Size of the response in bytes.
    pub response_bytes: u64,
    /// Number of records, results or groups in the response.
    pub item_count: u64,
    /// Tokens per item.
    pub tokens_per_item: f64,
    /// Latency in whole milliseconds.
    pub latency_ms: u64,
    /// Latency in microseconds.
    pub latency_us: u64,
    /// True if the response is a page of a list.
    pub pagination_used: bool,
    /// True if the response contains previews in place of texts.
    pub summarization_used: bool,
    /// True if the response is a piece of a text.
    pub chunking_used: bool,
    /// True if the response exceeded its threshold before it was shaped.
    pub oversized: bool,
    /// Savings by shaping, as JSON.
    pub optimization_metadata: Box<RawValue>,
}

/// A filter for stored calls. A `None` matches all calls.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    /// Endpoint of the calls.
    pub endpoint: Option<String>,
    /// Outcome of the calls.
    pub outcome: Option<String>,
    /// Short id of the caller's grant.
    pub caller: Option<String>,
    /// Earliest end of the calls: UTC with milliseconds.
    pub since: Option<String>,
    /// Maximum number of calls, the latest.
    pub max_calls: Option<u32>,
}

/// Stored calls over time, of all servers with the same state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredActivity {
    /// The calls over time.
    pub activity: Activity,
    /// End of the oldest call that is stored.
    pub since: Timestamp,
}

/// The stored calls of a state directory.
#[derive(Debug)]
pub struct StoredCalls {
    database: Database,
    connection: Connection,
}

impl StoredCalls {
    /// Opens the file for reading.
    ///
    /// # Errors
    ///
    /// The file does not exist or cannot be read.
    pub fn open(directory: &Path) -> Result<Self, StateError> {
        let database = Database::in_directory(directory);
        let connection = database.file.reader()?;
        Ok(Self { database, connection })
    }

    /// Returns the matching calls, the oldest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn calls(&self, wanted: &CallFilter) -> Result<Vec<StoredCall>, StateError> {
        let query = format!(
            "SELECT {COLUMNS} FROM telemetry WHERE (?1 IS NULL OR endpoint = ?1) AND (?2 IS NULL OR outcome = ?2) \
             AND (?3 IS NULL OR timestamp >= ?3) AND (?4 IS NULL OR caller = ?4) ORDER BY id DESC LIMIT ?5"
        );
        let CallFilter { endpoint, outcome, caller, since, max_calls } = wanted;
        let read = || {
            let mut statement = self.connection.prepare(&query)?;
            let max_calls = max_calls.map_or(-1, i64::from);
            let rows = statement.query_map(params![endpoint, outcome, since, caller, max_calls], stored)?;
            rows.collect::<Result<Vec<StoredCall>, _>>()
        };
        let mut calls = read().map_err(|error| self.database.file.error(&error))?;
        calls.reverse();
        Ok(calls)
    }

    /// Counts the calls of the last `count` intervals before `now`. Returns `None` if no call is stored.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn activity(
        &self,
        now: Timestamp,
        interval: SignedDuration,
        count: usize,
    ) -> Result<Option<StoredActivity>, StateError> {
        let length = interval.saturating_mul(saturated::<i32>(count));
        let first = now.checked_sub(length).unwrap_or(Timestamp::MIN);
        let read = || {
            let oldest = "SELECT timestamp FROM telemetry ORDER BY id LIMIT 1";
            let oldest: Option<String> =
                self.connection.query_row(oldest, (), |row| row.get(0)).optional()?;
            let ended = "SELECT timestamp, outcome = ?2 FROM telemetry WHERE timestamp >= ?1";
            let mut statement = self.connection.prepare(ended)?;
            let rows = statement.query_map(params![shown_time(first), Outcome::OK.as_str()], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))
            })?;
            Ok((oldest, rows.collect::<Result<Vec<_>, _>>()?))
        };
        let (oldest, rows) = read().map_err(|error| self.database.file.error(&error))?;
        let ended = rows.into_iter().filter_map(|(timestamp, is_answered)| {
            Some(EndedCall { timestamp: timestamp.parse().ok()?, is_answered })
        });
        let since = oldest.and_then(|oldest| oldest.parse().ok());
        Ok(since.map(|since| StoredActivity {
            activity: Activity::from_calls(ended, now, interval, count),
            since,
        }))
    }
}

const COLUMNS: &str = "request_id, endpoint, timestamp, outcome, estimated_tokens, original_tokens, response_bytes, \
    item_count, tokens_per_item, latency_ms, latency_us, pagination_used, summarization_used, chunking_used, oversized, \
    optimization_metadata, caller";

fn stored(row: &Row<'_>) -> Result<StoredCall, rusqlite::Error> {
    let original: Option<i64> = row.get(5)?;
    Ok(StoredCall {
        request_id: row.get(0)?,
        endpoint: row.get(1)?,
        caller: row.get(16)?,
        timestamp: row.get(2)?,
        outcome: row.get(3)?,
        estimated_tokens: unsigned(row, 4)?,
        original_tokens: original.and_then(|tokens| u64::try_from(tokens).ok()),
        response_bytes: unsigned(row, 6)?,
        item_count: unsigned(row, 7)?,
        tokens_per_item: row.get(8)?,
        latency_ms: unsigned(row, 9)?,
        latency_us: unsigned(row, 10)?,
        pagination_used: row.get(11)?,
        summarization_used: row.get(12)?,
        chunking_used: row.get(13)?,
        oversized: row.get(14)?,
        // A constraint of the table ensures valid JSON.
        optimization_metadata: RawValue::from_string(row.get(15)?).unwrap_or_default(),
    })
}
