//! Reads of records and of the schema from the database.
//!
//! Each kind of read has a file with one entry function. A read gets its bounds as `ReadBounds`: a flag that cancels
//! it, and a limit for the record text that it may hold.
//!
//! * `record`, `list`, `changes`, `window`, `aggregate`: one kind of read each
//! * `schema`, `streams`: connections, streams and their fields
//! * `rows`: rows of the table of records
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
pub(super) mod rows;
pub(super) mod schema;
mod sort_position;
pub(super) mod streams;
pub(super) mod window;
