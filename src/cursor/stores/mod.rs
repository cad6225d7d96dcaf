//! Stores of positions.
//!
//! * `memory`: for a server of one client
//! * `sqlite`, `database`: in a state directory
//! * `redis`: in a Redis that several servers share

mod database;
mod memory;
mod redis;
mod sqlite;

pub(super) use self::redis::RedisPositions;
pub use database::Database;
pub(super) use memory::Memory;
pub(crate) use sqlite::delete_positions;
pub use sqlite::{PositionState, SqlitePositions, StoredPosition};
