//! Opens the keys and the stored positions of cursors: in memory, in a state directory, or in Redis.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::clock::Clock;
use super::key_file::KeyFile;
use super::keys::Keys;
use super::positions::Positions;
use super::stores::{Database, Memory, RedisPositions, SqlitePositions, WriteBehind};
use crate::redis::RedisState;
use crate::{StateError, create_private_directory};

/// Place of keys and positions.
#[derive(Debug, Clone)]
pub struct StatePlace {
    /// State directory, with the keys.
    pub directory: PathBuf,
    /// Redis with the positions; otherwise they are in the directory.
    pub redis: Option<RedisState>,
}

impl From<&Path> for StatePlace {
    fn from(directory: &Path) -> Self {
        directory.to_owned().into()
    }
}

impl From<PathBuf> for StatePlace {
    fn from(directory: PathBuf) -> Self {
        Self { directory, redis: None }
    }
}

/// Keys and positions in use.
#[derive(Debug)]
pub(super) struct Storage {
    /// Keys of cursors and those of change tokens; `None` for the keys of the process.
    pub(super) keys: Option<(Arc<Keys>, Keys)>,
    pub(super) positions: Arc<dyn Positions>,
    pub(super) encryption: PositionEncryption,
}

/// Encryption of the texts of positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PositionEncryption {
    /// Positions in memory are not encrypted; the store of a directory encrypts what it writes.
    ByStore,
    /// In Redis, where a text opens only with the reference and the binding that it was stored with.
    Shared,
}

impl Storage {
    pub(super) fn in_memory(valid_for: Duration) -> Self {
        let positions = Arc::new(Memory::with_ttl(valid_for));
        Self { keys: None, positions, encryption: PositionEncryption::ByStore }
    }

    /// Opens the keys of a place and its positions. Redis is not called.
    pub(super) fn open(
        place: StatePlace,
        clock: &Arc<Clock>,
        valid_for: Duration,
    ) -> Result<Self, StateError> {
        let StatePlace { directory, redis } = place;
        match redis {
            None => Self::in_directory(&directory, clock, valid_for),
            Some(redis) => {
                create_private_directory(&directory).map_err(|error| StateError::Directory {
                    path: directory.clone(),
                    problem: error.to_string(),
                })?;
                let keys = Self::keys(&directory, clock.now(), valid_for)?;
                let positions = Arc::new(RedisPositions::new(redis, Arc::clone(clock), valid_for));
                Ok(Self { keys: Some(keys), positions, encryption: PositionEncryption::Shared })
            }
        }
    }

    fn keys(directory: &Path, now: Duration, valid_for: Duration) -> Result<(Arc<Keys>, Keys), StateError> {
        let keys = Keys::of_file(KeyFile::in_directory(directory), now)?.with_ttl(valid_for);
        let changes = Keys::of_file(KeyFile::for_changes(directory), now)?.with_ttl(Duration::MAX);
        Ok((Arc::new(keys), changes))
    }

    fn in_directory(directory: &Path, clock: &Arc<Clock>, valid_for: Duration) -> Result<Self, StateError> {
        let database = Database::in_directory(directory);
        database.prepare()?;
        let positions = SqlitePositions::new(database).with_ttl(valid_for);
        // The latest time before the restart; from here on the time cannot be earlier.
        clock.raise(positions.start(clock.now())?);
        let keys = Self::keys(directory, clock.now(), valid_for)?;
        let positions = WriteBehind::start(positions, Arc::clone(&keys.0), Arc::clone(clock), valid_for);
        Ok(Self { keys: Some(keys), positions: Arc::new(positions), encryption: PositionEncryption::ByStore })
    }
}
