//! Merges runs, so that a search reads few.
//!
//! While an import runs, runs of about the same size are merged eight at a time, so that each number is rewritten few times. At
//! its end all runs are merged but those that are much larger than the ones before them.

use deadpool_postgres::{Object, Transaction};
use fetchwell_source::contract::PostgresError;
use tokio_postgres::Error;

use super::blocks::RunWriter;
use super::reader::RunReader;
use crate::pool::PostgresPool;
use crate::transaction::begin_write;
use crate::url::PostgresUrl;

/// Key of the advisory lock of a merge: `fwel` and `term`.
const LOCK: i64 = 0x6677_656C_7465_726D;

/// Number of runs of about the same size that are merged while an import runs, and the factor between two sizes.
const RUNS: usize = 8;
const SIZE_FACTOR: i64 = 8;

/// Bytes of a run that is merged with any other small one.
const SMALL_BYTES: i64 = 64 * 1024;

/// A run stays at the end of an import if it is more than so many times as large as all smaller ones together.
const KEPT_FACTOR: i64 = 4;

/// Tables of the numbers in an earlier release, as long as there may be processes of it.
const EARLIER_TABLES: [&str; 2] = ["term_changes", "terms"];

/// Run with its size.
#[derive(Debug, Clone, Copy)]
struct Run {
    id: i64,
    bytes: i64,
}

impl Run {
    /// Returns the class of its size.
    fn class(self) -> u32 {
        if self.bytes < SMALL_BYTES { 0 } else { 1 + (self.bytes / SMALL_BYTES).ilog(SIZE_FACTOR) }
    }
}

/// Merges runs of about the same size if there are many of them and no other session merges. Returns true if it has merged any.
pub(crate) async fn merge_many_terms(
    database: &mut Object,
    pool: &PostgresPool,
) -> Result<bool, PostgresError> {
    merge_if_many(database, pool.url()).await.map_err(|error| pool.failure(&error))
}

async fn merge_if_many(database: &mut Object, url: &PostgresUrl) -> Result<bool, Error> {
    let transaction = begin_write(database, url).await?;
    if many(&runs(&transaction).await?).is_empty() {
        return Ok(false);
    }
    let lock = transaction.query_one("SELECT pg_try_advisory_xact_lock($1)", &[&LOCK]).await?;
    // Another session may have merged them before this one had the lock.
    let merged = if lock.get(0) { many(&runs(&transaction).await?) } else { Vec::new() };
    merge(&transaction, &merged, &[]).await?;
    transaction.commit().await?;
    Ok(!merged.is_empty())
}

/// Merges all runs but large ones beside small ones.
pub(crate) async fn merge_terms(database: &mut Object, pool: &PostgresPool) -> Result<(), PostgresError> {
    merge_all(database, pool.url()).await.map_err(|error| pool.failure(&error))
}

async fn merge_all(database: &mut Object, url: &PostgresUrl) -> Result<(), Error> {
    let transaction = begin_write(database, url).await?;
    if small(&runs(&transaction).await?).is_empty() {
        return Ok(());
    }
    lock_runs(&transaction).await?;
    let merged = small(&runs(&transaction).await?);
    merge(&transaction, &merged, &[]).await?;
    transaction.commit().await
}

/// Warns that runs were not merged. All numbers stay exact.
pub(crate) fn warn_unmerged<Done, E: std::fmt::Display>(merged: Result<Done, E>) {
    if let Err(error) = merged {
        tracing::warn!(%error, "searches read more rows than necessary until the next import");
    }
}

/// Deletes the numbers of streams. The caller holds the lock of the store's version.
pub(crate) async fn delete_terms(transaction: &Transaction<'_>, streams: &[i64]) -> Result<(), Error> {
    lock_runs(transaction).await?;
    if has_earlier_tables(transaction).await? {
        for table in EARLIER_TABLES {
            let sql = format!("DELETE FROM fetchwell.{table} WHERE stream = ANY ($1)");
            transaction.execute(sql.as_str(), &[&streams]).await?;
        }
    }
    let all = runs(transaction).await?;
    merge(transaction, &all, streams).await
}

/// Drops the tables that processes of an earlier release read and write.
pub(crate) async fn drop_earlier_tables(
    database: &mut Object,
    pool: &PostgresPool,
) -> Result<(), PostgresError> {
    let drop_tables = async {
        let transaction = begin_write(database, pool.url()).await?;
        if has_earlier_tables(&transaction).await? {
            let sql =
                "DROP TABLE fetchwell.terms, fetchwell.term_changes; DROP FUNCTION fetchwell.forward_terms()";
            transaction.batch_execute(sql).await?;
        }
        transaction.commit().await
    };
    drop_tables.await.map_err(|error| pool.failure(&error))
}

async fn has_earlier_tables(transaction: &Transaction<'_>) -> Result<bool, Error> {
    let sql = "SELECT to_regclass('fetchwell.terms') IS NOT NULL";
    Ok(transaction.query_one(sql, &[]).await?.get(0))
}

