//! Cursors: where a list goes on, as a string that a client carries.
//!
//! A cursor is a signed reference to a stored position. The codec is pure: it takes the key and the
//! time as values. The store remembers positions in memory for as long as a cursor is valid; what it
//! forgot, or never knew, is an expired cursor.

mod codec;
mod fault;
mod store;

pub use codec::{Key, MAX_CURSOR_CHARS, Reference, VALID_FOR, open, seal};
pub use fault::CursorFault;
pub use store::CursorStore;
