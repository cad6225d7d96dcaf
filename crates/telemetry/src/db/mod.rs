//! The SQLite file of call records: the latest 100,000, whatever their age, in at most 128 MiB.
//!
//! * `writer`: the thread that writes the file
//! * `keep`: the SQL that keeps a call and deletes the oldest
//! * `stored`: reading the calls of a file
//! * `database`: opening the file, and its limits
//! * `flush`: waiting for the thread of a queue, also that of the audit log

pub(crate) mod database;
pub(crate) mod flush;
pub(crate) mod keep;
pub(crate) mod stored;
pub(crate) mod writer;
