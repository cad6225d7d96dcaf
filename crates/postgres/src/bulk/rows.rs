//! Reads and writes the rows of records. New rows are written by `COPY`, changed ones by an insert that replaces them.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

use super::copy::{CopyRow, copy_rows};
use crate::batch::{ChangedRows, RecordPlace, RecordState};

/// Reads the states of the records that exist.
pub(crate) async fn existing(
    transaction: &Transaction<'_>,
    places: &[RecordPlace],
) -> Result<HashMap<RecordPlace, RecordState>, Error> {
    let streams: Vec<i64> = places.iter().map(|place| place.stream).collect();
    let keys: Vec<&str> = places.iter().map(|place| place.key.as_str()).collect();
    // The limit makes each record a lookup by its key: without statistics the server would scan all records.
    let sql = "SELECT p.stream, p.key, r.digest, r.emitted_at FROM unnest($1::bigint[], $2::text[]) AS p (stream, key)
         CROSS JOIN LATERAL (
             SELECT sha256(convert_to(data, 'UTF8')) AS digest, emitted_at FROM fetchwell.records
             WHERE stream = p.stream AND key = p.key LIMIT 1
         ) r";
    let statement = transaction.prepare_cached(sql).await?;
    let rows = transaction.query(&statement, &[&streams, &keys]).await?;
    let state = |row: &tokio_postgres::Row| {
        let place = RecordPlace { stream: row.get(0), key: row.get(1) };
        (place, RecordState { digest: row.get(2), emitted_at: row.get(3) })
    };
    Ok(rows.iter().map(state).collect())
}

/// Returns the rows of new records with the values of each column.
fn new_rows(rows: &ChangedRows) -> Vec<CopyRow<'_, 6>> {
    let ChangedRows { stream, key, data, emitted_at, sort_value, version, is_new, .. } = rows;
    let columns = stream.iter().zip(key).zip(data).zip(emitted_at).zip(sort_value).zip(version).zip(is_new);
    let new = columns.filter(|(_, is_new)| **is_new);
    new.map(|((((((stream, key), data), emitted_at), sort_value), version), _)| {
        [stream as &(dyn ToSql + Sync), key, data, emitted_at, sort_value, version]
    })
    .collect()
}

/// Inserts or replaces rows.
pub(crate) async fn put_rows(transaction: &Transaction<'_>, rows: &ChangedRows) -> Result<(), Error> {
    if rows.key.is_empty() {
        return Ok(());
    }
    let ChangedRows { stream, key, data, emitted_at, sort_value, version, is_new, .. } = rows;
    let types = [Type::INT8, Type::TEXT, Type::TEXT, Type::TEXT, Type::BYTEA, Type::INT8];
    let table = "fetchwell.records (stream, key, data, emitted_at, sort_value, version)";
    copy_rows(transaction, table, &types, &new_rows(rows)).await?;
    if is_new.iter().all(|is_new| *is_new) {
        return Ok(());
    }
    let sql = "INSERT INTO fetchwell.records (stream, key, data, emitted_at, sort_value, version)
         SELECT stream, key, data, emitted_at, sort_value, version
         FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[], $7::boolean[])
             AS r (stream, key, data, emitted_at, sort_value, version, is_new)
         WHERE NOT is_new
         ON CONFLICT (stream, key) DO UPDATE SET data = excluded.data, emitted_at = excluded.emitted_at,
             sort_value = excluded.sort_value, version = excluded.version";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[stream, key, data, emitted_at, sort_value, version, is_new]).await?;
    Ok(())
}