/// Waits until no other session merges. A caller that also takes the lock of the store's version takes that first.
async fn lock_runs(transaction: &Transaction<'_>) -> Result<(), Error> {
    transaction.batch_execute("SET LOCAL statement_timeout = 0").await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    Ok(())
}

/// Returns the runs that exist, the smallest first.
async fn runs(transaction: &Transaction<'_>) -> Result<Vec<Run>, Error> {
    let sql = "SELECT id, bytes FROM fetchwell.term_runs ORDER BY bytes, id";
    let rows = transaction.query(sql, &[]).await?;
    Ok(rows.iter().map(|row| Run { id: row.get(0), bytes: row.get(1) }).collect())
}

/// Returns the smallest runs, if there are many of one class.
fn many(runs: &[Run]) -> Vec<Run> {
    let class = runs.chunk_by(|a, b| a.class() == b.class()).find(|same| same.len() >= RUNS);
    let Some(class) = class.and_then(<[Run]>::first) else { return Vec::new() };
    runs.iter().copied().filter(|run| run.class() <= class.class()).collect()
}

/// Returns the smallest runs up to one that is much larger than all before it, if there are two.
fn small(runs: &[Run]) -> Vec<Run> {
    let mut bytes = 0;
    let is_near = |run: &&Run| {
        let is_near = bytes == 0 || run.bytes < SMALL_BYTES || run.bytes / KEPT_FACTOR <= bytes;
        bytes += run.bytes;
        is_near
    };
    let small: Vec<Run> = runs.iter().take_while(is_near).copied().collect();
    if small.len() > 1 { small } else { Vec::new() }
}

/// Replaces runs by one with the same numbers, without those of some streams.
async fn merge(transaction: &Transaction<'_>, merged: &[Run], without: &[i64]) -> Result<(), Error> {
    if merged.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = merged.iter().map(|run| run.id).collect();
    let mut readers = Vec::new();
    for run in &ids {
        readers.push(RunReader::open(transaction, *run).await?);
    }
    let mut writer = RunWriter::create(transaction).await?;
    let (mut word, mut numbers) = (String::new(), Vec::new());
    while let Some(first) = readers.iter().filter_map(RunReader::word).min() {
        word.clear();
        word.push_str(first);
        numbers.clear();
        for reader in &mut readers {
            if reader.word() == Some(&*word) {
                numbers.extend(reader.numbers());
                reader.advance();
                if reader.word().is_none() {
                    reader.prepare(transaction).await?;
                }
            }
        }
        writer.add(&word, sums(&mut numbers, without));
        if writer.is_full() {
            writer.write(transaction).await?;
        }
    }
    writer.finish(transaction).await?;
    for sql in [
        "DELETE FROM fetchwell.term_blocks WHERE run = ANY ($1)",
        "DELETE FROM fetchwell.term_runs WHERE id = ANY ($1)",
    ] {
        transaction.execute(sql, &[&ids]).await?;
    }
    Ok(())
}

/// Returns the sums of the numbers of each stream that are not 0.
fn sums(numbers: &mut [(i64, i64)], without: &[i64]) -> impl Iterator<Item = (i64, i64)> {
    numbers.sort_unstable_by_key(|(stream, _)| *stream);
    let same = numbers.chunk_by(|(a, _), (b, _)| a == b);
    let sum =
        |same: &[(i64, i64)]| Some((same.first()?.0, same.iter().map(|(_, records)| records).sum::<i64>()));
    same.filter_map(sum).filter(move |(stream, records)| *records != 0 && !without.contains(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(choose: fn(&[Run]) -> Vec<Run>, bytes: &[i64]) -> usize {
        let mut runs: Vec<Run> = bytes.iter().map(|bytes| Run { id: 1, bytes: *bytes }).collect();
        runs.sort_unstable_by_key(|run| run.bytes);
        choose(&runs).len()
    }

    #[test]
    fn an_import_merges_runs_of_a_size_and_its_end_all_but_large_ones() {
        let batch = 400_000;
        assert_eq!(chosen(many, &[batch; 7]), 0);
        assert_eq!(chosen(many, &[batch; 8]), 8);
        assert_eq!(chosen(many, &[[batch; 8].as_slice(), &[50_000_000, 900]].concat()), 9);
        assert_eq!(chosen(small, &[batch]), 0);
        assert_eq!(chosen(small, &[900, 40_000_000]), 0);
        assert_eq!(chosen(small, &[900, 900, 30_000, 40_000_000]), 3);
        assert_eq!(chosen(small, &[900, 250_000, 40_000_000]), 0);
        assert_eq!(chosen(small, &[batch, batch, 3_000_000, 14_000_000, 14_000_000]), 5);
    }

    #[test]
    fn numbers_of_a_stream_are_added() {
        let mut numbers = [(7, 2), (3, 1), (7, -2), (5, 4), (3, 1)];
        assert_eq!(sums(&mut numbers, &[]).collect::<Vec<_>>(), [(3, 2), (5, 4)]);
        assert_eq!(sums(&mut numbers, &[5]).collect::<Vec<_>>(), [(3, 2)]);
    }
}
