//! Application ids in the headers of the files of a store, which are SQLite databases: the reader of other databases
//! must not import one.

/// Application id of a file of records (`fwel`).
pub const RECORDS_APPLICATION_ID: i64 = 0x6677_656C;

/// Application id of a file of vectors (`fwve`).
pub const VECTORS_APPLICATION_ID: i64 = 0x6677_7665;

/// Returns true if the application id of a SQLite database is that of a store or of its vectors.
pub fn is_store_application(id: i64) -> bool {
    [RECORDS_APPLICATION_ID, VECTORS_APPLICATION_ID].contains(&id)
}
