//! Writes the number of records of each word (document frequency).
//!
//! A small batch changes the table of terms directly. The changes of a large batch are appended to a table of changes, which
//! one session at a time merges into the table of terms in large steps: if each batch did that, an import would replace the
//! same rows most of its time. An import also merges at its beginning and at its end, so the numbers are exact when no import
//! runs. The transaction that merges a change deletes it, so a killed import loses none and repeats none.

use std::collections::HashMap;

use deadpool_postgres::{Object, Transaction};
use fetchwell_source::contract::PostgresError;
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

use super::super::bulk::copy::{CopyRow, copy_rows};
use super::super::pool::PostgresPool;
use super::super::transaction::begin_write;
use super::super::url::PostgresUrl;

/// Maximum number of changes that a batch writes directly.
const MAX_DIRECT: usize = 2_000;

/// Minimum bytes of changes for a merge while an import runs.
const MIN_MERGE_BYTES: i64 = 4_000_000;

/// Divisor of the size of the table of terms. The result is the minimum for a merge if it is more than [`MIN_MERGE_BYTES`], so
/// that a merge replaces few rows for each change.
const MIN_MERGE_DIVISOR: i64 = 4;

/// Bytes of changes that are merged whatever the size of the table of terms.
const MAX_PENDING_BYTES: i64 = 32_000_000;

/// Key of the advisory lock of a merge: `fwel` and `term`.
const LOCK: i64 = 0x6677_656C_7465_726D;

/// Settings of a merge.
const SETTINGS: &str = "SET LOCAL statement_timeout = 0; SET LOCAL work_mem = '128MB'";

/// Merges all changes. Replaces rows in the same order as [`write_now`], so that two transactions cannot deadlock.
const MERGE: &str = "WITH taken AS (DELETE FROM fetchwell.term_changes RETURNING stream, words, records)
     INSERT INTO fetchwell.terms (word, stream, records)
     SELECT c.word, t.stream, sum(c.records) FROM taken t JOIN fetchwell.streams s ON s.id = t.stream,
         unnest(t.words, t.records) AS c (word, records)
     GROUP BY c.word, t.stream HAVING sum(c.records) <> 0 ORDER BY c.word COLLATE \"C\", t.stream
     ON CONFLICT (word, stream) DO UPDATE SET records = terms.records + excluded.records";

/// Changes of the number of records with each word, by stream.
pub(super) type TermChanges<'w> = HashMap<i64, HashMap<&'w str, i32>>;

/// Writes changes to the table of terms, or appends them if there are many.
pub(super) async fn write_terms(
    transaction: &Transaction<'_>,
    mut changes: TermChanges<'_>,
) -> Result<(), Error> {
    changes.values_mut().for_each(|terms| terms.retain(|_, by| *by != 0));
    changes.retain(|_, terms| !terms.is_empty());
    let count: usize = changes.values().map(HashMap::len).sum();
    if count == 0 {
        return Ok(());
    }
    // A merge may have replaced the same rows and not ended.
    let is_merging = async {
        let row = transaction.query_one("SELECT NOT pg_try_advisory_xact_lock_shared($1)", &[&LOCK]).await?;
        Ok::<bool, Error>(row.get(0))
    };
    if count > MAX_DIRECT || is_merging.await? {
        append(transaction, changes).await
    } else {
        write_now(transaction, changes).await
    }
}

async fn append(transaction: &Transaction<'_>, changes: TermChanges<'_>) -> Result<(), Error> {
    let columns = changes.into_iter().map(|(stream, terms)| {
        let mut terms: Vec<(&str, i32)> = terms.into_iter().collect();
        // Sorted words take less space.
        terms.sort_unstable();
        let (words, records): (Vec<&str>, Vec<i32>) = terms.into_iter().unzip();
        (stream, words, records)
    });
    let columns: Vec<(i64, Vec<&str>, Vec<i32>)> = columns.collect();
    let rows = columns.iter().map(|(stream, words, records)| -> CopyRow<'_, 3> {
        [stream as &(dyn ToSql + Sync), words, records]
    });
    let rows: Vec<CopyRow<'_, 3>> = rows.collect();
    let types = [Type::INT8, Type::TEXT_ARRAY, Type::INT4_ARRAY];
    copy_rows(transaction, "fetchwell.term_changes (stream, words, records)", &types, &rows).await
}

