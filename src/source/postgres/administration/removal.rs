//! Removes records with their history, their words, their documents and their numbers, in one transaction.
//!
//! The store gets a new id, as an embedded one does: change tokens of earlier versions expire, because no history is left
//! that could tell of the removal. The server frees the space of the rows later; its log and its backups keep them.

use deadpool_postgres::Transaction;
use tokio_postgres::Error;

use super::scope::{Place, resolve};
use crate::handle::RecordScope;
use crate::saturate::saturated;
use crate::source::contract::{RemovalCounts, ScopeError, StoreError};
use crate::source::documents::DOCUMENTS_STREAM;
use crate::source::postgres::batch::ChangedRows;
use crate::source::postgres::document_rows::DocumentRows;
use crate::source::postgres::pool::PostgresPool;
use crate::source::postgres::search::index::put_words;
use crate::source::postgres::search::terms::{delete_terms, merge_terms, warn_unmerged};
use crate::source::postgres::transaction::{begin_read, begin_write};

/// Counts the rows that a removal would delete.
///
/// # Errors
///
/// The records do not exist, or the database cannot be used.
pub async fn count_removal(pool: &PostgresPool, scope: &RecordScope) -> Result<RemovalCounts, ScopeError> {
    let mut connection = pool.connection().await.map_err(StoreError::from)?;
    let failed = |error| StoreError::from(pool.failure(&error));
    let transaction = begin_read(&mut connection, pool.url()).await.map_err(failed)?;
    let place = resolve(&transaction, scope).await.map_err(failed)??;
    Ok(count(&transaction, &place, scope).await.map_err(failed)?)
}

/// Removes a connection, a stream or a record. Imports wait meanwhile.
///
/// # Errors
///
/// The records do not exist, or the database cannot be written. Then all records are left.
pub async fn remove_records(pool: &PostgresPool, scope: &RecordScope) -> Result<RemovalCounts, ScopeError> {
    let mut connection = pool.connection().await.map_err(StoreError::from)?;
    let failed = |error| StoreError::from(pool.failure(&error));
    let transaction = begin_write(&mut connection, pool.url()).await.map_err(failed)?;
    let lock = "SELECT version FROM fetchwell.store WHERE id = 1 FOR UPDATE";
    transaction.query_one(lock, &[]).await.map_err(failed)?;
    let place = resolve(&transaction, scope).await.map_err(failed)??;
    let counts = count(&transaction, &place, scope).await.map_err(failed)?;
    delete(&transaction, &place, scope).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    // If the record has many words, their changes were appended.
    warn_unmerged(merge_terms(&mut connection, pool).await);
    Ok(counts)
}

async fn count(
    transaction: &Transaction<'_>,
    place: &Place,
    scope: &RecordScope,
) -> Result<RemovalCounts, Error> {
    if let Some(record) = &place.record {
        let deleted = u64::from(record.is_deleted);
        return Ok(RemovalCounts { deleted, records: 1 - deleted, ..RemovalCounts::default() });
    }
    let mut counts = RemovalCounts {
        connections: u64::from(scope.stream.is_none()),
        streams: saturated::<u64>(place.streams.len()),
        ..RemovalCounts::default()
    };
    for stream in &place.streams {
        let sql = "SELECT count(*) FROM fetchwell.records WHERE stream = $1";
        let rows: i64 = transaction.query_one(sql, &[&stream.row]).await?.get(0);
        counts.records += stream.records;
        counts.deleted += rows.unsigned_abs().saturating_sub(stream.records);
    }
    Ok(counts)
}

async fn delete(transaction: &Transaction<'_>, place: &Place, scope: &RecordScope) -> Result<(), Error> {
    match (&place.record, place.streams.first()) {
        (Some(record), Some(stream)) => {
            let rows = ChangedRows {
                stream: vec![stream.row],
                key: vec![record.key.clone()],
                words: vec![None],
                is_known: vec![true],
                ..ChangedRows::default()
            };
            put_words(transaction, rows).await?;
            let sql = "DELETE FROM fetchwell.records WHERE stream = $1 AND key = $2";
            transaction.execute(sql, &[&stream.row, &record.key]).await?;
            let sql = "UPDATE fetchwell.streams SET record_count = record_count - $2 WHERE id = $1";
            transaction.execute(sql, &[&stream.row, &i64::from(!record.is_deleted)]).await?;
            if stream.name == DOCUMENTS_STREAM
                && let Some(mut documents) = DocumentRows::find(transaction, place.connection).await?
            {
                documents.write(transaction, vec![(record.key.clone(), None)]).await?;
                documents.commit(transaction).await?;
            }
        }
        _ => {
            let rows: Vec<i64> = place.streams.iter().map(|stream| stream.row).collect();
            if let Some(mut documents) = DocumentRows::find(transaction, place.connection).await? {
                match &scope.stream {
                    None => documents.delete_project(transaction).await?,
                    Some(stream) if stream.as_str() == DOCUMENTS_STREAM => {
                        documents.delete_all(transaction).await?;
                        documents.commit(transaction).await?;
                    }
                    Some(_other) => {}
                }
            }
            delete_terms(transaction, &rows).await?;
            for table in ["texts", "records", "fields"] {
                let sql = format!("DELETE FROM fetchwell.{table} WHERE stream = ANY ($1)");
                transaction.execute(sql.as_str(), &[&rows]).await?;
            }
            transaction.execute("DELETE FROM fetchwell.streams WHERE id = ANY ($1)", &[&rows]).await?;
            if scope.stream.is_none() {
                let sql = "DELETE FROM fetchwell.connections WHERE id = $1";
                transaction.execute(sql, &[&place.connection]).await?;
            }
        }
    }
    let sql = "UPDATE fetchwell.store SET uuid = upper(replace(gen_random_uuid()::text, '-', ''))";
    transaction.execute(sql, &[]).await?;
    Ok(())
}
