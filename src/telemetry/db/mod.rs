//! The SQLite file of call records.
//!
//! * `writer`: the thread that writes the file
//! * `keep`: the SQL that keeps a call
//! * `stored`: reading the calls of a file
//! * `database`: opening the file

pub(in crate::telemetry) mod database;
pub(in crate::telemetry) mod keep;
pub(in crate::telemetry) mod stored;
pub(in crate::telemetry) mod writer;
