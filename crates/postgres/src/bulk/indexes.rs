//! Indexes that are dropped before the first large import into empty tables and built at its end, which takes less time than
//! keeping them up to date. Answers are the same without them, and slower.
//!
//! An import that is interrupted leaves them missing; the next import and `fetchwell store migrate` build them.

use deadpool_postgres::Object;
use tokio_postgres::Error;

use crate::transaction::{begin_read, begin_write};
use crate::url::PostgresUrl;

/// Names and statements of the indexes. The statements are those of the migrations.
const INDEXES: [(&str, &str); 4] = [
    (
        "records_in_order",
        "CREATE INDEX IF NOT EXISTS records_in_order ON fetchwell.records (stream, sort_value, key) WHERE data IS NOT NULL",
    ),
    (
        "records_by_version",
        "CREATE INDEX IF NOT EXISTS records_by_version ON fetchwell.records (stream, version)",
    ),
    ("texts_by_word", "CREATE INDEX IF NOT EXISTS texts_by_word ON fetchwell.texts USING gin (words)"),
    ("texts_by_time", "CREATE INDEX IF NOT EXISTS texts_by_time ON fetchwell.texts (time, id)"),
];

/// Memory for building an index.
const MEMORY: &str = "SET LOCAL maintenance_work_mem = '256MB'";

/// Number of missing indexes, as an expression of SQL.
pub(crate) fn missing_sql() -> String {
    let names: Vec<String> = INDEXES.iter().map(|(name, _)| format!("'{name}'")).collect();
    format!(
        "(SELECT {} - count(*) FROM pg_indexes WHERE schemaname = 'fetchwell' AND indexname IN ({}))::integer",
        INDEXES.len(),
        names.join(", ")
    )
}

/// Drops the indexes if the tables are empty and the role owns them. Returns true if they are dropped.
pub(crate) async fn drop_indexes_of_empty_tables(
    database: &mut Object,
    url: &PostgresUrl,
) -> Result<bool, Error> {
    let transaction = begin_write(database, url).await?;
    // Readers are not waited for: the indexes can stay.
    transaction.batch_execute("SET LOCAL lock_timeout = '2s'").await?;
    let sql =
        "SELECT NOT EXISTS (SELECT 1 FROM fetchwell.records) AND NOT EXISTS (SELECT 1 FROM fetchwell.texts)
         AND (SELECT bool_and(pg_has_role(relowner, 'USAGE')) FROM pg_class
              WHERE oid IN ('fetchwell.records'::regclass, 'fetchwell.texts'::regclass))";
    if !transaction.query_one(sql, &[]).await?.get::<_, bool>(0) {
        return Ok(false);
    }
    for (name, _) in INDEXES {
        transaction.batch_execute(&format!("DROP INDEX IF EXISTS fetchwell.{name}")).await?;
    }
    transaction.commit().await?;
    Ok(true)
}

/// Returns true if an index is missing.
pub(crate) async fn is_index_missing(database: &mut Object, url: &PostgresUrl) -> Result<bool, Error> {
    let transaction = begin_read(database, url).await?;
    let sql = format!("SELECT {}", missing_sql());
    Ok(transaction.query_one(sql.as_str(), &[]).await?.get::<_, i32>(0) > 0)
}

/// Builds the indexes that are missing. Writers wait meanwhile, and readers do not.
pub(crate) async fn build_missing_indexes(database: &mut Object, url: &PostgresUrl) -> Result<(), Error> {
    if !is_index_missing(database, url).await? {
        return Ok(());
    }
    for (_, create) in INDEXES {
        let transaction = begin_write(database, url).await?;
        transaction.batch_execute(MEMORY).await?;
        transaction.batch_execute(create).await?;
        transaction.commit().await?;
    }
    Ok(())
}