async fn write_now(transaction: &Transaction<'_>, changes: TermChanges<'_>) -> Result<(), Error> {
    let terms =
        changes.iter().flat_map(|(stream, terms)| terms.iter().map(move |(word, by)| (*word, *stream, *by)));
    let mut terms: Vec<(&str, i64, i32)> = terms.collect();
    if terms.is_empty() {
        return Ok(());
    }
    terms.sort_unstable();
    let words: Vec<&str> = terms.iter().map(|(word, _, _)| *word).collect();
    let streams: Vec<i64> = terms.iter().map(|(_, stream, _)| *stream).collect();
    let counts: Vec<i32> = terms.iter().map(|(_, _, by)| *by).collect();
    let sql = "INSERT INTO fetchwell.terms (word, stream, records)
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::integer[])
         ON CONFLICT (word, stream) DO UPDATE SET records = terms.records + excluded.records";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&words, &streams, &counts]).await?;
    Ok(())
}

/// Merges the pending changes if there are many and no other session merges.
pub(crate) async fn merge_many_terms(
    database: &mut Object,
    pool: &PostgresPool,
) -> Result<(), PostgresError> {
    merge_if_many(database, pool.url()).await.map_err(|error| pool.failure(&error))
}

async fn merge_if_many(database: &mut Object, url: &PostgresUrl) -> Result<(), Error> {
    let transaction = begin_write(database, url).await?;
    // The size of a compressed value is known without reading it.
    let sql = "SELECT coalesce(sum(pg_column_size(words)), 0) >= least($3, greatest($1, pg_relation_size('fetchwell.terms') / $2))
         FROM fetchwell.term_changes";
    if !transaction
        .query_one(sql, &[&MIN_MERGE_BYTES, &MIN_MERGE_DIVISOR, &MAX_PENDING_BYTES])
        .await?
        .get::<_, bool>(0)
    {
        return Ok(());
    }
    let lock = transaction.query_one("SELECT pg_try_advisory_xact_lock($1)", &[&LOCK]).await?;
    if lock.get(0) {
        transaction.batch_execute(SETTINGS).await?;
        merge(&transaction).await?;
    }
    transaction.commit().await
}

/// Merges all changes that are committed.
pub(crate) async fn merge_terms(database: &mut Object, pool: &PostgresPool) -> Result<(), PostgresError> {
    merge_all(database, pool.url()).await.map_err(|error| pool.failure(&error))
}

async fn merge_all(database: &mut Object, url: &PostgresUrl) -> Result<(), Error> {
    let transaction = begin_write(database, url).await?;
    let sql = "SELECT EXISTS (SELECT 1 FROM fetchwell.term_changes)";
    if !transaction.query_one(sql, &[]).await?.get::<_, bool>(0) {
        return Ok(());
    }
    transaction.batch_execute(SETTINGS).await?;
    lock_terms(&transaction).await?;
    merge(&transaction).await?;
    transaction.commit().await
}

/// Warns that changes were not merged. What was written before stays, and the next import merges them.
pub(crate) fn warn_unmerged<E: std::fmt::Display>(merged: Result<(), E>) {
    if let Err(error) = merged {
        tracing::warn!(%error, "the numbers of records with each word are behind until the next import");
    }
}

async fn merge(transaction: &Transaction<'_>) -> Result<(), Error> {
    transaction.execute(MERGE, &[]).await?;
    Ok(())
}

/// Waits until no other session merges. A caller that also takes the lock of the store's version takes that first.
async fn lock_terms(transaction: &Transaction<'_>) -> Result<(), Error> {
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    Ok(())
}

/// Deletes the terms of streams and their pending changes.
pub(crate) async fn delete_terms(transaction: &Transaction<'_>, streams: &[i64]) -> Result<(), Error> {
    transaction.batch_execute("SET LOCAL statement_timeout = 0").await?;
    lock_terms(transaction).await?;
    for table in ["term_changes", "terms"] {
        let sql = format!("DELETE FROM fetchwell.{table} WHERE stream = ANY ($1)");
        transaction.execute(sql.as_str(), &[&streams]).await?;
    }
    Ok(())
}
