//! Writes the words of records that an earlier release imported.

use deadpool_postgres::Object;
use fetchwell_core::record::RecordData;
use tokio_postgres::Error;

use super::super::batch::ChangedRows;
use super::super::transaction::{begin_read, begin_write};
use super::super::url::PostgresUrl;
use super::super::words::{Place, RecordWords, WORDS_VERSION};
use super::index::{index_in_large_steps, put_words};

/// Maximum number and bytes of records that get their words in one transaction.
const RECORDS: i64 = 2_000;
const BYTES: i64 = 8_000_000;

/// Writes the words of the next records of a stream that has none, in one transaction. Returns false if all streams have
/// theirs. Several imports share the work.
pub(crate) async fn add_missing_words(database: &mut Object, url: &PostgresUrl) -> Result<bool, Error> {
    let missing =
        "SELECT id, connection, indexed_key FROM fetchwell.streams WHERE indexed < $1 ORDER BY id LIMIT 1";
    let transaction = begin_read(database, url).await?;
    if transaction.query_opt(missing, &[&WORDS_VERSION]).await?.is_none() {
        return Ok(false);
    }
    drop(transaction);
    let transaction = begin_write(database, url).await?;
    transaction.query_one("SELECT version FROM fetchwell.store WHERE id = 1 FOR UPDATE", &[]).await?;
    // Another import may have written them before this one had the lock.
    let Some(stream) = transaction.query_opt(missing, &[&WORDS_VERSION]).await? else { return Ok(true) };
    let place = Place { stream: stream.get(0), connection: stream.get(1) };
    let after: Option<String> = stream.get(2);
    let sql = "SELECT key FROM (
             SELECT key, sum(octet_length(data)) OVER (ORDER BY key) - octet_length(data) AS bytes FROM (
                 SELECT key, data FROM fetchwell.records
                 WHERE stream = $1 AND data IS NOT NULL AND ($2::text IS NULL OR key > $2) ORDER BY key LIMIT $3
             ) r
         ) r WHERE bytes < $4 ORDER BY key";
    let keys = transaction.query(sql, &[&place.stream, &after, &RECORDS, &BYTES]).await?;
    let keys: Vec<String> = keys.iter().map(|row| row.get(0)).collect();
    let Some(last) = keys.last() else {
        let sql = "UPDATE fetchwell.streams SET indexed = $2, indexed_key = NULL WHERE id = $1";
        transaction.execute(sql, &[&place.stream, &WORDS_VERSION]).await?;
        transaction.commit().await?;
        return Ok(true);
    };
    let sql = "SELECT key, data, emitted_at FROM fetchwell.records WHERE stream = $1 AND key = ANY ($2)";
    let mut rows = ChangedRows::default();
    for row in transaction.query(sql, &[&place.stream, &keys]).await? {
        let key: String = row.get(0);
        let data: RecordData = serde_json::from_str(row.get(1)).unwrap_or_default();
        let words = RecordWords::new(place, &key, &data, row.get(2));
        rows.stream.push(place.stream);
        rows.key.push(key);
        rows.words.push(Some(words));
        // An import may have changed the record since.
        rows.is_known.push(true);
    }
    index_in_large_steps(&transaction, rows.key.len()).await?;
    put_words(&transaction, rows).await?;
    let sql = "UPDATE fetchwell.streams SET indexed_key = $2 WHERE id = $1";
    transaction.execute(sql, &[&place.stream, last]).await?;
    transaction.commit().await?;
    Ok(true)
}
