//! The SQLite file that keeps calls. Several processes of a state directory write to one.

use std::path::Path;

use crate::state::{FileKind, StateFile};

/// `fwte` is in its header. 128 MiB in pages of 4,096 bytes: three times what the most rows take.
const KIND: FileKind = FileKind {
    name: "telemetry.db",
    what: "store of calls",
    holds: "figures",
    application_id: 0x6677_7465,
    format: 3,
    schema: include_str!("schema.sql"),
    upgrades: &[
        (1, "ALTER TABLE telemetry ADD COLUMN caller TEXT CHECK (length(caller) = 8)"),
        // Lists were not counted: those that gave pages are known.
        (
            2,
            "ALTER TABLE totals ADD COLUMN lists INTEGER NOT NULL DEFAULT 0; UPDATE totals SET lists = paginated",
        ),
    ],
    pages_most: 32_768,
    overwrites: false,
};

/// Rows that are kept; the oldest go.
const ROWS_MOST: i64 = 100_000;

/// The file of a state directory.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) file: StateFile,
    /// The most rows.
    pub(super) rows_most: i64,
}

impl Database {
    pub(super) fn in_directory(directory: &Path) -> Self {
        Self { file: StateFile::in_directory(KIND, directory), rows_most: ROWS_MOST }
    }
}
