//! Names and handles: the strings that identify a record.
//!
//! A *handle* is the one string that a model carries from `search` to `fetch`. `Handle` is its grammar, with one
//! `FromStr` and one `Display`; `ConnectionId`, `StreamName` and `RecordId` are the names in it. Nothing else
//! in the crate contains the separators `:` and `/` of a handle. The module knows no JSON, HTTP or MCP and does no
//! I/O.
//!
//! * `address`: `RecordAddress`, the triple that identifies a record
//! * `fault`: the reasons to reject a handle
//! * `grammar`: the parser and the printer of handles
//! * `part_id`: the id of a part with the version of its text
//! * `scope`: the names of a connection, a stream or a record in one string
//! * `name`: the name newtypes and their validation

mod address;
mod fault;
mod grammar;
mod name;
mod part_id;
mod scope;

pub use address::RecordAddress;
pub use fault::{HandleFault, InvalidHandle, Segment};
pub use grammar::Handle;
pub use name::{ConnectionId, InvalidName, MAX_HANDLE_BYTES, RecordId, SourceName, StreamName};
pub use part_id::{PartId, TextVersion};
pub use scope::{InvalidScope, RecordScope};
