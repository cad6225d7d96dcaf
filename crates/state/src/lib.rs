//! State that outlives a call: files of a state directory, such as cursors with their keys, and a shared Redis.
//!
//! Several processes may share a directory. Its files are readable by their owner only, and each identifies itself by
//! its header.
//!
//! * `error`: `StateError`, with the remedy of each error
//! * `file`, `kind`: `StateFile`, one SQLite file, created and upgraded on first use, and its properties
//! * `foreign`: detection of other programs' files at the paths of ours
//! * `identity`: identity of a file, by which one that was replaced is noticed
//! * `head`: the first bytes of a database, read without giving up the locks of SQLite
//! * `lock`: `LockedFile`, a file with a lock, and `StateLock`, the lock for creating and replacing files
//! * `private`: creation of files and folders that only their owner may read
//! * `redis/`: state that several servers share, `cursor/`: cursors, and the positions that they refer to
//!
//! Uses `core`.

pub mod cursor;
mod error;
mod file;
mod foreign;
mod head;
mod identity;
mod kind;
mod lock;
mod private;
pub mod redis;

pub use error::StateError;
pub use file::StateFile;
pub use foreign::{
    ForeignFile, LockFileError, beside, foreign_beside_database, not_a_file, open_lock_file,
    orphan_of_database,
};
pub use head::read_head;
pub use identity::FileIdentity;
pub use kind::FileKind;
pub use lock::{LockedFile, StateLock};
pub use private::{create_private_directory, create_private_file, private_options};
