//! Inserts rows by `COPY`, in the binary format. The rows must not exist.

use std::pin::pin;

use deadpool_postgres::Transaction;
use tokio_postgres::Error;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

/// Values of a row, in the order of its columns.
pub(crate) type CopyRow<'r, const COLUMNS: usize> = [&'r (dyn ToSql + Sync); COLUMNS];

/// Inserts rows into the columns of a table, such as `fetchwell.terms (word, stream, records)`.
pub(crate) async fn copy_rows<const COLUMNS: usize>(
    transaction: &Transaction<'_>,
    table: &str,
    types: &[Type; COLUMNS],
    rows: &[CopyRow<'_, COLUMNS>],
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let sink = transaction.copy_in(format!("COPY {table} FROM STDIN (FORMAT binary)").as_str()).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, types));
    for row in rows {
        writer.as_mut().write(row).await?;
    }
    writer.finish().await?;
    Ok(())
}
