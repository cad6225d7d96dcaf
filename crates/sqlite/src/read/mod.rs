//! The tables of the store as the reads of `relational` see them.
//!
//! * `tables`: queries of connections, streams and records
//! * `rows`: rows of the table of records
//! * `sort_value`: the SQLite representation of sort values

pub(crate) mod rows;
mod sort_value;
pub(crate) mod tables;

pub(crate) use sort_value::stored_value;
