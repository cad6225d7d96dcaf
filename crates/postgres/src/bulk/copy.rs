//! Inserts rows by `COPY`, in the binary format. The rows must not exist.
//!
//! The writer of `tokio_postgres` sends 4 KB at a time, each with a change of threads and a system call. This one sends larger
//! pieces.

use std::error::Error as StdError;

use bytes::{BufMut as _, Bytes, BytesMut};
use deadpool_postgres::Transaction;
use futures_util::SinkExt as _;
use tokio_postgres::Error;
use tokio_postgres::types::{IsNull, ToSql, Type};

/// Beginning of the binary format: its signature, no flags and no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Number of columns that ends the rows.
const END: i16 = -1;

/// Length of a value that is null.
const NULL: i32 = -1;

/// Bytes that are sent at a time.
const PIECE_BYTES: usize = 128 * 1024;

/// Values of a row, in the order of its columns.
pub(crate) type CopyRow<'r, const COLUMNS: usize> = [&'r (dyn ToSql + Sync); COLUMNS];

/// Inserts rows into the columns of a table, such as `fetchwell.fields (stream, name)`.
pub(crate) async fn copy_rows<const COLUMNS: usize>(
    transaction: &Transaction<'_>,
    table: &str,
    types: &[Type; COLUMNS],
    rows: &[CopyRow<'_, COLUMNS>],
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let sql = format!("COPY {table} FROM STDIN (FORMAT binary)");
    let statement = transaction.prepare_cached(&sql).await?;
    let mut sink = Box::pin(transaction.copy_in::<_, Bytes>(&statement).await?);
    let mut piece = BytesMut::with_capacity(PIECE_BYTES * 2);
    piece.put_slice(HEADER);
    for row in rows {
        if add_row(&mut piece, types, row).is_err() {
            // Without its end the server refuses the rows and every further statement.
            drop(sink);
            return transaction.batch_execute("SELECT 1").await;
        }
        if piece.len() >= PIECE_BYTES {
            sink.send(piece.split().freeze()).await?;
        }
    }
    piece.put_i16(END);
    sink.send(piece.freeze()).await?;
    sink.as_mut().finish().await?;
    Ok(())
}

/// Adds a row. Fails for a value that the format cannot have, which is one of more than 2 GB.
fn add_row<const COLUMNS: usize>(
    out: &mut BytesMut,
    types: &[Type; COLUMNS],
    row: &CopyRow<'_, COLUMNS>,
) -> Result<(), Box<dyn StdError + Sync + Send>> {
    out.put_i16(i16::try_from(COLUMNS)?);
    for (value, kind) in row.iter().zip(types) {
        let at = out.len();
        out.put_i32(NULL);
        if let IsNull::No = value.to_sql_checked(kind, out)? {
            let length = i32::try_from(out.len() - at - size_of::<i32>())?;
            if let Some(place) = out.get_mut(at..at + size_of::<i32>()) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
    }
    Ok(())
}
