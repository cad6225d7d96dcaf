//! Cursors: strings with which a client continues a list.
//!
//! A cursor is a signed reference to a stored position; a change token contains its state, encrypted, and does not
//! expire. The codec is pure: keys and the time are arguments. Positions are stored during the lifetime of a cursor,
//! in memory, in a state directory, where they survive a restart and can be shared by several processes, or in a Redis
//! that several servers share. Those of a directory are in memory first, and are written within milliseconds. A cursor
//! without a stored position is an expired one.
//!
//! * `codec`, `fault`: the text of a cursor; reasons to refuse one
//! * `cursors`: returns the positions of cursors; `issue` stores positions and creates cursors; `storage` opens keys and positions
//! * `change_token`, `sealed_text`: encrypted tokens and texts
//! * `key_file`, `key_ring`, `keys`: signing keys and their rotation; `key_agreement`: those of servers that share a Redis
//! * `positions`: stored positions, `stores/`: their stores
//! * `shared_values`: other values that servers share
//! * `clock`: a clock that never goes back

mod change_token;
mod clock;
mod codec;
mod cursors;
mod fault;
mod issue;
mod key_agreement;
mod key_file;
mod key_ring;
mod keys;
mod positions;
mod sealed_text;
mod shared_values;
mod storage;
mod stores;

pub use change_token::is_own_text;
pub use clock::{Clock, NotASkew, Skew};
pub use codec::{
    Claims, Key, KeyId, Kind, MAX_CURSOR_CHARS, PREFIX, Reference, UnverifiedCursor, VALID_FOR, seal,
};
pub use cursors::{Cursors, NoPosition, Timing};
pub use fault::CursorFault;
pub use issue::PreparedCursor;
pub use key_agreement::{KeyMismatch, LatestKeyMismatch, compare_shared_keys};
pub use key_file::{KeyFile, LoadedKeys, Stamp};
pub use key_ring::KeyRing;
pub use keys::Keys;
pub use positions::{Position, Positions};
pub use sealed_text::{decrypt, encrypt, open_position};
pub use shared_values::{GroupedName, SharedValue, SharedValues};
pub use storage::StatePlace;
pub use stores::{Database, PositionState, SqlitePositions, StoredPosition, delete_positions};
