//! Inserts rows by `COPY`, in the binary format. The rows must not exist.

use std::pin::pin;

use deadpool_postgres::Transaction;
use tokio_postgres::Error;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

/// Inserts rows into the columns of a table, such as `fetchwell.terms (word, stream, records)`.
pub(in crate::source::postgres) async fn copy_rows<'r, const COLUMNS: usize>(
    transaction: &Transaction<'_>,
    table: &str,
    types: &[Type; COLUMNS],
    rows: impl Iterator<Item = [&'r (dyn ToSql + Sync); COLUMNS]>,
) -> Result<(), Error> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let sink = transaction.copy_in(format!("COPY {table} FROM STDIN (FORMAT binary)").as_str()).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, types));
    for row in rows {
        writer.as_mut().write(&row).await?;
    }
    writer.finish().await?;
    Ok(())
}
