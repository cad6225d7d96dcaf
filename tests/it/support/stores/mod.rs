//! Stores of tests that run on each kind of store: a file, or a new database when `tests/postgres/run` has started a
//! server.

pub(crate) mod postgres;

use std::path::{Path, PathBuf};

use fetchwell_source::BoundSource;
use fetchwell_sqlite::SqliteStore;

use postgres::Database;

/// Returns the place of a new store: a file in a folder, or the URL of an empty database.
pub(crate) fn new_store(folder: &tempfile::TempDir) -> PathBuf {
    if !postgres::has_server() {
        return folder.path().join("store.db");
    }
    // Tests may be in a runtime already, which cannot be blocked.
    let create = || tokio::runtime::Runtime::new().unwrap().block_on(Database::create()).into_url();
    std::thread::scope(|scope| scope.spawn(create).join().unwrap()).into()
}

/// Opens a store.
pub(crate) fn open_store(path: &Path) -> BoundSource {
    match path.to_str() {
        Some(url) if url.starts_with("postgres://") => postgres::store(url).into(),
        _ => SqliteStore::open("store".parse().unwrap(), path).unwrap().into(),
    }
}
