//! Cursors: where a list goes on, as a string that a client carries.
//!
//! A cursor is a signed reference to a stored position; a change token carries its state itself, encrypted, and does not expire. The codec is pure: it takes the key and the time as values.
//! Positions are kept for as long as a cursor is valid, in memory or in a state directory, where they survive a restart
//! and can be shared by several processes; what is gone, or never was, is an expired cursor. The clock they are measured
//! by does not go back.

mod change_token;
mod clock;
mod codec;
mod cursors;
mod database;
mod fault;
mod key_file;
mod key_ring;
mod keys;
mod memory;
mod positions;
mod sealed_text;
mod sqlite;

pub use change_token::is_own_text;
pub use clock::{Clock, NotASkew, Skew};
pub use codec::{Claims, Key, KeyId, Kind, MAX_CURSOR_CHARS, PREFIX, Reference, Sealed, VALID_FOR, seal};
pub use cursors::{Cursors, NoPosition, POSITION_CONTEXT, Timing};
pub use database::Database;
pub use fault::CursorFault;
pub use key_file::{KeyFile, Loaded, Stamp};
pub use key_ring::KeyRing;
pub use keys::Keys;
pub use positions::{Position, Positions};
#[cfg(test)]
pub(crate) use sealed_text::encrypt;
pub(crate) use sealed_text::{decrypt, open_text};
pub use sqlite::{PositionState, SqlitePositions, StoredPosition};
