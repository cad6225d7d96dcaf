//! The rows that imports and commits of documents write.
//!
//! * `connection`: the row of a connection
//! * `open_stream`: writes single records of a stream and tracks the types of its fields

mod connection;
mod open_stream;

pub(crate) use connection::put_connection;
pub(crate) use open_stream::{OpenStream, WriteOutcome};
