//! The SQLite file of call records.
//!
//! * `writer`: the thread that writes the file
//! * `keep`: the SQL that keeps a call
//! * `stored`: reading the calls of a file
//! * `database`: opening the file
//! * `flush`: waiting for the thread of a queue, also that of the audit log

pub(in crate::telemetry) mod database;
pub(in crate::telemetry) mod flush;
pub(in crate::telemetry) mod keep;
pub(in crate::telemetry) mod stored;
pub(in crate::telemetry) mod writer;
