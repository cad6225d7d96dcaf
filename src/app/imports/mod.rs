//! Imports that are kept current: those of a configuration while a server runs, and those of a store for
//! `fetchwell sync --watch`.
//!
//! Each import is synchronized by itself, so one that fails or stalls never delays another, nor the server. After an error
//! the next attempt waits, longer with each error.
//!
//! * `background`: the imports of a server
//! * `follow`: one import, again and again
//! * `store`: the store of an import, `watch`: changes at an origin

mod background;
mod follow;
mod store;
mod watch;

pub(crate) use background::{BackgroundImports, create_import_stores};
pub(crate) use follow::{FollowedImport, FollowedSettings, Follower, ImportObserver, known_connection};
pub(crate) use store::ImportStore;
