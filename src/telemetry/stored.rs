//! The calls of a state directory, read for people while servers write.

use std::path::Path;

use rusqlite::{Connection, Row, params};
use serde::Serialize;
use serde_json::value::RawValue;

use super::database::Database;
use super::keep::unsigned;
use crate::state::StateError;

/// A call as it was recorded.
#[derive(Debug, Clone, Serialize)]
pub struct StoredCall {
    /// What it is known by.
    pub request_id: String,
    /// What was called.
    pub endpoint: String,
    /// By whose grant; nothing where callers were not told apart.
    pub caller: Option<String>,
    /// When it ended: UTC, with milliseconds.
    pub timestamp: String,
    /// How it ended.
    pub outcome: String,
    /// Tokens of the answer, counted or estimated.
    pub estimated_tokens: u64,
    /// Tokens of what it was made of.
    pub original_tokens: Option<u64>,
    /// Bytes of the answer.
    pub response_bytes: u64,
    /// Records, results or groups in it.
    pub item_count: u64,
    /// Tokens for each of them.
    pub tokens_per_item: f64,
    /// How long it took, in whole milliseconds.
    pub latency_ms: u64,
    /// The same in microseconds.
    pub latency_us: u64,
    /// It gave a page of a list.
    pub pagination_used: bool,
    /// It gave previews in place of texts.
    pub summarization_used: bool,
    /// It gave a piece of a text.
    pub chunking_used: bool,
    /// Before it was shaped it was over its threshold.
    pub oversized: bool,
    /// What shaping saved.
    pub optimization_metadata: Box<RawValue>,
}

/// Which calls are asked for. Nothing asks for all.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Calls of this.
    pub endpoint: Option<String>,
    /// Calls that ended so.
    pub outcome: Option<String>,
    /// Calls of this caller.
    pub caller: Option<String>,
    /// Calls since then: UTC, with milliseconds.
    pub since: Option<String>,
    /// The latest so many.
    pub most: Option<u32>,
}

/// The calls of a state directory.
#[derive(Debug)]
pub struct StoredCalls {
    database: Database,
    connection: Connection,
}

impl StoredCalls {
    /// Opens the file to read from.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be read.
    pub fn open(directory: &Path) -> Result<Self, StateError> {
        let database = Database::in_directory(directory);
        let connection = database.file.reader()?;
        Ok(Self { database, connection })
    }

    /// Calls, the oldest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn calls(&self, wanted: &Wanted) -> Result<Vec<StoredCall>, StateError> {
        let query = format!(
            "SELECT {COLUMNS} FROM telemetry WHERE (?1 IS NULL OR endpoint = ?1) AND (?2 IS NULL OR outcome = ?2) \
             AND (?3 IS NULL OR timestamp >= ?3) AND (?4 IS NULL OR caller = ?4) ORDER BY id DESC LIMIT ?5"
        );
        let Wanted { endpoint, outcome, caller, since, most } = wanted;
        let read = || {
            let mut statement = self.connection.prepare(&query)?;
            let most = most.map_or(-1, i64::from);
            let rows = statement.query_map(params![endpoint, outcome, since, caller, most], stored)?;
            rows.collect::<Result<Vec<StoredCall>, _>>()
        };
        let mut calls = read().map_err(|error| self.database.file.error(&error))?;
        calls.reverse();
        Ok(calls)
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
        // The table takes nothing that is no JSON.
        optimization_metadata: RawValue::from_string(row.get(15)?).unwrap_or_default(),
    })
}
