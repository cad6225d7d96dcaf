//! Stores of positions.
//!
//! * `memory`: for a server of one client
//! * `write_behind`, `pending`: of a state directory, in memory until a thread has written them
//! * `sqlite`, `rows`, `database`: the file of a state directory
//! * `redis`: in a Redis that several servers share

mod database;
mod memory;
mod pending;
mod redis;
mod rows;
mod sqlite;
mod write_behind;

pub(super) use self::redis::RedisPositions;
pub use database::Database;
pub(super) use memory::Memory;
pub use sqlite::{PositionState, SqlitePositions, StoredPosition, delete_positions};
pub(super) use write_behind::WriteBehind;
