//! Removes records with their history, their words, their documents and their numbers, in one transaction.
//!
//! The store gets a new id, as an embedded one does: change tokens of earlier versions expire, because no history is left
//! that could tell of the removal. The server frees the space of the rows later; its log and its backups keep them.

use deadpool_postgres::Transaction;
use fetchwell_core::handle::RecordScope;
use fetchwell_source::contract::{RemovalCounts, RemovalResult, ScopeError, ScopeRows, StoreError};
use fetchwell_source::documents::DOCUMENTS_STREAM;
use tokio_postgres::Error;

use super::scope::look_up;
use crate::batch::ChangedRows;
use crate::columns::{BuildLimits, build_columns, delete_segments_of_record, warn_not_built};
use crate::document_rows::DocumentRows;
use crate::pool::PostgresPool;
use crate::search::index::put_words;
use crate::terms::{delete_terms, merge_terms, warn_unmerged};
use crate::transaction::{begin_read, begin_write};

/// Note about positions of lists, which have records that were read and not shown.
const OTHER_SERVERS: &str =
    "other servers of this database forget positions of lists when these expire, after ten minutes";

/// Counts the rows that a removal would delete.
pub(super) async fn count_removal(
    pool: &PostgresPool,
    scope: &RecordScope,
) -> Result<RemovalCounts, ScopeError> {
    let mut connection = pool.connection().await.map_err(StoreError::from)?;
    let failed = |error| StoreError::from(pool.failure(&error));
    let transaction = begin_read(&mut connection, pool.url()).await.map_err(failed)?;
    let place = look_up(&transaction, scope).await.map_err(failed)?.resolve(scope)?;
    Ok(count(&transaction, &place, scope).await.map_err(failed)?)
}

/// Removes a connection, a stream or a record. Imports wait meanwhile.
///
/// # Errors
///
/// The records do not exist, or the database cannot be written. Then all records are left.
pub(super) async fn remove_records(
    pool: &PostgresPool,
    scope: &RecordScope,
) -> Result<RemovalResult, ScopeError> {
    let mut connection = pool.connection().await.map_err(StoreError::from)?;
    let failed = |error| StoreError::from(pool.failure(&error));
    let transaction = begin_write(&mut connection, pool.url()).await.map_err(failed)?;
    let lock = "SELECT version FROM fetchwell.store WHERE id = 1 FOR UPDATE";
    transaction.query_one(lock, &[]).await.map_err(failed)?;
    let place = look_up(&transaction, scope).await.map_err(failed)?.resolve(scope)?;
    let counts = count(&transaction, &place, scope).await.map_err(failed)?;
    delete(&transaction, &place, scope).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    // If the record has many words, their changes were appended.
    warn_unmerged(merge_terms(&mut connection, pool).await);
    warn_not_built(build_columns(&mut connection, pool, BuildLimits::default()).await);
    Ok(RemovalResult { counts, vectors: 0, problems: Vec::new(), notes: vec![OTHER_SERVERS.to_owned()] })
}

async fn count(
    transaction: &Transaction<'_>,
    place: &ScopeRows,
    scope: &RecordScope,
) -> Result<RemovalCounts, Error> {
    let sql = "SELECT count(*) FROM fetchwell.records WHERE stream = ANY ($1)";
    let rows: i64 = transaction.query_one(sql, &[&place.removed_streams()]).await?.get(0);
    Ok(place.removal_counts(scope, rows.unsigned_abs()))
}

async fn delete(transaction: &Transaction<'_>, place: &ScopeRows, scope: &RecordScope) -> Result<(), Error> {
    match (place.record, &scope.record, place.streams.first()) {
        (Some(record), Some(key), Some(stream)) => {
            let (row, key) = (stream.row(), key.to_string());
            let rows = ChangedRows {
                stream: vec![row],
                key: vec![key.clone()],
                words: vec![None],
                is_known: vec![true],
                ..ChangedRows::default()
            };
            put_words(transaction, rows).await?;
            delete_segments_of_record(transaction, row, &key).await?;
            let sql = "DELETE FROM fetchwell.records WHERE stream = $1 AND key = $2";
            transaction.execute(sql, &[&row, &key]).await?;
            let sql = "UPDATE fetchwell.streams SET record_count = record_count - $2 WHERE id = $1";
            transaction.execute(sql, &[&row, &i64::from(!record.is_deleted)]).await?;
            if stream.name == DOCUMENTS_STREAM
                && let Some(mut documents) = DocumentRows::find(transaction, place.connection).await?
            {
                documents.write(transaction, vec![(key, None)]).await?;
                documents.commit(transaction).await?;
            }
        }
        _ => {
            let rows = place.stream_rows();
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
