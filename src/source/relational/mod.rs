//! Reads of records from the tables of a database: lists, changes, single records, windows and aggregates.
//!
//! The reads are the same for each database. `Tables` is the trait of a database: it has the few queries that a read
//! makes of it. A read gets its bounds as `ReadBounds`: a flag that cancels it, and a limit for the record text that it
//! may hold.
//!
//! * `tables`: the trait of a database, and its rows
//! * `record`, `list`, `changes`, `window`, `aggregate`: one kind of read each
//! * `streams`, `stream_row`: connections, streams and their fields
//! * `predicate`, `address`, `field_reader`, `projection`, `expand`, `sort_position`: filters, fields, relations and order
//! * `allowance`, `interrupt`: memory limit and cancellation

mod address;
pub(super) mod aggregate;
pub(super) mod allowance;
pub(super) mod changes;
mod expand;
pub(super) mod field_reader;
pub(super) mod interrupt;
pub(super) mod list;
pub(super) mod predicate;
mod projection;
pub(super) mod record;
mod sort_position;
pub(super) mod stream_row;
pub(super) mod streams;
pub(super) mod tables;
pub(super) mod window;
