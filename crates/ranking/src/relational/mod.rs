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
//! * `columns`: values of fields in columns, which are read in place of the JSON of the records
//! * `allowance`, `interrupt`: memory limit and cancellation

mod address;
pub mod aggregate;
pub mod allowance;
pub mod changes;
pub mod columns;
mod expand;
pub(crate) mod field_reader;
pub mod interrupt;
pub mod list;
pub(crate) mod predicate;
mod projection;
pub mod record;
mod sort_position;
pub mod stream_row;
pub mod streams;
pub mod tables;
pub mod window;
