//! Files of a state directory: what has to outlive a server, such as cursors with their keys and what calls came to.
//!
//! Several processes may share a directory. What is in it is its owner's alone, and each file says of itself what it is.

mod error;
mod file;
mod foreign;
mod lock;
mod private;

pub use error::StateError;
pub use file::{FileKind, StateFile};
pub(crate) use foreign::{
    ForeignFile, LockFileError, beside, foreign_beside_database, not_a_file, open_lock_file,
    orphan_of_database,
};
pub use lock::StateLock;
pub(crate) use private::{create_private_directory, create_private_file, private_options};
