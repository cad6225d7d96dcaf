//! Synchronization of imports: the store follows what changes, moves and disappears at the origin.
//!
//! The origin is scanned, and only files that are new or changed are read. Files that share a key are read together, in
//! the order of a first import, so that the result equals one. Records that no file gives any more are deleted, unless
//! suspiciously many are missing. A file that cannot be read keeps its records.
//!
//! * `kind`: the kinds of imports and their options
//! * `guess`: the kind of a path
//! * `scan`: the files of an origin, `stamp`: their states, `store_files`: those of the store, which are left out
//! * `plan`: the files to read
//! * `read`: reads them, `run`: a whole synchronization, `dry_run`: one that writes nothing

mod dry_run;
mod guess;
mod kind;
mod plan;
mod read;
mod run;
mod scan;
mod stamp;
mod store_files;

pub use dry_run::{DryRun, DryRunOutcome};
pub use guess::{Guess, connection_name, guess_kind};
pub use kind::{ImportKind, ImportOptions, UnknownKind, file_kinds};
pub use run::{SyncOutcome, Synchronization, describe_held_records};
pub use scan::watched_folder;
pub use store_files::{StoreFiles, without_links};
