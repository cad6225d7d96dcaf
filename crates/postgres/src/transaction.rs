//! Beginning of transactions, also behind a pooler that gives each transaction another session.
//!
//! Statements are prepared once in a session and found by their names again. Behind such a pooler the next transaction is in
//! another session, in which other clients may have prepared statements of the same names. So each transaction begins
//! without any, and everything runs in a transaction.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::{Error, IsolationLevel};

use super::url::PostgresUrl;

/// Begins a transaction that reads one state of the tables.
pub(crate) async fn begin_read<'c>(
    connection: &'c mut Object,
    url: &PostgresUrl,
) -> Result<Transaction<'c>, Error> {
    forget_statements(connection, url);
    let builder = connection.build_transaction().read_only(true);
    let transaction = builder.isolation_level(IsolationLevel::RepeatableRead).start().await?;
    without_statements(transaction, url).await
}

/// Begins a transaction that writes.
pub(crate) async fn begin_write<'c>(
    connection: &'c mut Object,
    url: &PostgresUrl,
) -> Result<Transaction<'c>, Error> {
    forget_statements(connection, url);
    let transaction = connection.transaction().await?;
    without_statements(transaction, url).await
}

/// Begins a transaction that writes what it derives from one state of the tables.
pub(crate) async fn begin_stable_write<'c>(
    connection: &'c mut Object,
    url: &PostgresUrl,
) -> Result<Transaction<'c>, Error> {
    forget_statements(connection, url);
    let builder = connection.build_transaction();
    let transaction = builder.isolation_level(IsolationLevel::RepeatableRead).start().await?;
    without_statements(transaction, url).await
}

/// Takes the lock that all writers of records take first. Returns the version of the newest change.
pub(crate) async fn lock_version(transaction: &Transaction<'_>) -> Result<i64, Error> {
    let sql = "SELECT version FROM fetchwell.store WHERE id = 1 FOR UPDATE";
    Ok(transaction.query_one(sql, &[]).await?.get(0))
}

/// Forgets the statements that were prepared in an earlier session.
fn forget_statements(connection: &Object, url: &PostgresUrl) {
    if url.is_pooled {
        connection.statement_cache.clear();
    }
}

/// Drops the statements that other clients prepared in the session.
async fn without_statements<'c>(
    transaction: Transaction<'c>,
    url: &PostgresUrl,
) -> Result<Transaction<'c>, Error> {
    if url.is_pooled {
        transaction.batch_execute("DEALLOCATE ALL").await?;
    }
    Ok(transaction)
}
