//! Removes the vectors of removed records.

use std::path::{Path, PathBuf};

use fetchwell_core::saturate::saturated;
use fetchwell_source::contract::VectorError;
use fetchwell_state::LockedFile;
use rusqlite::{Connection, TransactionBehavior, params_from_iter};

use super::error::sqlite_error;
use super::file::{open, vectors_path};
use super::lock::lock_or_wait;
use crate::database::use_write_ahead_log;
use crate::traces::overwrite_free_pages;

/// Rows of the store that lose their vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RemovedRows {
    /// All records of a connection.
    Connection(i64),
    /// All records of some streams.
    Streams(Vec<i64>),
    /// One record of a stream.
    Record(i64),
}

/// Vectors of a store that are locked for a removal.
#[derive(Debug)]
pub(crate) struct VectorRemover {
    path: PathBuf,
    /// The file, or `None` if there are no vectors.
    sqlite: Option<Connection>,
    _lock: Option<LockedFile>,
}

impl VectorRemover {
    /// Locks the vectors of a store. Waits for the batch of another process to end.
    pub(crate) async fn open(store: &Path) -> Result<Self, VectorError> {
        let path = vectors_path(store);
        if open(&path)?.is_none() {
            return Ok(Self { path, sqlite: None, _lock: None });
        }
        let lock = lock_or_wait(&path).await?;
        Ok(Self { sqlite: open(&path)?, path, _lock: Some(lock) })
    }

    /// Removes vectors from all generations, and assigns those of the store `before` to the id that it has `after`.
    /// Returns the number of removed vectors. They stay locked.
    pub(crate) fn remove(
        &mut self,
        rows: &RemovedRows,
        before: &str,
        after: &str,
    ) -> Result<u64, VectorError> {
        let Some(sqlite) = &mut self.sqlite else { return Ok(0) };
        let removed = remove(sqlite, rows, before, after);
        removed.map_err(|error| sqlite_error(&self.path, &error))
    }
}

fn remove(
    sqlite: &mut Connection,
    rows: &RemovedRows,
    before: &str,
    after: &str,
) -> Result<u64, rusqlite::Error> {
    use_write_ahead_log(sqlite)?;
    sqlite.pragma_update(None, "secure_delete", true)?;
    let transaction = sqlite.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (column, ids) = match rows {
        RemovedRows::Connection(row) => ("connection", vec![*row]),
        RemovedRows::Streams(rows) => ("stream", rows.clone()),
        RemovedRows::Record(row) => ("record", vec![*row]),
    };
    let placeholders = vec!["?"; ids.len()].join(", ");
    let sql = format!("DELETE FROM chunks WHERE {column} IN ({placeholders})");
    let removed = transaction.execute(&sql, params_from_iter(ids))?;
    transaction.execute(
        "UPDATE generations SET store = ?2, revision = revision + 1 WHERE store = ?1",
        (before, after),
    )?;
    transaction.commit()?;
    overwrite_free_pages(sqlite)?;
    Ok(saturated::<u64>(removed))
}
