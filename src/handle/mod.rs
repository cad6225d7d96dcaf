//! Names and handles: the strings that say which record is meant.
//!
//! A *handle* is the one string a model carries from `search` to `fetch`. This room holds its
//! grammar ([`Handle`]: one `FromStr`, one `Display`), the names it is made of
//! ([`ConnectionId`], [`StreamName`], [`RecordId`]) and the guards that keep a name from becoming a
//! path. Nothing else in the crate contains the separators `:` and `/` of a handle.
//!
//! The room knows nothing of JSON, HTTP or MCP, and does no input or output.

mod address;
mod fault;
mod grammar;
mod name;

pub use address::RecordAddress;
pub use fault::{HandleFault, InvalidHandle, Segment};
pub use grammar::{Handle, MAX_HANDLE_BYTES};
pub use name::{ConnectionId, InvalidName, RecordId, SourceName, StreamName};
