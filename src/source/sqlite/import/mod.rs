//! Imports: writes the records of one connection in batches.
//!
//! `SqliteWriter` holds the lock of its connection, and the write lock of the store for each batch.
//!
//! * `writer`: batches, transactions and the update of the search index
//! * `open_stream`: writes single records of a stream and tracks the types of its fields

mod open_stream;
mod writer;

pub(super) use open_stream::{OpenStream, WriteOutcome};
pub use writer::SqliteWriter;
pub(super) use writer::put_connection;
